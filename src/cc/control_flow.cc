#include "headrace/control_flow.h"

#include <memory>
#include <optional>

#include "base/cancellation.h"
#include "cc/bodies.h"
#include "cc/compose.h"

namespace headrace::tf::internal {
namespace {

void Branches(Choice choice, const Tensor& selector,
              const std::vector<BodyFn>& fns,
              const std::vector<std::string>& names, Taken result) {
  std::vector<Branch> branches;
  Tokens gives;  // of the first
  for (size_t i = 0; i < fns.size(); ++i) {
    Tokens now;
    const auto body = [&](absl::Span<const Value>) {
      const Signature found = RunBody(fns[i], {}, {});
      now.assign(found.tokens().begin(), found.tokens().end());
      return std::vector<Value>(found.leaves().begin(), found.leaves().end());
    };
    branches.push_back(
        {names[i], std::make_unique<BodyGraph>(std::vector<ArgSpec>(), body)});
    if (i == 0) gives = now;
    const std::string wrong = Difference(gives, now);
    if (wrong.empty()) continue;
    RefuseFor(choice == Choice::kIf ? "Cond" : "SwitchCase",
              absl::StrCat("branches must give the same structure and dtypes: "
                           "of ",
                           names[0], " and ", names[i], ", ", wrong));
  }
  HandOver(gives, EmitBranches(choice, selector, branches), result);
}

// A scalar bool: whether a number is not 0.
Tensor Truth(const Tensor& pred) {
  return Cast(ScalarOf("a condition", pred), DType::kBool);
}

// The index of a branch, which is int32 as Case has it.
Tensor IndexOf(const Tensor& index) {
  if (index.dtype() != DType::kInt32) {
    RefuseFor("SwitchCase", "the index of a branch must be int32, got " +
                                DTypeName(index.dtype()));
  }
  return ScalarOf("the index of a branch", index);
}

// int64, so that no limit is cut.
Tensor MostTurns(const Tensor& most) {
  if (most.dtype() != DType::kInt32 && most.dtype() != DType::kInt64) {
    RefuseFor("While", "maximum_iterations must be int32 or int64, got " +
                           DTypeName(most.dtype()));
  }
  return Cast(ScalarOf("maximum_iterations", most), DType::kInt64);
}

// What a loop's variables must be like, and what its turns say of them.
void CheckTurn(TokenSpan before, TokenSpan after) {
  if (Serves(before, after)) return;
  const std::string wrong = Difference(before, after);
  if (!wrong.empty()) {
    RefuseFor("While",
              "loop variables must keep their structure, dtypes and "
              "values: before and after a turn, " +
                  wrong);
  }
  const Status misfit =
      Misfit(TupleOf({before}), TupleOf({after}), {"the loop variables"});
  RefuseFor("While", absl::StrCat("after one turn, ", misfit.message(),
                                  "; shape_invariants allow sizes to change"));
}

std::vector<Value> Behind(absl::Span<const Value> values, size_t first) {
  return {values.begin() + first, values.end()};
}

// The shapes of the loop variables in every turn.
std::vector<headrace::Shape> ShapesOfTurns(const WhileOptions& options,
                                           absl::Span<const Value> enter) {
  const size_t given = options.shape_invariants.size();
  if (given != 0 && given != enter.size()) {
    RefuseFor("While", absl::StrCat(given, " shape_invariants for ",
                                    enter.size(), " tensors"));
  }
  std::vector<headrace::Shape> shapes;
  for (size_t i = 0; i < enter.size(); ++i) {
    const headrace::Shape& own = enter[i].shape();
    shapes.push_back(given ? Core(options.shape_invariants[i]) : own);
    if (shapes.back().CompatibleWith(own)) continue;
    RefuseFor("While",
              absl::StrCat("loop variable ", i, " enters with shape ",
                           Public(own).ToString(), ", its invariant is ",
                           options.shape_invariants[i].ToString()));
  }
  return shapes;
}

}  // namespace

bool IsTracing() { return !CurrentEmitter()->is_eager(); }

void RefuseFor(const char* what, const std::string& why) {
  Throw(ErrorCode::kInvalidArgument, absl::StrCat(what, ": ", why));
}

bool TruthOf(const Tensor& pred) {
  Check(CheckStop());
  return *Truth(pred).data<bool>();
}

size_t BranchOf(const Tensor& index, size_t count) {
  const int32_t i = *IndexOf(index).data<int32_t>();
  const auto last = static_cast<int32_t>(count) - 1;
  return static_cast<size_t>(i >= 0 && i < last ? i : last);
}

void TracedIf(const Tensor& pred, const BodyFn& then, const BodyFn& otherwise,
              Taken result) {
  Branches(Choice::kIf, Truth(pred), {then, otherwise},
           {"cond_true", "cond_false"}, result);
}

void TracedCase(const Tensor& index, const std::vector<BodyFn>& branches,
                Taken result) {
  std::vector<std::string> names;
  for (size_t i = 0; i < branches.size(); ++i) {
    names.push_back(absl::StrCat("switch_case_branch", i));
  }
  Branches(Choice::kCase, IndexOf(index), branches, names, result);
}

void TracedWhile(Given vars, const BodyFn& cond, const BodyFn& body,
                 const WhileOptions& options, Taken result) {
  const Signature enter = TakenApart(vars);
  std::vector<Value> inputs(enter.leaves().begin(), enter.leaves().end());
  std::vector<headrace::Shape> shapes = ShapesOfTurns(options, inputs);
  Tensor most;
  size_t own = 0;  // before the variables: the turns that were made
  if (options.maximum_iterations) {
    most = MostTurns(options.maximum_iterations);
    inputs.insert(inputs.begin(), Access::ValueOf(Number(DType::kInt64, 0)));
    shapes.insert(shapes.begin(), headrace::Shape());
    own = 1;
  }
  Tokens tokens;  // the variables in every turn
  const auto holds = [&](absl::Span<const Value> args) {
    const std::vector<Value> now = Behind(args, own);
    tokens = WithTensors(enter.tokens(), now);
    const Signature found = RunBody(cond, tokens, now);
    Tensor go = Truth(Access::Wrap(found.leaves()[0]));
    if (own) go = Op("LogicalAnd", {Access::Wrap(args[0]) < most, go});
    return std::vector<Value>{Access::ValueOf(go)};
  };
  const auto turn = [&](absl::Span<const Value> args) {
    const Signature next = RunBody(body, tokens, Behind(args, own));
    CheckTurn(tokens, next.tokens());
    std::vector<Value> values(next.leaves().begin(), next.leaves().end());
    if (own) {
      const Tensor turns = Access::Wrap(args[0]) + Number(DType::kInt64, 1);
      values.insert(values.begin(), Access::ValueOf(turns));
    }
    return values;
  };
  const std::vector<Value> last = EmitWhile(options.name, inputs, shapes, holds,
                                            turn, options.parallel_iterations);
  HandOver(tokens, Behind(last, own), result);
}

struct EagerLoop::State {
  Tokens enter;
  std::optional<int64_t> turns_left;  // none: no end
};

EagerLoop::EagerLoop(Given vars, const WhileOptions& options)
    : state_(std::make_unique<State>()) {
  const Signature enter = TakenApart(vars);
  state_->enter.assign(enter.tokens().begin(), enter.tokens().end());
  if (!options.maximum_iterations) return;
  state_->turns_left = *MostTurns(options.maximum_iterations).data<int64_t>();
}
EagerLoop::~EagerLoop() = default;

bool EagerLoop::MayTurn() {
  if (!state_->turns_left) return true;
  if (*state_->turns_left <= 0) return false;
  --*state_->turns_left;
  return true;
}

void EagerLoop::Check(Given after) {
  const Signature now = TakenApart(after);
  // Shapes may change from turn to turn.
  if (Difference(state_->enter, now.tokens()).empty()) return;
  CheckTurn(state_->enter, now.tokens());
}

}  // namespace headrace::tf::internal
