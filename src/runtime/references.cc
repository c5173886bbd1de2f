#include "runtime/references.h"

#include "op/registry.h"

namespace headrace {

StatusOr<ResolvedOpPtr> NamedOp(const Node& n) {
  if (!n.def().is_stateful || n.def().Has(OpTrait::kUnnamedState))
    return n.op_ptr();
  const std::string* shared = n.op().attrs().Get<std::string>("shared_name");
  if (shared == nullptr || !shared->empty()) return n.op_ptr();
  AttrMap attrs = n.op().attrs();
  attrs.Set("shared_name", n.name());
  return ResolveOp(n.def(), n.op().input_types(), attrs);
}

bool TakesReference(const ResolvedOp& op, int i) {
  const auto& defs = op.def().inputs;
  for (size_t d = 0; d < defs.size(); ++d) {
    ArgRange range = op.input_range(static_cast<int>(d));
    if (i >= range.begin && i < range.end) return defs[d].is_ref;
  }
  return false;
}

StatusOr<ResolvedOpPtr> ReaderOfReference(DType dtype) {
  static const OpDef* const reader = [] {
    for (const OpDef* op : OpsOfRole(OpRole::kReadVariable)) {
      if (op->inputs[0].is_ref) return op;
    }
    return static_cast<const OpDef*>(nullptr);
  }();
  if (reader == nullptr) return Internal("no op reads references");
  return ResolveOp(*reader, {RefType(dtype)}, {{"T", dtype}});
}

}  // namespace headrace
