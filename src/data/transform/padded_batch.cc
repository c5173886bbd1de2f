// PaddedBatchDataset: consecutive elements, padded to one shape and stacked.
#include "data/dataset_op.h"

namespace headrace {
namespace {

// Copies `from` into the corner at zero of `to`, of the same rank and no
// smaller; sizes in elements of `bytes` bytes.
void CopyCorner(const char* from, absl::Span<const int64_t> from_dims, char* to,
                absl::Span<const int64_t> to_dims, size_t bytes) {
  if (from_dims.empty()) {
    std::memcpy(to, from, bytes);
    return;
  }
  int64_t from_step = static_cast<int64_t>(bytes), to_step = from_step;
  for (size_t i = 1; i < from_dims.size(); ++i) {
    from_step *= from_dims[i];
    to_step *= to_dims[i];
  }
  // Equal rows lie in one piece: all of them are one copy.
  if (from_dims.size() == 1 || from_step == to_step) {
    std::memcpy(to, from, from_step * from_dims[0]);
    return;
  }
  for (int64_t i = 0; i < from_dims[0]; ++i) {
    CopyCorner(from + i * from_step, from_dims.subspan(1), to + i * to_step,
               to_dims.subspan(1), bytes);
  }
}

// The same for objects.
void CopyTexts(const std::string* from, absl::Span<const int64_t> from_dims,
               std::string* to, absl::Span<const int64_t> to_dims) {
  if (from_dims.empty()) {
    *to = *from;
    return;
  }
  int64_t from_step = 1, to_step = 1;
  for (size_t i = 1; i < from_dims.size(); ++i) {
    from_step *= from_dims[i];
    to_step *= to_dims[i];
  }
  for (int64_t i = 0; i < from_dims[0]; ++i) {
    CopyTexts(from + i * from_step, from_dims.subspan(1), to + i * to_step,
              to_dims.subspan(1));
  }
}

void FillWith(const Tensor& value, Tensor& out) {
  const int64_t n = out.num_elements();
  if (value.dtype() == DType::kString) {
    for (std::string& s : out.span<std::string>()) {
      s = value.scalar<std::string>();
    }
    return;
  }
  const size_t bytes = DTypeSize(value.dtype());
  char* to = out.data<char>();
  for (int64_t i = 0; i < n; ++i, to += bytes) {
    std::memcpy(to, value.raw(), bytes);
  }
}

class PaddedBatchDataset : public InputDataset {
 public:
  PaddedBatchDataset(ElementSpec spec, DatasetPtr input, int64_t size,
                     bool drop, std::vector<Shape> shapes,
                     std::vector<Tensor> values)
      : InputDataset(std::move(spec), std::move(input)),
        size_(size),
        drop_remainder_(drop),
        shapes_(std::move(shapes)),
        values_(std::move(values)) {}
  StringView kind() const override { return "PaddedBatchV2"; }
  int64_t batch_size() const override { return size_; }
  int64_t Count() const override {
    const int64_t n = input().Cardinality();
    if (n < 0) return n;
    return n / size_ + (n % size_ != 0 && !drop_remainder_);
  }

  class Iterator : public InputIterator<PaddedBatchDataset> {
   public:
    using InputIterator::InputIterator;
    Status Next(PullContext& c, Element* out, bool* end) override {
      std::vector<Element> elements;
      while (static_cast<int64_t>(elements.size()) < dataset().size_) {
        Element element;
        bool input_end = false;
        HR_RETURN_IF_ERROR(c.CheckCancelled());
        HR_RETURN_IF_ERROR(NextInput(c, &element, &input_end));
        if (input_end) break;
        elements.push_back(std::move(element));
      }
      *end = elements.empty() ||
             (static_cast<int64_t>(elements.size()) < dataset().size_ &&
              dataset().drop_remainder_);
      if (*end) return OkStatus();
      out->assign(dataset().shapes_.size(), Tensor());
      for (size_t k = 0; k < out->size(); ++k) {
        HR_RETURN_IF_ERROR(Stack(elements, k, &(*out)[k]));
      }
      return OkStatus();
    }

    Status Save(PullContext& c, StateWriter& w) override {
      return SaveInput(c, w, prefix(), "exhausted", input_.get());
    }
    Status Restore(PullContext& c, const StateReader& r) override {
      return RestoreInput(c, r, prefix(), "exhausted", dataset().input(),
                          prefix(), &input_);
    }

   private:
    // The shape that all of component k are padded to.
    StatusOr<Shape> Common(absl::Span<const Element> elements, size_t k) {
      const Shape& wanted = dataset().shapes_[k];
      Shape shape = wanted;
      for (const Element& e : elements) {
        const Shape& s = e[k].shape();
        if (s.rank() != wanted.rank()) {
          return InvalidArgument(
              "All elements in a batch must have the same rank as the padded "
              "shape for component",
              k, ": expected rank ", wanted.rank(),
              " but got element with rank ", s.rank());
        }
        for (int d = 0; d < s.rank(); ++d) {
          // An open size is that of the longest element in this batch.
          if (wanted[d] < 0) {
            shape.set_dim(d, std::max(shape[d], s[d]));
          } else if (s[d] > wanted[d]) {
            // Upstream's code for it.
            return DataLoss(
                "Attempted to pad to a smaller size than the input element.");
          }
        }
      }
      return shape;
    }
    Status Stack(absl::Span<const Element> elements, size_t k, Tensor* out) {
      HR_ASSIGN_OR_RETURN(const Shape common, Common(elements, k));
      std::vector<int64_t> dims{static_cast<int64_t>(elements.size())};
      dims.insert(dims.end(), common.dims().begin(), common.dims().end());
      HR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
      const Tensor& value = dataset().values_[k];
      const DType dtype = value.dtype();
      HR_ASSIGN_OR_RETURN(*out, Tensor::Allocate(dtype, shape));
      // All of it first and the elements over it: where the padding lies need
      // not be worked out.
      FillWith(value, *out);
      for (size_t i = 0; i < elements.size(); ++i) {
        const Tensor& t = elements[i][k];
        if (t.num_elements() == 0) continue;
        Tensor row = RowOf(*out, static_cast<int64_t>(i));
        if (dtype == DType::kString) {
          CopyTexts(t.data<std::string>(), t.shape().dims(),
                    row.data<std::string>(), row.shape().dims());
        } else {
          CopyCorner(t.data<char>(), t.shape().dims(), row.data<char>(),
                     row.shape().dims(), DTypeSize(dtype));
        }
      }
      return OkStatus();
    }
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const int64_t size_;
  const bool drop_remainder_;
  const std::vector<Shape> shapes_;  // -1: as long as the longest
  const std::vector<Tensor> values_;
};

StatusOr<Shape> PaddedShape(const Tensor& t) {
  if (t.rank() != 1) {
    return InvalidArgument("All padded shapes must be vectors");
  }
  return Shape::Make(t.span<int64_t>(), /*allow_unknown=*/true);
}

Status MakePadded(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op(), "Toutput_types"));
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  HR_ASSIGN_OR_RETURN(const int64_t size, IntInput(c, 1, "batch_size"));
  if (size <= 0) {
    return InvalidArgument("Batch size must be greater than zero.");
  }
  const ArgRange shape_inputs = c.op().input_range("padded_shapes");
  const ArgRange value_inputs = c.op().input_range("padding_values");
  bool drop = false;
  // Only V2 has the input.
  if (value_inputs.end < c.num_inputs()) {
    HR_ASSIGN_OR_RETURN(drop, BoolInput(c, value_inputs.end, "drop_remainder"));
  }
  if (shape_inputs.size() != input->width() ||
      value_inputs.size() != input->width()) {
    return InvalidArgument("PaddedBatch of ", input->width(),
                           " components has ", shape_inputs.size(),
                           " shapes and ", value_inputs.size(), " values");
  }
  std::vector<Shape> shapes;
  std::vector<Tensor> values;
  for (int k = 0; k < input->width(); ++k) {
    HR_ASSIGN_OR_RETURN(Shape s, PaddedShape(c.input(shape_inputs.begin + k)));
    shapes.push_back(std::move(s));
    const Tensor& v = c.input(value_inputs.begin + k);
    if (v.rank() != 0) {
      return InvalidArgument("All padding values must be scalars");
    }
    if (v.dtype() != input->spec().types[k] ||
        (!IsPlain(v.dtype()) && v.dtype() != DType::kString)) {
      return InvalidArgument("padding value ", k, " is a ",
                             DTypeName(v.dtype()), ", expected ",
                             DTypeName(input->spec().types[k]));
    }
    values.push_back(v);
  }
  return SetDataset<PaddedBatchDataset>(c, std::move(spec), std::move(input),
                                        size, drop, std::move(shapes),
                                        std::move(values));
}

HR_OP(PaddedBatchDataset)
    .Input("input_dataset: variant")
    .Input("batch_size: int64")
    .Input("padded_shapes: N * int64")
    .Input("padding_values: Toutput_types")
    .Output("handle: variant")
    .Attr("Toutput_types: list(type) >= 1")
    .Attr("output_shapes: list(shape) >= 1")
    .Attr("N: int >= 1")
    .Attr("metadata: string = ''")
    .Doc("Consecutive elements, padded and stacked.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakePadded>);

HR_OP(PaddedBatchDatasetV2)
    .Input("input_dataset: variant")
    .Input("batch_size: int64")
    .Input("padded_shapes: N * int64")
    .Input("padding_values: Toutput_types")
    .Input("drop_remainder: bool")
    .Output("handle: variant")
    .Attr("parallel_copy: bool = false")
    .Attr("Toutput_types: list(type) >= 1")
    .Attr("output_shapes: list(shape) >= 1")
    .Attr("N: int >= 1")
    .Attr("metadata: string = ''")
    .Doc("Consecutive elements, padded and stacked.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakePadded>);

}  // namespace
}  // namespace headrace
