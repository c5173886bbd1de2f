// Shapes and small constants of nodes, as they are added.
#include "graph/builder.h"
#include "graph/shape_error.h"
#include "op/kernel.h"
#include "op/registry.h"
#include "op/run_kernel.h"
#include "op/shape_context.h"

namespace headrace {
namespace {

constexpr int64_t kMostFolded = 1024;  // elements
constexpr int kDeepest = 64;           // of nodes looked through

// Runs the node's kernel on constants (or on described inputs, for kernels
// that read shapes only). An error means: not known.
void FoldSmall(Node* n, absl::Span<const Tensor* const> inputs) {
  if (n->num_outputs() != 1 || n->def().is_stateful) return;
  if (CallsFunctions(n->def())) return;  // a loop may go on for ever
  DType d = n->output_type(0);
  if (d != DType::kInt32 && d != DType::kInt64 && d != DType::kBool) return;
  const Shape& shape = n->output_shape(0);
  if (!shape.fully_known() || shape.num_elements() > kMostFolded) return;
  StatusOr<Kernel*> kernel = n->op().EagerKernel();
  if (!kernel.ok()) return;
  StatusOr<Tensor> out = Tensor::Allocate(d, shape);
  if (!out.ok()) return;
  absl::InlinedVector<Tensor*, 4> in(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    in[i] = const_cast<Tensor*>(inputs[i]);
  }
  Tensor* outputs[] = {&*out};
  RunServices services;
  KernelContext c(n->op(), in.data(), outputs, services);
  if (RunKernel(*kernel, c).ok() && out->has_buffer()) {
    n->set_constant(*std::move(out));
  }
}

void SetConstant(Node* n, absl::Span<const Tensor* const> values) {
  const std::string& name = n->op().name();
  if (name == "Const") {
    if (const Tensor* t = n->op().attrs().Get<Tensor>("value")) {
      n->set_constant(*t);
    }
    return;
  }
  if (name == "Size" || name == "Shape" || name == "Rank") {
    const Edge& e = n->input(0);
    const Shape& s = e.node->output_shape(e.index);
    if (name == "Rank" ? s.known_rank() : s.fully_known()) {
      Tensor described(e.node->output_type(e.index), s);
      const Tensor* input = &described;
      FoldSmall(n, {&input, 1});
    }
    return;
  }
  if (values.empty()) return;
  for (const Tensor* t : values) {
    if (t == nullptr || t->num_elements() > kMostFolded) return;
  }
  FoldSmall(n, values);
}

struct PartialArg {
  const Node* node;
};
Shape PartialOfInput(const void* arg, int i) {
  return PartialShapeOf(static_cast<const PartialArg*>(arg)->node->input(i));
}

// A known integer scalar, or -1.
int64_t ScalarOr(const Edge& e, int64_t otherwise) {
  const Tensor* t = e.index == 0 ? e.node->constant() : nullptr;
  if (t == nullptr || t->num_elements() != 1) return otherwise;
  return t->dtype() == DType::kInt32 || t->dtype() == DType::kInt64
             ? t->IntAt(0)
             : otherwise;
}

// One element of a partly known shape: x[i] with a constant i.
int64_t PartialScalar(const Edge& e, int depth) {
  int64_t known = ScalarOr(e, -2);
  if (known != -2) return known;
  if (depth > kDeepest) return Shape::kUnknown;
  const Node* n = e.node;
  const std::string& op = n->op().name();
  if (op == "Cast" || op == "Identity") {
    return PartialScalar(n->input(0), depth + 1);
  }
  if (op == "StridedSlice" && n->op().int_attr("shrink_axis_mask") == 1) {
    int64_t begin = ScalarOr(n->input(1), -2);
    Shape s = PartialShapeOf(n->input(0), depth + 1);
    if (!s.known_rank() || begin == -2) return Shape::kUnknown;
    if (begin < 0) begin += s.rank();
    if (begin >= 0 && begin < s.rank()) return s[static_cast<int>(begin)];
  }
  return Shape::kUnknown;
}

Shape PartialSlice(const Node* n, int depth) {
  const ResolvedOp& op = n->op();
  if (op.int_attr("ellipsis_mask") || op.int_attr("new_axis_mask") ||
      op.int_attr("shrink_axis_mask")) {
    return Shape::UnknownRank();
  }
  Shape s = PartialShapeOf(n->input(0), depth + 1);
  int64_t begin = op.int_attr("begin_mask") & 1 ? 0 : ScalarOr(n->input(1), -2);
  constexpr int64_t kAll = int64_t{1} << 40;
  int64_t end =
      op.int_attr("end_mask") & 1 ? kAll : ScalarOr(n->input(2), kAll + 1);
  if (!s.known_rank() || begin == -2 || end == kAll + 1 ||
      ScalarOr(n->input(3), 0) != 1) {
    return Shape::UnknownRank();
  }
  int64_t rank = s.rank();
  if (begin < 0) begin += rank;
  if (end < 0) end += rank;
  begin = std::clamp<int64_t>(begin, 0, rank);
  end = std::clamp<int64_t>(end, begin, rank);
  return Shape(s.dims().subspan(begin, end - begin));
}

}  // namespace

Shape PartialShapeOf(const Edge& e, int depth) {
  const Node* n = e.node;
  if (depth > kDeepest) return Shape::UnknownRank();
  if (const Tensor* t = e.index == 0 ? n->constant() : nullptr) {
    if (t->rank() != 1 ||
        (t->dtype() != DType::kInt32 && t->dtype() != DType::kInt64)) {
      return Shape::UnknownRank();
    }
    Shape s;
    for (int64_t i = 0; i < t->num_elements(); ++i) {
      s.AddDim(std::max<int64_t>(t->IntAt(i), Shape::kUnknown));
    }
    return s;
  }
  const std::string& op = n->op().name();
  if (op == "Shape") {
    const Edge& in = n->input(0);
    return in.node->output_shape(in.index);
  }
  if (op == "Cast" || op == "Identity") {
    return PartialShapeOf(n->input(0), depth + 1);
  }
  if (op == "Pack" && n->op().int_attr("axis") == 0) {
    Shape s;
    for (const Edge& in : n->inputs()) {
      s.AddDim(
          std::max<int64_t>(PartialScalar(in, depth + 1), Shape::kUnknown));
    }
    return s;
  }
  if (op == "ConcatV2") {
    Shape s;
    for (int i = 0; i + 1 < n->num_inputs(); ++i) {
      s = s.Concat(PartialShapeOf(n->input(i), depth + 1));
    }
    return s;
  }
  if (op == "StridedSlice") return PartialSlice(n, depth);
  return Shape::UnknownRank();
}

void SetShape(const Value& v, const Shape& shape) {
  v.node()->set_output_shape(v.index(), shape);
  v.set_shape(shape);
}

Status InferNode(Node* n) {
  int inputs = n->num_inputs();
  absl::InlinedVector<const Shape*, 4> shapes(inputs);
  absl::InlinedVector<const Tensor*, 4> values(inputs);
  absl::InlinedVector<const HandleData*, 4> handles(inputs);
  absl::InlinedVector<std::shared_ptr<const HandleData>, 4> held(inputs);
  bool any_handle = false;
  for (int i = 0; i < inputs; ++i) {
    const Edge& e = n->input(i);
    shapes[i] = &e.node->output_shape(e.index);
    values[i] = e.index == 0 ? e.node->constant() : nullptr;
    held[i] = e.node->output_handle(e.index);
    handles[i] = held[i].get();
    any_handle = any_handle || handles[i];
  }
  if (n->def().shape_fn) {
    ShapeContext c(n->op(), shapes, values);
    if (any_handle) c.set_input_handles(handles);
    PartialArg arg{n};
    c.set_partial_shapes(PartialOfInput, &arg);
    Status fits = n->def().shape_fn(c);
    if (!fits.ok()) return ShapeErrorInGraph(*n, c, fits);
    HR_RETURN_IF_ERROR(CheckShapesInGraph(*n, c));
    for (int i = 0; i < n->num_outputs(); ++i) {
      n->set_output_shape(i, c.output(i));
      if (auto h = c.output_handle(i)) n->set_output_handle(i, std::move(h));
    }
  }
  SetConstant(n, values);
  return OkStatus();
}

}  // namespace headrace
