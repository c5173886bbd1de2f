// Rewrites of a program that need no knowledge of particular kernels.
#include "base/hash_map.h"
#include "op/registry.h"
#include "op/run_once.h"
#include "op/shape_context.h"
#include "runtime/program.h"

namespace headrace {
namespace {

// Constants up to this size are computed when the plan is made. Larger ones (a
// Fill of zeros for a gigabyte) would be held for the plan's life where a run
// needs them for a moment.
constexpr int64_t kMostFoldedBytes = 16 << 20;

// Runs the call on its constant inputs.
StatusOr<std::vector<Tensor>> Evaluate(const Program& p, const Call& call) {
  HR_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, BindKernel(*call.op));
  std::vector<Tensor*> in, out;
  for (ValueId v : call.inputs) {
    in.push_back(const_cast<Tensor*>(&p.values[v].constant));
  }
  std::vector<Tensor> outputs(call.outputs.size());
  for (Tensor& t : outputs) out.push_back(&t);
  HR_RETURN_IF_ERROR(
      RunOnce(*call.op, *kernel, in, out, RunServices(), kMostFoldedBytes));
  return outputs;
}

bool Foldable(const Program& p, const Call& call) {
  if (call.effect || call.op->def().is_stateful) return false;
  for (ValueId v : call.inputs) {
    if (!p.values[v].constant.has_buffer()) return false;
  }
  for (ValueId v : call.outputs) {
    // Variants may be lists that runs write to.
    if (!IsPlain(p.values[v].dtype) && p.values[v].dtype != DType::kString) {
      return false;
    }
  }
  // A loop on constants may never end.
  return !CallsFunctions(call.op->def());
}

// The value of what describes a shape, where that is known.
bool FoldShape(Program& p, const Call& call) {
  const ValueOfShapeFn value_of = call.op->def().value_of_shape;
  if (value_of == nullptr) return false;
  std::optional<Tensor> t = value_of(*call.op, p.values[call.inputs[0]].shape);
  if (!t) return false;
  p.values[call.outputs[0]].constant = *std::move(t);
  return true;
}

// Shapes that follow from those of the inputs. They hold also where a program
// claimed others (Tensor.set_shape, a body traced for other arguments): kernels
// write what the rule says. What the rule refuses the run will report; until
// then nothing may build on such a call's shapes.
void InferShapes(Program& p, const Call& call) {
  const ShapeFn fn = call.op->def().shape_fn;
  if (fn == nullptr || call.outputs.empty()) return;
  std::vector<const Shape*> shapes;
  std::vector<const Tensor*> values;
  for (ValueId v : call.inputs) {
    const ProgramValue& in = p.values[v];
    if (!in.shape.fully_known()) return;
    shapes.push_back(&in.shape);
    values.push_back(in.constant.has_buffer() ? &in.constant : nullptr);
  }
  ShapeContext c(*call.op, shapes, values);
  const bool fits = fn(c).ok();
  for (size_t o = 0; o < call.outputs.size(); ++o) {
    ProgramValue& out = p.values[call.outputs[o]];
    if (IsRef(out.dtype)) continue;
    const Shape& found = c.output(static_cast<int>(o));
    if (!fits) {
      out.shape = Shape::UnknownRank();
    } else if (found.fully_known()) {
      out.shape = found;
    }
  }
}

struct CallKey {
  const Call* call;
  bool operator==(const CallKey& o) const {
    const Call &a = *call, &b = *o.call;
    return a.inputs == b.inputs &&
           (a.op == b.op ||
            (&a.op->def() == &b.op->def() && a.op->attrs() == b.op->attrs()));
  }
  template <typename H>
  friend H AbslHashValue(H h, const CallKey& k) {
    for (ValueId v : k.call->inputs) h = H::combine(std::move(h), v);
    return H::combine(std::move(h), &k.call->op->def());
  }
};

void Replace(Program& p, const std::vector<ValueId>& by) {
  auto final_id = [&](ValueId v) {
    while (by[v] != v) v = by[v];
    return v;
  };
  for (Call& call : p.calls) {
    for (ValueId& v : call.inputs) v = final_id(v);
  }
  for (ValueId& v : p.fetches) v = final_id(v);
}

std::vector<ValueId> IdentityMapping(const Program& p) {
  std::vector<ValueId> ids(p.values.size());
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<ValueId>(i);
  return ids;
}

void Compact(Program& p) {
  std::erase_if(p.calls, [](const Call& c) { return c.dead; });
}

}  // namespace

bool FoldCall(Program& p, const Call& call) {
  InferShapes(p, call);
  if (call.effect) return false;
  if (FoldShape(p, call)) return true;
  if (!Foldable(p, call)) return false;
  StatusOr<std::vector<Tensor>> outputs = Evaluate(p, call);
  if (!outputs.ok()) return false;  // the run will report it
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    p.values[call.outputs[i]].shape = (*outputs)[i].shape();
    p.values[call.outputs[i]].constant = std::move((*outputs)[i]);
  }
  return true;
}

void FoldConstants(Program& p) {
  for (Call& call : p.calls) call.dead = FoldCall(p, call);
  Compact(p);
}

void MergeEqualCalls(Program& p) {
  HashMap<CallKey, const Call*> first;
  std::vector<ValueId> by = IdentityMapping(p);
  for (Call& call : p.calls) {
    // Inputs are replaced as the pass goes, so that calls equal but for equal
    // inputs merge too.
    for (ValueId& v : call.inputs) v = by[v];
    // Two random ops are two draws. Calls without inputs are constants (folded)
    // or sources.
    if (call.effect || call.op->def().is_stateful || call.inputs.empty()) {
      continue;
    }
    auto [it, added] = first.emplace(CallKey{&call}, &call);
    if (added) continue;
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      by[call.outputs[i]] = it->second->outputs[i];
    }
    call.dead = true;
  }
  Replace(p, by);
  Compact(p);
}

void DropUnused(Program& p) {
  std::vector<bool> used(p.values.size());
  for (ValueId v : p.fetches) used[v] = true;
  for (size_t i = p.calls.size(); i-- > 0;) {
    Call& call = p.calls[i];
    bool needed = call.effect;
    for (ValueId v : call.outputs) needed = needed || used[v];
    call.dead = !needed;
    if (!needed) continue;
    for (ValueId v : call.inputs) used[v] = true;
  }
  Compact(p);
}

Status Optimise(Program& p) {
  // The order matters: folded constants let calls be simplified, simplified
  // ones become equal, merged ones unused; products are narrowed and viewed
  // when only what is read is left.
  FoldConstants(p);
  Simplify(p);
  MergeEqualCalls(p);
  DropUnused(p);
  NarrowProducts(p);
  ViewOperands(p);
  return OkStatus();
}

}  // namespace headrace
