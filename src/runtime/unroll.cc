#include "runtime/unroll.h"

#include "base/hash_map.h"
#include "op/passes/binds_calls.h"
#include "runtime/loop_plan.h"

namespace headrace {
namespace {

// Turns, and calls of all turns that are left when those on constants are
// folded. A loop of bound turns costs about a microsecond to enter and some
// nanoseconds a call; a step of a plan 20 to 50 ns, less where it is fused.
constexpr int kMostUnrolledTurns = 16;
constexpr size_t kMostUnrolledCalls = 24;
// What one turn may have at all: it is copied to see what is left of it.
constexpr size_t kMostOfOneTurn = 64;

// Whether the call's rule and kernel take whatever values come.
bool NeverFails(const Program& p, Call& call) {
  for (ValueId v : call.outputs) {
    if (!p.values[v].shape.fully_known() || !IsPlain(p.values[v].dtype)) {
      return false;
    }
  }
  if (!BindCall(call).ok() || IsGuess(p, call)) return false;
  if (call.op->def().Has(OpTrait::kReshapes) ||
      call.kernel->elementwise() != nullptr) {
    return true;
  }
  const auto* binds = dynamic_cast<const BindsCalls*>(call.kernel.get());
  if (binds == nullptr) return false;
  absl::InlinedVector<BoundInput, 3> inputs;
  for (ValueId v : call.inputs) {
    const ProgramValue& value = p.values[v];
    inputs.push_back({&value.shape,
                      value.constant.has_buffer() ? &value.constant : nullptr,
                      /*steady=*/false});
  }
  return !binds->may_fail(inputs);
}

bool IsQuiet(const Program& p) {
  return std::all_of(p.calls.begin(), p.calls.end(), [](const Call& c) {
    return !c.effect && !c.op->def().is_stateful &&
           !IsFunctionCall(c.op->def());
  });
}

class Unroller {
 public:
  Unroller(Program& p, const Program& cond, const Program& body)
      : p_(p), cond_(cond), body_(body), num_values_(p.values.size()) {}

  bool Run(const Call& call) {
    if (cond_.calls.size() + body_.calls.size() > kMostOfOneTurn ||
        !IsQuiet(cond_) || !IsQuiet(body_)) {
      return false;
    }
    made_.results.assign(call.inputs.begin(), call.inputs.end());
    for (int turn = 0;; ++turn) {
      // The test itself must come out known: none of its calls is left.
      const size_t before = made_.calls.size();
      const std::optional<std::vector<ValueId>> test = Write(cond_);
      if (!test || made_.calls.size() != before) return false;
      const Tensor& truth = p_.values[test->at(0)].constant;
      if (!truth.has_buffer()) return false;
      const StatusOr<bool> more = Truth(truth);
      if (!more.ok()) return false;
      if (!*more) break;
      if (turn == kMostUnrolledTurns || !Turn()) return false;
    }
    for (size_t o = 0; o < call.outputs.size(); ++o) {
      if (!Fits(call.outputs[o], made_.results[o])) return false;
    }
    return true;
  }
  UnrolledLoop Take() { return std::move(made_); }
  void GiveUp() { p_.values.resize(num_values_); }

 private:
  bool Turn() {
    std::optional<std::vector<ValueId>> next = Write(body_);
    if (!next) return false;
    for (size_t i = 0; i < next->size(); ++i) {
      // A turn's plan would check what the graph says of its variables.
      if (!SaysSo(body_.values[body_.feeds[i]], (*next)[i])) return false;
    }
    made_.results = *std::move(next);
    return made_.calls.size() <= kMostUnrolledCalls;
  }
  bool SaysSo(const ProgramValue& said, ValueId v) const {
    const ProgramValue& value = p_.values[v];
    return value.dtype == said.dtype && said.shape.CompatibleWith(value.shape);
  }
  bool Fits(ValueId output, ValueId v) const {
    return SaysSo(p_.values[output], v);
  }

  // `part`'s calls on the variables as they are; what its fetches have become.
  std::optional<std::vector<ValueId>> Write(const Program& part) {
    HashMap<ValueId, ValueId> known;
    for (size_t i = 0; i < part.feeds.size(); ++i) {
      if (!SaysSo(part.values[part.feeds[i]], made_.results[i])) return {};
      known[part.feeds[i]] = made_.results[i];
    }
    const auto of = [&](ValueId v) {
      auto [it, added] = known.emplace(v, kNoValue);
      if (added) {
        it->second = static_cast<ValueId>(p_.values.size());
        p_.values.push_back(part.values[v]);
      }
      return it->second;
    };
    for (const Call& from : part.calls) {
      Call call = from;
      for (ValueId& v : call.inputs) v = of(v);
      for (ValueId& v : call.outputs) v = of(v);
      if (FoldCall(p_, call)) continue;
      if (!NeverFails(p_, call)) return {};
      made_.calls.push_back(std::move(call));
    }
    std::vector<ValueId> fetches;
    for (ValueId v : part.fetches) fetches.push_back(of(v));
    return fetches;
  }

  Program& p_;
  const Program &cond_, &body_;
  const size_t num_values_;
  UnrolledLoop made_;
};

}  // namespace

std::optional<UnrolledLoop> UnrollLoop(Program& p, const Call& call,
                                       const Program& cond,
                                       const Program& body) {
  Unroller unroller(p, cond, body);
  if (unroller.Run(call)) return unroller.Take();
  unroller.GiveUp();
  return {};
}

void PutUnrolled(Program& p, size_t at, UnrolledLoop loop) {
  HashMap<ValueId, ValueId> by;
  const Call& call = p.calls[at];
  for (size_t o = 0; o < call.outputs.size(); ++o) {
    by[call.outputs[o]] = loop.results[o];
  }
  const auto rename = [&](ValueId& v) {
    if (const auto it = by.find(v); it != by.end()) v = it->second;
  };
  for (size_t c = at + 1; c < p.calls.size(); ++c) {
    for (ValueId& v : p.calls[c].inputs) rename(v);
  }
  for (ValueId& v : p.fetches) rename(v);
  const auto to = p.calls.erase(p.calls.begin() + static_cast<int64_t>(at));
  p.calls.insert(to, std::make_move_iterator(loop.calls.begin()),
                 std::make_move_iterator(loop.calls.end()));
}

}  // namespace headrace
