#include "data/dataset_op.h"

namespace headrace {

StatusOr<ElementSpec> SpecOf(const ResolvedOp& op, StringView types) {
  ElementSpec spec{op.attr<std::vector<DType>>(types),
                   op.attr<std::vector<Shape>>("output_shapes")};
  if (spec.types.size() != spec.shapes.size()) {
    return InvalidArgument(op.name(), ": ", spec.types.size(), " ", types,
                           " but ", spec.shapes.size(), " output_shapes");
  }
  return spec;
}

namespace {

template <typename T>
StatusOr<T> ScalarInput(const KernelContext& c, int i, StringView name) {
  const Tensor& t = c.input(i);
  if (t.rank() != 0 || t.dtype() != DTypeOf<T>) {
    return InvalidArgument(name, " must be a scalar");
  }
  return t.scalar<T>();
}

}  // namespace

StatusOr<int64_t> IntInput(const KernelContext& c, int i, StringView name) {
  if (c.input(i).dtype() == DType::kInt32 && c.input(i).rank() == 0) {
    return c.input(i).scalar<int32_t>();
  }
  return ScalarInput<int64_t>(c, i, name);
}

StatusOr<bool> BoolInput(const KernelContext& c, int i, StringView name) {
  return ScalarInput<bool>(c, i, name);
}

StatusOr<std::string> TextInput(const KernelContext& c, int i,
                                StringView name) {
  return ScalarInput<std::string>(c, i, name);
}

StatusOr<std::vector<std::string>> TextsInput(const KernelContext& c, int i,
                                              StringView name) {
  const Tensor& t = c.input(i);
  if (t.rank() > 1 || t.dtype() != DType::kString) {
    return InvalidArgument("`", name, "` must be a scalar or a vector.");
  }
  const auto texts = t.span<std::string>();
  return std::vector<std::string>(texts.begin(), texts.end());
}

void NoteCall(const KernelContext& c, const Dataset& dataset) {
  DatasetCall call{&c.op().def(), c.op().attrs(), {}};
  call.inputs.reserve(c.num_inputs());
  for (int i = 0; i < c.num_inputs(); ++i) {
    const Tensor& t = c.input(i);
    // Memory that is borrowed for the call alone; it belongs to small values.
    StatusOr<Tensor> kept = t.counted() ? t : t.Clone();
    if (!kept.ok()) return;  // no graph of it, then
    call.inputs.push_back(*std::move(kept));
  }
  dataset.SetCall(std::move(call));
}

Status SetDataset(KernelContext& c, DatasetPtr dataset) {
  // Refused where the dataset is made, not where some thread walks along it.
  HR_RETURN_IF_ERROR(dataset->CheckDepth());
  c.set_output(0, DatasetTensor(std::move(dataset)));
  return OkStatus();
}

Status ElementRule(ShapeContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, spec.shapes[i]);
  return OkStatus();
}

Status SetElement(KernelContext& c, Element element) {
  const auto& shapes = c.op().attr<std::vector<Shape>>("output_shapes");
  if (static_cast<int>(element.size()) != c.num_outputs()) {
    return InvalidArgument("Number of components does not match: expected ",
                           c.num_outputs(), " types but got ", element.size(),
                           ".");
  }
  for (int i = 0; i < c.num_outputs(); ++i) {
    if (element[i].dtype() != c.op().output_types()[i]) {
      return InvalidArgument("Data type mismatch at component ", i,
                             ": expected ", DTypeName(c.op().output_types()[i]),
                             " but got ", DTypeName(element[i].dtype()), ".");
    }
    // Shapes are promises of who made the dataset; functions may have broken
    // them.
    if (!shapes[i].CompatibleWith(element[i].shape())) {
      return InvalidArgument("Incompatible shapes at component ", i,
                             ": expected ", shapes[i], " but got ",
                             element[i].shape(), ".");
    }
    c.set_output(i, std::move(element[i]));
  }
  return OkStatus();
}

}  // namespace headrace
