#include "op/op_like.h"

#include <cstdio>
#include <cstdlib>

#include "op/registry.h"

namespace headrace {
namespace {

bool TurnIntoReferences(std::vector<ArgDef>& args) {
  bool any = false;
  for (ArgDef& arg : args) {
    if (arg.type != DType::kResource) continue;
    arg.type = DType::kString;
    arg.is_ref = any = true;
  }
  return any;
}

}  // namespace

bool RegisterLike(const char* name, const char* of,
                  void (*change)(OpDef& def)) {
  const OpDef* known = FindOp(of);
  if (known == nullptr) {
    // A mistake in our own source, as in OpBuilder.
    std::fprintf(stderr, "op %s is like %s, which is not defined yet\n", name,
                 of);
    std::abort();
  }
  OpDef def = *known;
  def.name = name;
  if (change != nullptr) change(def);
  internal::AddOp(std::move(def));
  return true;
}

void ByReference(OpDef& def) {
  TurnIntoReferences(def.inputs);
  def.is_stateful = TurnIntoReferences(def.outputs);
  if (def.is_stateful) def.shape_fn = ReferenceShape;
}

Status ReferenceShape(ShapeContext& c) {
  c.set_output(0, Shape{2});
  return OkStatus();
}

}  // namespace headrace
