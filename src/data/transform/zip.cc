// ZipDataset: elements side by side. ConcatenateDataset: one dataset behind
// another.
#include "data/dataset_op.h"

namespace headrace {
namespace {

class ZipDataset : public Dataset {
 public:
  ZipDataset(ElementSpec spec, std::vector<DatasetPtr> inputs)
      : Dataset(std::move(spec)), inputs_(std::move(inputs)) {}
  StatusOr<ElementReaderPtr> Reader(PullContext& c) const override {
    std::vector<ElementReaderPtr> from;
    for (const DatasetPtr& d : inputs_) {
      HR_ASSIGN_OR_RETURN(from.emplace_back(), d->Reader(c));
    }
    return ReaderOf([from = std::move(from)](PullContext& context, int64_t i,
                                             Element* out) {
      out->clear();
      Element part;
      for (const ElementReaderPtr& r : from) {
        HR_RETURN_IF_ERROR(r->Read(context, i, &part));
        for (Tensor& t : part) out->push_back(std::move(t));
      }
      return OkStatus();
    });
  }
  StringView kind() const override { return "Zip"; }
  std::vector<DatasetPtr> inputs() const override { return inputs_; }
  int64_t Count() const override {
    int64_t result = kInfiniteCardinality;
    for (const DatasetPtr& d : inputs_) {
      const int64_t n = d->Cardinality();
      if (n == kUnknownCardinality) return n;
      if (n == kInfiniteCardinality) continue;
      result = result == kInfiniteCardinality ? n : std::min(result, n);
    }
    return result;
  }

  class Iterator : public IteratorOf<ZipDataset> {
   public:
    using IteratorOf::IteratorOf;
    Status Start(PullContext& c) override {
      for (size_t i = 0; i < dataset().inputs_.size(); ++i) {
        HR_ASSIGN_OR_RETURN(
            IteratorPtr input,
            dataset().inputs_[i]->Iterate(c, Parent(static_cast<int>(i))));
        inputs_.push_back(std::move(input));
      }
      return OkStatus();
    }
    Status Next(PullContext& c, Element* out, bool* end) override {
      out->clear();
      Status status;
      *end = inputs_.empty();
      for (IteratorPtr& input : inputs_) {
        Status s = input->Next(c, &part_, end);
        // An error of one input does not stop the pulls from the others: they
        // would be an element behind from then on.
        status.Update(s);
        if (*end) break;
        if (s.ok()) {
          for (Tensor& t : part_) out->push_back(std::move(t));
        }
      }
      if (*end) {
        inputs_.clear();
        return OkStatus();
      }
      return status;
    }
    Status Save(PullContext& c, StateWriter& w) override {
      w.PutInt(prefix(), "input_impls_empty", inputs_.empty());
      for (IteratorPtr& input : inputs_) {
        HR_RETURN_IF_ERROR(input->Save(c, w));
      }
      return OkStatus();
    }
    Status Restore(PullContext& c, const StateReader& r) override {
      HR_ASSIGN_OR_RETURN(const bool gone,
                          r.GetBool(prefix(), "input_impls_empty"));
      if (gone) {
        inputs_.clear();
        return OkStatus();
      }
      for (IteratorPtr& input : inputs_) {
        HR_RETURN_IF_ERROR(input->Restore(c, r));
      }
      return OkStatus();
    }

   private:
    std::string Parent(int i) const {
      return absl::StrCat(prefix(), "[", i, "]");
    }
    std::vector<IteratorPtr> inputs_;  // empty: at the end
    Element part_;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const std::vector<DatasetPtr> inputs_;
};

Status MakeZip(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  std::vector<DatasetPtr> inputs;
  size_t width = 0;
  for (int i = 0; i < c.num_inputs(); ++i) {
    HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(i)));
    width += input->width();
    inputs.push_back(std::move(input));
  }
  if (width != spec.types.size()) {
    return InvalidArgument("ZipDataset of ", width,
                           " components has output_types for ",
                           spec.types.size());
  }
  return SetDataset<ZipDataset>(c, std::move(spec), std::move(inputs));
}

HR_OP(ZipDataset)
    .Input("input_datasets: N * variant")
    .Output("handle: variant")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("N: int >= 1")
    .Attr("metadata: string = ''")
    .Doc("Elements of several datasets side by side.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeZip>);

class ConcatenateDataset : public Dataset {
 public:
  ConcatenateDataset(ElementSpec spec, DatasetPtr a, DatasetPtr b)
      : Dataset(std::move(spec)), parts_{std::move(a), std::move(b)} {}
  StatusOr<ElementReaderPtr> Reader(PullContext& c) const override {
    HR_ASSIGN_OR_RETURN(ElementReaderPtr a, parts_[0]->Reader(c));
    HR_ASSIGN_OR_RETURN(ElementReaderPtr b, parts_[1]->Reader(c));
    return ReaderOf([a = std::move(a), b = std::move(b),
                     n = parts_[0]->Cardinality()](PullContext& context,
                                                   int64_t i, Element* out) {
      return i < n ? a->Read(context, i, out) : b->Read(context, i - n, out);
    });
  }
  StringView kind() const override { return "Concatenate"; }
  std::vector<DatasetPtr> inputs() const override {
    return {parts_[0], parts_[1]};
  }
  int64_t Count() const override {
    const int64_t a = parts_[0]->Cardinality(), b = parts_[1]->Cardinality();
    if (a == kInfiniteCardinality || b == kInfiniteCardinality) {
      return kInfiniteCardinality;
    }
    if (a < 0 || b < 0) return kUnknownCardinality;
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? kInfiniteCardinality : sum;
  }

  class Iterator : public IteratorOf<ConcatenateDataset> {
   public:
    using IteratorOf::IteratorOf;
    Status Start(PullContext& c) override { return Open(c); }
    Status Next(PullContext& c, Element* out, bool* end) override {
      while (input_) {
        bool part_end = false;
        HR_RETURN_IF_ERROR(input_->Next(c, out, &part_end));
        if (!part_end) return OkStatus();
        ++part_;
        HR_RETURN_IF_ERROR(Open(c));
      }
      *end = true;
      return OkStatus();
    }
    Status Save(PullContext& c, StateWriter& w) override {
      w.PutInt(prefix(), "i", part_);
      w.PutInt(prefix(), "element_count", 0);
      for (int64_t i = 0; i < 2; ++i) {
        w.PutInt(prefix(), Key(i), !input_ || i != part_);
      }
      return input_ ? input_->Save(c, w) : OkStatus();
    }
    Status Restore(PullContext& c, const StateReader& r) override {
      HR_ASSIGN_OR_RETURN(part_, r.GetInt(prefix(), "i"));
      if (part_ < 0 || part_ > 2) {
        return InvalidArgument("a saved concatenation was at part ", part_);
      }
      if (part_ != 0) HR_RETURN_IF_ERROR(Open(c));
      if (!input_) return OkStatus();
      HR_ASSIGN_OR_RETURN(const bool gone, r.GetBool(prefix(), Key(part_)));
      return gone ? OkStatus() : input_->Restore(c, r);
    }

   private:
    static std::string Key(int64_t i) {
      return absl::StrCat("input_impl_uninitialized[", i, "]");
    }
    Status Open(PullContext& c) {
      input_.reset();
      if (part_ > 1) return OkStatus();
      HR_ASSIGN_OR_RETURN(input_,
                          dataset().parts_[part_]->Iterate(
                              c, absl::StrCat(prefix(), "[", part_, "]")));
      return OkStatus();
    }
    IteratorPtr input_;
    int64_t part_ = 0;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const DatasetPtr parts_[2];
};

Status MakeConcatenate(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr a, DatasetOf(c.input(0)));
  HR_ASSIGN_OR_RETURN(DatasetPtr b, DatasetOf(c.input(1)));
  if (a->spec().types != b->spec().types) {
    return InvalidArgument(
        "input dataset and another dataset have different output_types");
  }
  return SetDataset<ConcatenateDataset>(c, std::move(spec), std::move(a),
                                        std::move(b));
}

HR_OP(ConcatenateDataset)
    .Input("input_dataset: variant")
    .Input("another_dataset: variant")
    .Output("handle: variant")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("metadata: string = ''")
    .Doc("One dataset behind another.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeConcatenate>);

}  // namespace
}  // namespace headrace
