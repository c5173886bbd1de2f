// Calls are replaced by what their ops' own files say is simpler, and
// broadcasts before ops that broadcast by themselves are left out.
#include "op/passes/simplify.h"

#include <algorithm>

#include "base/hash_map.h"
#include "op/registry.h"
#include "op/shape_context.h"
#include "runtime/program.h"

namespace headrace {
namespace {

// Which values somebody reads. Of those that came later nothing is known.
class Readers {
 public:
  explicit Readers(const Program& p) : read_(p.values.size()) {
    for (const Call& call : p.calls) {
      for (ValueId v : call.inputs) read_[v] = true;
    }
    for (ValueId v : p.fetches) read_[v] = true;
  }
  bool Has(ValueId v) const {
    return v >= static_cast<ValueId>(read_.size()) || read_[v];
  }

 private:
  std::vector<bool> read_;
};

// One call as its op's rule sees it. What the rule says is kept here until it
// has succeeded.
class CallContext final : public SimplifyContext {
 public:
  CallContext(Program& p, const Call& call, const Readers& readers)
      : p_(p), call_(call), readers_(readers), first_made_(p.values.size()) {}

  const ResolvedOp& op() const override { return *call_.op; }
  Shape input_shape(int i) const override {
    return p_.values[call_.inputs[i]].shape;
  }
  Shape output_shape(int o) const override {
    return p_.values[call_.outputs[o]].shape;
  }
  Tensor value(int i) const override {
    return p_.values[call_.inputs[i]].constant;
  }
  bool is_read(int o) const override { return readers_.Has(call_.outputs[o]); }

  PlanValue input(int i) const override { return {call_.inputs[i]}; }
  PlanValue Constant(Tensor t) override {
    const ValueId v = p_.NewValue(t.dtype(), t.shape());
    p_.values[v].constant = std::move(t);
    return {v};
  }
  PlanValue operator()(StringView op, std::initializer_list<PlanValue> inputs,
                       const AttrMap& attrs) override {
    if (!status_.ok()) return {};
    StatusOr<PlanValue> made = Emit(op, inputs, attrs);
    if (!made.ok()) status_ = made.status();
    return made.ok() ? *made : PlanValue();
  }
  void Replace(int o, PlanValue v) override {
    if (!status_.ok()) return;
    ProgramValue& by = p_.values[v.id];
    const ProgramValue& old = p_.values[call_.outputs[o]];
    if (by.dtype != old.dtype) {
      status_ = Internal(call_.op->name(), ": output ", o,
                         " is replaced by a tensor of another type");
      return;
    }
    // What was known of the output holds for what is made in its place.
    if (static_cast<size_t>(v.id) >= first_made_ && !by.constant.has_buffer()) {
      StatusOr<Shape> both = MergeShapes(by.shape, old.shape);
      if (both.ok()) by.shape = *std::move(both);
    }
    replaced_.emplace_back(call_.outputs[o], v.id);
  }

  std::vector<Call>& calls() { return calls_; }
  // Outputs and what replaces them.
  const std::vector<std::pair<ValueId, ValueId>>& replaced() const {
    return replaced_;
  }

 private:
  StatusOr<PlanValue> Emit(StringView op,
                           std::initializer_list<PlanValue> inputs,
                           const AttrMap& attrs) {
    HR_ASSIGN_OR_RETURN(const OpDef* def, LookUpOp(op));
    Call call;
    call.name = call_.name;
    absl::InlinedVector<DType, 4> types;
    absl::InlinedVector<const Shape*, 4> shapes;
    absl::InlinedVector<const Tensor*, 4> values;
    for (PlanValue v : inputs) {
      const ProgramValue& in = p_.values[v.id];
      call.inputs.push_back(v.id);
      types.push_back(in.dtype);
      shapes.push_back(&in.shape);
      values.push_back(in.constant.has_buffer() ? &in.constant : nullptr);
    }
    HR_ASSIGN_OR_RETURN(call.op, ResolveOp(*def, types, attrs));
    ShapeContext c(*call.op, shapes, values);
    HR_RETURN_IF_ERROR(RunShapeRule(c));
    for (int o = 0; o < call.op->num_outputs(); ++o) {
      call.outputs.push_back(
          p_.NewValue(call.op->output_types()[o], c.output(o)));
    }
    const ValueId out = call.outputs[0];
    if (!FoldCall(p_, call)) calls_.push_back(std::move(call));
    return PlanValue{out};
  }

  Program& p_;
  const Call& call_;
  const Readers& readers_;
  const size_t first_made_;
  std::vector<Call> calls_;
  std::vector<std::pair<ValueId, ValueId>> replaced_;
};

class Simplifier {
 public:
  explicit Simplifier(Program& p) : p_(p), readers_(p) {}

  void Run() {
    std::vector<Call> calls = std::move(p_.calls);
    calls_.reserve(calls.size());
    for (Call& call : calls) Add(std::move(call));
    p_.calls = std::move(calls_);
    for (ValueId& v : p_.fetches) v = Final(v);
  }

 private:
  // What stands in the place of `v` now.
  ValueId Final(ValueId v) const {
    while (v < static_cast<ValueId>(by_.size()) && by_[v] != kNoValue) {
      v = by_[v];
    }
    return v;
  }

  void Add(Call call) {
    for (ValueId& v : call.inputs) v = Final(v);
    if (call.op->def().Has(OpTrait::kBroadcasts) && !call.effect &&
        p_.values[call.outputs[0]].shape.fully_known()) {
      SkipBroadcasts(call);
      Call after;
      if (SwapBroadcast(call, &after)) {
        AddSimplified(std::move(call));
        call = std::move(after);
      }
    }
    AddSimplified(std::move(call));
  }

  // Appends the call, or what its op's rule has for it.
  void AddSimplified(Call call) {
    for (ValueId& v : call.inputs) v = Final(v);
    if (call.effect || !Replaced(call)) {
      NoteBroadcast(call);
      calls_.push_back(std::move(call));
    }
  }

  // True where nobody reads the call any more.
  bool Replaced(const Call& call) {
    const SimplifyFn rule = call.op->def().simplify;
    if (rule == nullptr) return false;
    CallContext c(p_, call, readers_);
    // What a rule began and gave up leaves only values that no call makes and
    // nobody reads.
    if (!rule(c).ok() || c.replaced().empty()) return false;
    // What takes a call's place is simplified in turn, which ends, as rules
    // make simpler calls.
    for (Call& made : c.calls()) Add(std::move(made));
    by_.resize(p_.values.size(), kNoValue);
    for (const auto& [output, by] : c.replaced()) by_[output] = Final(by);
    return std::all_of(
        call.outputs.begin(), call.outputs.end(),
        [&](ValueId v) { return by_[v] != kNoValue || !readers_.Has(v); });
  }

  // Keeps the call, the next to be added, if it is a broadcast of which known
  // shapes say all.
  void NoteBroadcast(const Call& call) {
    if (!call.op->def().Is(OpRole::kBroadcastTo) ||
        !p_.values[call.inputs[1]].constant.has_buffer() ||
        !p_.values[call.inputs[0]].shape.fully_known()) {
      return;
    }
    broadcasts_.emplace(call.outputs[0], calls_.size());
  }
  // The broadcast that makes `v`, or null; until the next call is added.
  const Call* BroadcastOf(ValueId v) const {
    auto it = broadcasts_.find(v);
    return it == broadcasts_.end() ? nullptr : &calls_[it->second];
  }

  // What is broadcast to the shape of what it meets in an op that broadcasts
  // by itself is taken as it was.
  void SkipBroadcasts(Call& call) const {
    const Shape& shape = p_.values[call.outputs[0]].shape;
    for (int i : {0, 1}) {
      const Call* wide = BroadcastOf(call.inputs[i]);
      if (wide && p_.values[call.inputs[1 - i]].shape == shape &&
          p_.values[call.inputs[i]].shape == shape) {
        call.inputs[i] = wide->inputs[0];
      }
    }
  }

  // Where one number is all that the broadcast meets, the call comes first:
  // true when `call` is that now and *after is the broadcast behind it.
  bool SwapBroadcast(Call& call, Call* after) {
    for (int i : {0, 1}) {
      const Call* wide = BroadcastOf(call.inputs[i]);
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

  Program& p_;
  const Readers readers_;
  std::vector<Call> calls_;              // so far
  std::vector<ValueId> by_;              // what replaces a value, else kNoValue
  HashMap<ValueId, size_t> broadcasts_;  // among calls_
};

}  // namespace

void Simplify(Program& p) { Simplifier(p).Run(); }

}  // namespace headrace
