// Shapes and small constants of nodes, as they are added.
#include "graph/builder.h"
#include "graph/partial.h"
#include "graph/shape_error.h"
#include "op/kernel.h"
#include "op/registry.h"
#include "op/run_once.h"
#include "op/shape_context.h"

namespace headrace {
namespace {

// Elements. Folded while a graph is built are sizes, axes and the like, of
// which shape rules ask; data are left to the passes (kMostFoldedBytes).
constexpr int64_t kMostFolded = 1024;

// Runs the node's kernel on constants. An error means: not known.
void FoldSmall(Node* n, absl::Span<const Tensor* const> inputs) {
  // A stateful op must run in each call.
  if (n->num_outputs() != 1 || n->def().is_stateful) return;
  if (CallsFunctions(n->def())) return;           // a loop may go on for ever
  if (n->def().Is(OpRole::kPlaceholder)) return;  // may be fed something else
  DType d = n->output_type(0);
  // What shape rules read; floats would be computed for nobody.
  if (d != DType::kInt32 && d != DType::kInt64 && d != DType::kBool) return;
  const Shape& shape = n->output_shape(0);
  // The size must be known before the kernel runs, so that a large one is not
  // made.
  if (!shape.fully_known() || shape.num_elements() > kMostFolded) return;
  StatusOr<Kernel*> kernel = n->op().EagerKernel();
  if (!kernel.ok()) return;
  absl::InlinedVector<Tensor*, 4> in(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    in[i] = const_cast<Tensor*>(inputs[i]);
  }
  Tensor out;
  Tensor* const output = &out;
  const Status ran =
      RunOnce(n->op(), **kernel, in, {&output, 1}, RunServices());
  if (ran.ok() && out.has_buffer()) n->set_constant(std::move(out));
}

void SetConstant(Node* n, absl::Span<const Tensor* const> values) {
  const OpDef& def = n->def();
  if (def.Is(OpRole::kConstant)) {
    if (const Tensor* t = n->op().attrs().Get<Tensor>("value")) {
      n->set_constant(*t);
    }
    return;
  }
  // Shape, Size and Rank need no value of their input.
  if (def.value_of_shape) {
    const Edge& e = n->input(0);
    const Shape& s = e.node->output_shape(e.index);
    std::optional<Tensor> value = def.value_of_shape(n->op(), s);
    if (value) n->set_constant(*std::move(value));
    return;
  }
  // No inputs: a constant was seen to above, anything else makes its value when
  // it runs.
  if (values.empty()) return;
  for (const Tensor* t : values) {
    if (t != nullptr && t->num_elements() <= kMostFolded) continue;
    if (std::optional<Tensor> found = PartialConstant(n)) {
      n->set_constant(*std::move(found));
    }
    return;
  }
  FoldSmall(n, values);
}

struct PartialArg {
  const Node* node;
};
Shape PartialOfInput(const void* arg, int i) {
  return PartialShapeOf(static_cast<const PartialArg*>(arg)->node->input(i));
}

}  // namespace

void SetShape(const Value& v, const Shape& shape) {
  v.node()->set_output_shape(v.index(), shape);
  v.set_shape(shape);
}

Status InferNode(Node* n) {
  int inputs = n->num_inputs();
  absl::InlinedVector<const Shape*, 4> shapes(inputs);
  absl::InlinedVector<const Tensor*, 4> values(inputs);
  absl::InlinedVector<const HandleData*, 4> handles(inputs);
  // output_handle gives shared pointers; they are held here while the rule
  // reads what is behind them.
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
    c.set_in_graph();
    if (any_handle) c.set_input_handles(handles);
    PartialArg arg{n};
    c.set_partial_shapes(PartialOfInput, &arg);
    Status fits = RunShapeRule(c);
    if (!fits.ok()) return ShapeErrorInGraph(*n, c, fits);
    for (int i = 0; i < n->num_outputs(); ++i) {
      n->set_output_shape(i, c.output(i));
      if (auto h = c.output_handle(i)) n->set_output_handle(i, std::move(h));
    }
  }
  // After the shapes, which decide what may be folded.
  SetConstant(n, values);
  return OkStatus();
}

}  // namespace headrace
