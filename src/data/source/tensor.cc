// TensorDataset: one element. TensorSliceDataset: the rows of tensors.
#include "data/dataset_op.h"

namespace headrace {
namespace {

class TensorDataset : public Dataset {
 public:
  TensorDataset(ElementSpec spec, Element element)
      : Dataset(std::move(spec)), element_(std::move(element)) {}
  StatusOr<ElementReaderPtr> Reader(PullContext& c) const override {
    auto self =
        std::static_pointer_cast<const TensorDataset>(shared_from_this());
    return ReaderOf([self](PullContext&, int64_t, Element* out) {
      *out = self->element_;
      return OkStatus();
    });
  }
  StringView kind() const override { return "FromTensor"; }
  int64_t Count() const override { return 1; }

  class Iterator : public IteratorOf<TensorDataset> {
   public:
    using IteratorOf::IteratorOf;
    Status Next(PullContext& c, Element* out, bool* end) override {
      *end = produced_;
      if (!produced_) *out = dataset().element_;
      produced_ = true;
      return OkStatus();
    }
    Status Save(PullContext& c, StateWriter& w) override {
      w.PutInt(prefix(), "produced", produced_);
      w.PutInt(prefix(), "global_shuffle_iterator_next_index", 0);
      return OkStatus();
    }
    Status Restore(PullContext& c, const StateReader& r) override {
      HR_ASSIGN_OR_RETURN(produced_, r.GetBool(prefix(), "produced"));
      return OkStatus();
    }

   private:
    bool produced_ = false;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const Element element_;
};

StatusOr<Element> Components(const KernelContext& c) {
  Element element;
  for (int i = 0; i < c.num_inputs(); ++i) element.push_back(c.input(i));
  return element;
}

Status MakeTensor(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op(), "Toutput_types"));
  HR_ASSIGN_OR_RETURN(Element element, Components(c));
  return SetDataset<TensorDataset>(c, std::move(spec), std::move(element));
}

HR_OP(TensorDataset)
    .Input("components: Toutput_types")
    .Output("handle: variant")
    .Attr("Toutput_types: list(type) >= 1")
    .Attr("output_shapes: list(shape) >= 1")
    .Attr("metadata: string = ''")
    .Doc("A dataset of one element.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeTensor>);

class TensorSliceDataset : public Dataset {
 public:
  TensorSliceDataset(ElementSpec spec, Element tensors)
      : Dataset(std::move(spec)), tensors_(std::move(tensors)) {
    rows_ = tensors_[0].dim(0);
    // Counted once: making a shape for each row and component would cost more
    // than the row.
    for (const Tensor& t : tensors_) {
      row_shapes_.push_back(t.shape().Sub(1, t.rank()));
    }
  }
  StatusOr<ElementReaderPtr> Reader(PullContext& c) const override {
    auto self =
        std::static_pointer_cast<const TensorSliceDataset>(shared_from_this());
    return ReaderOf([self](PullContext&, int64_t i, Element* out) {
      out->clear();
      for (const Tensor& t : self->tensors_) out->push_back(RowOf(t, i));
      return OkStatus();
    });
  }
  StringView kind() const override { return "TensorSlice"; }
  int64_t Count() const override { return rows_; }

  class Iterator : public IteratorOf<TensorSliceDataset> {
   public:
    using IteratorOf::IteratorOf;
    Status Next(PullContext& c, Element* out, bool* end) override {
      if (at_ >= dataset().rows_) {
        *end = true;
        return OkStatus();
      }
      const Element& tensors = dataset().tensors_;
      out->resize(tensors.size());
      for (size_t k = 0; k < tensors.size(); ++k) {
        // Rows share the tensors' memory.
        (*out)[k] =
            tensors[k].Rows(at_, at_ + 1).WithShape(dataset().row_shapes_[k]);
      }
      ++at_;
      return OkStatus();
    }
    Status Skip(PullContext& c, int64_t n, int64_t* skipped) override {
      *skipped = std::min(n, dataset().rows_ - at_);
      at_ += *skipped;
      return OkStatus();
    }
    Status NextRows(PullContext& c, int64_t n, Element* rows, int64_t* count,
                    bool* done) override {
      *done = true;
      *count = std::min(n, dataset().rows_ - at_);
      rows->clear();
      for (const Tensor& t : dataset().tensors_) {
        // A batch of consecutive rows is a view of the tensor: nothing is
        // copied.
        rows->push_back(t.Rows(at_, at_ + *count));
      }
      at_ += *count;
      return OkStatus();
    }
    Status Save(PullContext& c, StateWriter& w) override {
      w.PutInt(prefix(), FullKey(prefix(), "index"), at_);
      w.PutInt(prefix(), "global_shuffle_iterator_next_index", 0);
      return OkStatus();
    }
    Status Restore(PullContext& c, const StateReader& r) override {
      HR_ASSIGN_OR_RETURN(at_, r.GetInt(prefix(), FullKey(prefix(), "index")));
      if (at_ < 0 || at_ > dataset().rows_) {
        return InvalidArgument("the saved iterator was at row ", at_, " of ",
                               dataset().rows_);
      }
      return OkStatus();
    }

   private:
    int64_t at_ = 0;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const Element tensors_;
  std::vector<Shape> row_shapes_;
  int64_t rows_ = 0;
};

Status MakeTensorSlice(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op(), "Toutput_types"));
  HR_ASSIGN_OR_RETURN(Element tensors, Components(c));
  for (const Tensor& t : tensors) {
    if (t.rank() < 1) {
      return InvalidArgument("All components must be at least 1-dimensional");
    }
    if (t.dim(0) != tensors[0].dim(0)) {
      return InvalidArgument(
          "All components must have the same size in the 0th dimension");
    }
  }
  return SetDataset<TensorSliceDataset>(c, std::move(spec), std::move(tensors));
}

HR_OP(TensorSliceDataset)
    .Input("components: Toutput_types")
    .Output("handle: variant")
    .Attr("Toutput_types: list(type) >= 1")
    .Attr("output_shapes: list(shape) >= 1")
    .Attr("is_files: bool = false")
    .Attr("metadata: string = ''")
    .Attr("replicate_on_split: bool = false")
    .Doc("The rows of tensors, one after another.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeTensorSlice>);

}  // namespace
}  // namespace headrace
