// UnbatchDataset: the rows of elements. RebatchDatasetV2: the rows of batches
// in batches of other sizes.
#include "data/dataset_op.h"
#include "op/op_like.h"

namespace headrace {
namespace {

// The rows of an input's elements, some at a time.
template <typename D, template <typename> class Base>
class RowsIterator : public Base<D> {
 public:
  using Base<D>::Base;

 protected:
  // Goes on to an element with rows left; *end when there is none.
  Status Reach(PullContext& c, bool* end) {
    while (at_ == rows_) {
      HR_RETURN_IF_ERROR(c.CheckCancelled());
      at_ = rows_ = 0;
      HR_RETURN_IF_ERROR(this->NextInput(c, &current_, end));
      if (*end) {
        current_.clear();
        return OkStatus();
      }
      if (Status s = Check(); !s.ok()) {
        // Else a caller that goes on behind the error would get rows of what
        // was refused.
        current_.clear();
        rows_ = 0;
        return s;
      }
    }
    return OkStatus();
  }
  // Puts current_ where rows of it are left.
  Status SaveRows(StateWriter& w) {
    if (at_ == rows_) return OkStatus();
    const std::string& prefix = this->prefix();
    for (size_t k = 0; k < current_.size(); ++k) {
      HR_RETURN_IF_ERROR(w.Put(prefix, TensorKey(k), current_[k]));
    }
    return OkStatus();
  }
  // Goes on at row `at` of the element that was put.
  Status RestoreRows(const StateReader& r, int64_t at) {
    const std::string& prefix = this->prefix();
    current_.clear();
    for (int k = 0; k < this->dataset().input().width(); ++k) {
      HR_ASSIGN_OR_RETURN(Tensor t, r.Get(prefix, TensorKey(k)));
      current_.push_back(std::move(t));
    }
    HR_RETURN_IF_ERROR(
        CheckSaved(prefix, this->dataset().input().spec(), current_));
    // A state from a file: rows are counted anew.
    HR_RETURN_IF_ERROR(Check());
    if (at < 0 || at > rows_) return DamagedState(prefix);
    at_ = at;
    return OkStatus();
  }
  Element current_;
  int64_t at_ = 0, rows_ = 0;

 private:
  std::string TensorKey(size_t k) const {
    return FullKey(this->prefix(), absl::StrCat("tensors[", k, "]"));
  }
  Status Check() {
    for (size_t k = 0; k < current_.size(); ++k) {
      if (current_[k].rank() == 0) {
        return InvalidArgument(
            "Input element must have a non-scalar value for component ", k,
            ".");
      }
      if (current_[k].dim(0) != current_[0].dim(0)) {
        return InvalidArgument(
            "Input element must have the same batch size in each component. "
            "Component 0 had size ",
            current_[0].dim(0), " but component ", k, " had size, ",
            current_[k].dim(0), ".");
      }
    }
    rows_ = current_.empty() ? 0 : current_[0].dim(0);
    return OkStatus();
  }
};

class UnbatchDataset : public InputDataset {
 public:
  using InputDataset::InputDataset;
  StringView kind() const override { return "Unbatch"; }
  int64_t Count() const override {
    const int64_t n = input().Cardinality();
    if (n == kInfiniteCardinality || n == 0) return n;
    int64_t rows = -1, total;
    for (const Shape& s : input().spec().shapes) {
      // Components agree in it (Check), but some may not know it.
      if (s.known_rank() && s.rank() > 0) rows = std::max(rows, s[0]);
    }
    if (n < 0 || rows < 0) return kUnknownCardinality;
    return MultiplyChecked(n, rows, &total) ? total : kInfiniteCardinality;
  }

  class Iterator : public RowsIterator<UnbatchDataset, InputIterator> {
   public:
    using RowsIterator::RowsIterator;
    Status Next(PullContext& c, Element* out, bool* end) override {
      HR_RETURN_IF_ERROR(Reach(c, end));
      if (*end) return OkStatus();
      out->clear();
      for (const Tensor& t : current_) out->push_back(RowOf(t, at_));
      ++at_;
      return OkStatus();
    }
    Status Save(PullContext& c, StateWriter& w) override {
      HR_RETURN_IF_ERROR(
          SaveInput(c, w, prefix(), Key("input_impl_empty"), input_.get()));
      w.PutInt(prefix(), Key("current_index"), at_);
      w.PutInt(prefix(), Key("n"), rows_);
      return SaveRows(w);
    }
    Status Restore(PullContext& c, const StateReader& r) override {
      HR_ASSIGN_OR_RETURN(const int64_t at,
                          r.GetInt(prefix(), Key("current_index")));
      HR_ASSIGN_OR_RETURN(const int64_t rows, r.GetInt(prefix(), Key("n")));
      if (at < rows) HR_RETURN_IF_ERROR(RestoreRows(r, at));
      return RestoreInput(c, r, prefix(), Key("input_impl_empty"),
                          dataset().input(), prefix(), &input_);
    }

   private:
    std::string Key(StringView key) const { return FullKey(prefix(), key); }
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }
};

class RebatchDataset : public InputDataset {
 public:
  RebatchDataset(ElementSpec spec, DatasetPtr input, std::vector<int64_t> sizes,
                 bool drop)
      : InputDataset(std::move(spec), std::move(input)),
        sizes_(std::move(sizes)),
        drop_remainder_(drop) {}
  StringView kind() const override { return "RebatchV2"; }
  int64_t Count() const override { return kUnknownCardinality; }

  class Iterator : public RowsIterator<RebatchDataset, KeptInputIterator> {
   public:
    using RowsIterator::RowsIterator;
    Status Next(PullContext& c, Element* out, bool* end) override {
      const int64_t wanted = dataset().sizes_[turn_ % dataset().sizes_.size()];
      std::vector<Element> parts;
      int64_t have = 0;
      // A batch of no rows needs an element too, for the types and shapes of
      // its rows.
      while (have < wanted || (wanted == 0 && parts.empty())) {
        bool input_end = false;
        HR_RETURN_IF_ERROR(Reach(c, &input_end));
        if (input_end) break;
        const int64_t n = std::min(wanted - have, rows_ - at_);
        Element part;
        for (const Tensor& t : current_) part.push_back(t.Rows(at_, at_ + n));
        parts.push_back(std::move(part));
        at_ += n;
        have += n;
      }
      *end = parts.empty() || (have < wanted && dataset().drop_remainder_);
      if (*end) return OkStatus();
      ++turn_;
      return Join(parts, have, out);
    }
    Status Save(PullContext& c, StateWriter& w) override {
      const int64_t sizes = static_cast<int64_t>(dataset().sizes_.size());
      w.PutInt(prefix(), Key("batch_sizes_index"), turn_ % sizes);
      // -1: no element is being cut up.
      w.PutInt(prefix(), Key("offset"), at_ == rows_ ? -1 : at_);
      HR_RETURN_IF_ERROR(SaveRows(w));
      return input_->Save(c, w);
    }
    Status Restore(PullContext& c, const StateReader& r) override {
      HR_ASSIGN_OR_RETURN(turn_,
                          r.GetCount(prefix(), Key("batch_sizes_index")));
      HR_ASSIGN_OR_RETURN(const int64_t at, r.GetInt(prefix(), Key("offset")));
      if (at >= 0) HR_RETURN_IF_ERROR(RestoreRows(r, at));
      return input_->Restore(c, r);
    }

   private:
    static Status Join(std::vector<Element>& parts, int64_t rows,
                       Element* out) {
      // Rows of one element alone: a view of it, nothing is copied.
      if (parts.size() == 1) {
        *out = std::move(parts[0]);
        return OkStatus();
      }
      out->clear();
      for (size_t k = 0; k < parts[0].size(); ++k) {
        Shape shape = parts[0][k].shape();
        shape.set_dim(0, rows);
        HR_ASSIGN_OR_RETURN(Tensor t,
                            Tensor::Allocate(parts[0][k].dtype(), shape));
        int64_t at = 0;
        for (const Element& part : parts) {
          const Tensor& from = part[k];
          if (from.shape().Sub(1, from.rank()) != shape.Sub(1, shape.rank())) {
            return InvalidArgument("Cannot rebatch tensors of shapes ",
                                   parts[0][k].shape(), " and ", from.shape());
          }
          Tensor to = t.Rows(at, at + from.dim(0));
          CopyElements(from, to);
          at += from.dim(0);
        }
        out->push_back(std::move(t));
      }
      return OkStatus();
    }
    std::string Key(StringView key) const { return FullKey(prefix(), key); }
    int64_t turn_ = 0;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const std::vector<int64_t> sizes_;  // by turns
  const bool drop_remainder_;
};

// Each batch in as many parts as there are replicas, of one size but the last.
class ReplicatedDataset : public InputDataset {
 public:
  ReplicatedDataset(ElementSpec spec, DatasetPtr input, int64_t replicas)
      : InputDataset(std::move(spec), std::move(input)), replicas_(replicas) {}
  StringView kind() const override { return "Rebatch"; }
  int64_t Count() const override {
    const int64_t n = input().Cardinality();
    int64_t all;
    if (n < 0) return n;
    return MultiplyChecked(n, replicas_, &all) ? all : kUnknownCardinality;
  }

  class Iterator : public KeptInputIterator<ReplicatedDataset> {
   public:
    using KeptInputIterator::KeptInputIterator;
    Status Next(PullContext& c, Element* out, bool* end) override {
      if (part_ == 0) {
        HR_RETURN_IF_ERROR(NextInput(c, &current_, end));
        if (*end) return OkStatus();
        HR_RETURN_IF_ERROR(CheckBatch(current_));
      }
      const int64_t replicas = dataset().replicas_;
      const int64_t rows = current_[0].dim(0);
      const int64_t size = rows / replicas + (rows % replicas != 0);
      // (part_ * size is at most rows + replicas.)
      const int64_t begin = std::min(rows, part_ * size);
      const int64_t stop = std::min(rows, begin + size);
      out->clear();
      for (const Tensor& t : current_) out->push_back(t.Rows(begin, stop));
      part_ = (part_ + 1) % replicas;
      if (part_ == 0) current_.clear();
      return OkStatus();
    }
    Status Save(PullContext& c, StateWriter& w) override {
      w.PutInt(prefix(), FullKey(prefix(), "slice_number"), part_);
      if (part_ > 0) {
        HR_RETURN_IF_ERROR(w.PutElement(prefix(), FullKey(prefix(), "size"),
                                        FullKey(prefix(), "tensors"),
                                        current_));
      }
      return KeptInputIterator::Save(c, w);
    }
    Status Restore(PullContext& c, const StateReader& r) override {
      HR_ASSIGN_OR_RETURN(
          part_, r.GetCount(prefix(), FullKey(prefix(), "slice_number")));
      if (part_ >= dataset().replicas_) return DamagedState(prefix());
      current_.clear();
      if (part_ > 0) {
        HR_ASSIGN_OR_RETURN(current_,
                            r.GetElement(prefix(), FullKey(prefix(), "size"),
                                         FullKey(prefix(), "tensors")));
        HR_RETURN_IF_ERROR(
            CheckSaved(prefix(), dataset().input().spec(), current_));
        HR_RETURN_IF_ERROR(CheckBatch(current_));
      }
      return KeptInputIterator::Restore(c, r);
    }

   private:
    static Status CheckBatch(const Element& batch) {
      for (size_t k = 0; k < batch.size(); ++k) {
        if (batch[k].rank() == 0) {
          return InvalidArgument(
              "Cannot rebatch dataset: All components must have at least one "
              "dimension. Perhaps your input dataset is not batched? "
              "Component ",
              k, " is scalar.");
        }
        if (batch[k].dim(0) != batch[0].dim(0)) {
          return InvalidArgument(
              "Cannot rebatch dataset: All components must have the same size ",
              "in their first dimension");
        }
      }
      if (batch.empty())
        return InvalidArgument("Cannot rebatch empty elements");
      return OkStatus();
    }
    Element current_;
    int64_t part_ = 0;  // of current_, the next to give
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const int64_t replicas_;
};

Status MakeReplicated(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  HR_ASSIGN_OR_RETURN(const int64_t n, IntInput(c, 1, "num_replicas"));
  // As many as a count of elements may be multiplied by.
  constexpr int64_t kMost = int64_t{1} << 31;
  if (n <= 0 || n > kMost) {
    return InvalidArgument("num_replicas must be greater than zero.");
  }
  return SetDataset<ReplicatedDataset>(c, std::move(spec), std::move(input), n);
}

Status MakeUnbatch(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  return SetDataset<UnbatchDataset>(c, std::move(spec), std::move(input));
}

Status MakeRebatch(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  const Tensor& t = c.input(1);
  if (t.rank() > 1 || t.num_elements() == 0) {
    return InvalidArgument(
        "`batch_sizes` must be a scalar or a vector but has rank ", t.rank());
  }
  std::vector<int64_t> sizes;
  bool any = false;
  for (int64_t v : t.span<int64_t>()) {
    if (v < 0) {
      return InvalidArgument("Batch sizes must not be negative, got ", v);
    }
    any = any || v > 0;
    sizes.push_back(v);
  }
  if (!any) return InvalidArgument("A batch size must be greater than zero.");
  HR_ASSIGN_OR_RETURN(const bool drop, BoolInput(c, 2, "drop_remainder"));
  return SetDataset<RebatchDataset>(c, std::move(spec), std::move(input),
                                    std::move(sizes), drop);
}

HR_OP(UnbatchDataset)
    .Input("input_dataset: variant")
    .Output("handle: variant")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("metadata: string = ''")
    .Doc("The rows of elements.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeUnbatch>);

HR_OP(RebatchDatasetV2)
    .Input("input_dataset: variant")
    .Input("batch_sizes: int64")
    .Input("drop_remainder: bool")
    .Output("handle: variant")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Doc("The rows of batches in batches of other sizes.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeRebatch>);

[[maybe_unused]] const bool kExperimentalUnbatch = RegisterLike(
    "ExperimentalUnbatchDataset", "UnbatchDataset", WithoutMetadata);

HR_OP(RebatchDataset)
    .Input("input_dataset: variant")
    .Input("num_replicas: int64")
    .Output("handle: variant")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("use_fallback: bool = true")
    .Doc("Each batch in as many parts as there are replicas.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeReplicated>);
[[maybe_unused]] const bool kExperimentalRebatch =
    RegisterLike("ExperimentalRebatchDataset", "RebatchDataset");

}  // namespace
}  // namespace headrace
