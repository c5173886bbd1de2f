// Rewrites of a program that need no knowledge of particular kernels.
#include "absl/container/flat_hash_map.h"
#include "op/registry.h"
#include "op/run_once.h"
#include "op/shape_context.h"
#include "runtime/program.h"

namespace headrace {
namespace {

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
    if (!IsPlain(p.values[v].dtype) && p.values[v].dtype != DType::kString) {
      return false;
    }
  }
  return !CallsFunctions(call.op->def());
}

// A shape op's value, where tracing knows the input's shape.
bool FoldShape(Program& p, const Call& call) {
  const std::string& op = call.op->name();
  if (op != "Shape" && op != "Size" && op != "Rank") return false;
  const Shape& s = p.values[call.inputs[0]].shape;
  if (op == "Rank" ? !s.known_rank() : !s.fully_known()) return false;
  int64_t n = op == "Rank" ? s.rank() : op == "Size" ? s.num_elements() : 0;
  bool wide = call.op->output_types()[0] == DType::kInt64;
  Tensor t;
  if (op == "Shape") {
    std::vector<int32_t> dims(s.dims().begin(), s.dims().end());
    t = wide ? Tensor::Vector(s) : Tensor::Vector<int32_t>(dims);
  } else {
    t = wide ? Tensor::Scalar<int64_t>(n)
             : Tensor::Scalar<int32_t>(static_cast<int32_t>(n));
  }
  p.values[call.outputs[0]].constant = std::move(t);
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

std::vector<ValueId> Themselves(const Program& p) {
  std::vector<ValueId> ids(p.values.size());
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<ValueId>(i);
  return ids;
}

void Compact(Program& p) {
  std::erase_if(p.calls, [](const Call& c) { return c.dead; });
}

bool IsAll(const Tensor& t, double number) {
  if (!t.has_buffer() || t.num_elements() != 1) return false;
  bool same = false;
  DispatchDType(t.dtype(), TypeList<float, double, int32_t, int64_t>{},
                [&](auto tag) {
                  using T = typename decltype(tag)::type;
                  same = t.scalar<T>() == static_cast<T>(number);
                });
  return same;
}

// The input that the call's output equals, or -1.
int EqualInput(const Program& p, const Call& call) {
  const std::string& op = call.op->name();
  auto constant = [&](int i) -> const Tensor& {
    return p.values[call.inputs[i]].constant;
  };
  auto same_shape = [&](int i) {
    const Shape& in = p.values[call.inputs[i]].shape;
    return in.fully_known() && in == p.values[call.outputs[0]].shape;
  };
  if (op == "Identity" || op == "StopGradient" || op == "PreventGradient" ||
      op == "Snapshot") {
    return IsRef(call.op->input_types()[0]) ? -1 : 0;
  }
  if (op == "Squeeze") return same_shape(0) ? 0 : -1;
  if (op == "Reshape" || op == "ExpandDims" || op == "BroadcastTo") {
    return same_shape(0) && constant(1).has_buffer() ? 0 : -1;
  }
  if (op == "Cast") {
    const auto types = call.op->input_types();
    return types[0] == call.op->output_types()[0] ? 0 : -1;
  }
  if (op == "Mul") {
    if (IsAll(constant(1), 1) && same_shape(0)) return 0;
    if (IsAll(constant(0), 1) && same_shape(1)) return 1;
  }
  if ((op == "RealDiv" || op == "Div") && IsAll(constant(1), 1) &&
      same_shape(0)) {
    return 0;
  }
  if (op == "AddN" && call.inputs.size() == 1) return 0;
  return -1;
}

// A bias along the last dimension is a broadcast sum, which fuses.
void BiasAsSum(const Program& p, Call& call) {
  const std::string& op = call.op->name();
  if (op != "BiasAdd" && op != "BiasAddV1") return;
  const auto* format = call.op->attrs().Get<std::string>("data_format");
  const Shape& x = p.values[call.inputs[0]].shape;
  const Shape& bias = p.values[call.inputs[1]].shape;
  if ((format && *format != "NHWC") || !x.fully_known() || x.rank() < 2 ||
      !bias.fully_known() || bias.rank() != 1 || bias[0] != x[x.rank() - 1]) {
    return;
  }
  const OpDef* def = FindOp("AddV2");
  if (def == nullptr) return;
  auto sum = ResolveOp(*def, call.op->input_types(), {});
  if (sum.ok()) call.op = *std::move(sum);
}

// A sum of several tensors of one known shape.
bool IsPlainSum(const Program& p, const Call& call) {
  constexpr size_t kMost = 8;  // terms
  if (call.op->name() != "AddN" || call.effect || call.inputs.size() < 2 ||
      call.inputs.size() > kMost) {
    return false;
  }
  const ProgramValue& sum = p.values[call.outputs[0]];
  if (!IsPlain(sum.dtype) || !sum.shape.fully_known()) return false;
  for (ValueId v : call.inputs) {
    if (p.values[v].shape != sum.shape) return false;
  }
  return true;
}

// Sums of several become sums of two, which fuse. AddN adds from left to right
// as well: the bits stay.
void SplitSums(Program& p) {
  const OpDef* def = FindOp("AddV2");
  std::vector<Call> calls;
  calls.reserve(p.calls.size());
  for (Call& call : p.calls) {
    if (def == nullptr || !IsPlainSum(p, call)) {
      calls.push_back(std::move(call));
      continue;
    }
    const ProgramValue sum = p.values[call.outputs[0]];
    auto add = ResolveOp(*def, {sum.dtype, sum.dtype}, {});
    if (!add.ok()) {
      calls.push_back(std::move(call));
      continue;
    }
    ValueId so_far = call.inputs[0];
    for (size_t i = 1; i < call.inputs.size(); ++i) {
      Call part;
      part.op = *add;
      part.name = call.name;
      part.inputs = {so_far, call.inputs[i]};
      so_far = i + 1 == call.inputs.size() ? call.outputs[0]
                                           : p.NewValue(sum.dtype, sum.shape);
      part.outputs = {so_far};
      calls.push_back(std::move(part));
    }
  }
  p.calls = std::move(calls);
}

bool Broadcasts(const std::string& op) {
  return op == "AddV2" || op == "Add" || op == "Sub" || op == "Mul" ||
         op == "RealDiv" || op == "Maximum" || op == "Minimum" ||
         op == "SquaredDifference";
}

// The broadcasts that known shapes say all of.
class Broadcasted {
 public:
  explicit Broadcasted(Program& p) : p_(p), by_(p.values.size(), nullptr) {}

  // `call` stays where it is from now on.
  void Note(const Call& call) {
    if (call.op->name() == "BroadcastTo" &&
        p_.values[call.inputs[1]].constant.has_buffer() &&
        p_.values[call.inputs[0]].shape.fully_known()) {
      by_.resize(p_.values.size(), nullptr);
      by_[call.outputs[0]] = &call;
    }
  }
  // The broadcast that makes `v`, or null.
  const Call* Of(ValueId v) const {
    return v < static_cast<ValueId>(by_.size()) ? by_[v] : nullptr;
  }

  // What is broadcast to the shape of what it meets in an op that broadcasts
  // by itself is taken as it was.
  void Skip(Call& call) const {
    const Shape& shape = p_.values[call.outputs[0]].shape;
    for (int i : {0, 1}) {
      const Call* wide = Of(call.inputs[i]);
      if (wide && p_.values[call.inputs[1 - i]].shape == shape &&
          p_.values[call.inputs[i]].shape == shape) {
        call.inputs[i] = wide->inputs[0];
      }
    }
  }

  // Where one number is all that the broadcast meets, the call comes first:
  // true when `call` is that now and *after is the broadcast behind it.
  bool Swap(Call& call, Call* after) {
    for (int i : {0, 1}) {
      const Call* wide = Of(call.inputs[i]);
      const ProgramValue& one = p_.values[call.inputs[1 - i]];
      const ValueId out = call.outputs[0];
      if (!wide || p_.values[out].shape != p_.values[call.inputs[i]].shape ||
          !one.constant.has_buffer() || one.constant.num_elements() != 1) {
        continue;
      }
      const Shape narrow = p_.values[wide->inputs[0]].shape;
      if (one.shape.rank() > narrow.rank()) continue;
      if (p_.values[out].dtype != p_.values[wide->inputs[0]].dtype) continue;
      *after = *wide;
      const ValueId made = p_.NewValue(p_.values[out].dtype, narrow);
      call.inputs[i] = wide->inputs[0];
      call.outputs[0] = made;
      after->inputs[0] = made;
      after->outputs[0] = out;
      return true;
    }
    return false;
  }

 private:
  Program& p_;
  std::vector<const Call*> by_;
};

void SkipBroadcasts(Program& p) {
  Broadcasted broadcasted(p);
  std::vector<Call> calls;
  calls.reserve(2 * p.calls.size());  // where a call stands, it stays
  for (Call& call : p.calls) {
    calls.push_back(std::move(call));
    Call& c = calls.back();
    if (Broadcasts(c.op->name()) && c.inputs.size() == 2 && !c.effect &&
        p.values[c.outputs[0]].shape.fully_known()) {
      broadcasted.Skip(c);
      Call after;
      if (broadcasted.Swap(c, &after)) calls.push_back(std::move(after));
    }
    broadcasted.Note(calls.back());
  }
  p.calls = std::move(calls);
}

// IdentityN hands all its inputs on; those that nobody reads need no call.
bool HandsOnAll(const Call& call) {
  if (call.op->name() != "IdentityN") return false;
  for (DType d : call.op->input_types()) {
    if (IsRef(d)) return false;
  }
  return true;
}

}  // namespace

void FoldConstants(Program& p) {
  for (Call& call : p.calls) {
    if (call.dead) continue;
    InferShapes(p, call);
    if (call.effect) continue;
    if (FoldShape(p, call)) {
      call.dead = true;
      continue;
    }
    if (!Foldable(p, call)) continue;
    StatusOr<std::vector<Tensor>> outputs = Evaluate(p, call);
    if (!outputs.ok()) continue;  // the run will report it
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      p.values[call.outputs[i]].shape = (*outputs)[i].shape();
      p.values[call.outputs[i]].constant = std::move((*outputs)[i]);
    }
    call.dead = true;
  }
  Compact(p);
}

void MergeEqualCalls(Program& p) {
  absl::flat_hash_map<CallKey, const Call*> first;
  std::vector<ValueId> by = Themselves(p);
  for (Call& call : p.calls) {
    for (ValueId& v : call.inputs) v = by[v];
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

void Simplify(Program& p) {
  SplitSums(p);
  SkipBroadcasts(p);
  std::vector<ValueId> by = Themselves(p);
  for (Call& call : p.calls) {
    for (ValueId& v : call.inputs) v = by[v];
    if (call.effect) continue;
    if (HandsOnAll(call)) {
      for (size_t i = 0; i < call.outputs.size(); ++i) {
        by[call.outputs[i]] = call.inputs[i];
      }
      call.dead = true;
      continue;
    }
    if (call.outputs.size() != 1) continue;
    BiasAsSum(p, call);
    int equal = EqualInput(p, call);
    if (equal < 0) continue;
    by[call.outputs[0]] = call.inputs[equal];
    call.dead = true;
  }
  Replace(p, by);
  Compact(p);
}

Status Optimise(Program& p) {
  HR_RETURN_IF_ERROR(ExpandNormalisation(p));
  FoldConstants(p);
  Simplify(p);
  MergeEqualCalls(p);
  DropUnused(p);
  NarrowProducts(p);
  ViewOperands(p);
  return OkStatus();
}

}  // namespace headrace
