// Loops of functions for the tests of bound turns: made, and run by a plan's
// turns and by their own.
#pragma once

#include <cstring>
#include <optional>

#include "eager/eager_emitter.h"
#include "graph/test_function.h"
#include "runtime/loop_plan.h"

namespace headrace {

struct TurnFunctions {
  FunctionPtr cond, body;
};

// The plan of the loop of these functions, made by running it.
inline std::shared_ptr<const LoopPlan> PlanOf(
    const TurnFunctions& f, const std::vector<Tensor>& state) {
  RunOp("StatelessWhile", state,
        {{"cond", FuncRef{f.cond->name, nullptr}},
         {"body", FuncRef{f.body->name, nullptr}}})
      .IgnoreError();
  MutexLock lock(f.body->derived_mutex);
  EXPECT_EQ(f.body->derived.loops.size(), 1u);
  return f.body->derived.loops.at(0).plan;
}

inline StatusOr<Program> ProgramOfTurn(const TurnFunctions& f) {
  Program parts[2];
  for (int i : {0, 1}) {
    const Function& g = i == 0 ? *f.cond : *f.body;
    std::vector<Edge> feeds;
    for (Node* n : g.args) feeds.push_back({n, 0});
    HR_ASSIGN_OR_RETURN(parts[i],
                        MakeProgram(*g.body, feeds, g.results, {}, nullptr));
  }
  AppendCondition(parts[0], &parts[1]);
  HR_RETURN_IF_ERROR(Optimise(parts[1]));
  return parts[1];
}

// By a plan's turns, which find branches and loops by name.
inline Status RunByPlan(const TurnFunctions& f, std::vector<Tensor>* state) {
  HR_ASSIGN_OR_RETURN(Program turn, ProgramOfTurn(f));
  HR_ASSIGN_OR_RETURN(auto plan, TurnPlan::Make(std::move(turn)));
  RunServices services;
  HR_ASSIGN_OR_RETURN(auto turns, Turns::Begin(*plan, services));
  HR_RETURN_IF_ERROR(turns->Set(absl::MakeSpan(*state)));
  for (bool more = true; more;) {
    HR_RETURN_IF_ERROR(turns->Run());
    more = turns->fetch(plan->num_variables()).scalar<bool>();
    HR_RETURN_IF_ERROR(turns->Advance(more));
  }
  turns->Take(state);
  return OkStatus();
}

// A list's elements; those that were never set are none.
inline std::vector<std::optional<Tensor>> ElementsOf(const Tensor& list,
                                                     DType dtype) {
  OpScope length;
  const Value n = length("TensorListLength", {Value(list)});
  EXPECT_TRUE(length.ok()) << length.status();
  std::vector<std::optional<Tensor>> items(n.tensor().scalar<int32_t>());
  for (size_t i = 0; i < items.size(); ++i) {
    OpScope s;
    // Of no shape at all: refused where the element has none of its own.
    const Value item =
        s("TensorListGather",
          {Value(list), s.Int32s({static_cast<int32_t>(i)}), s.Int32(-1)},
          {{"element_dtype", dtype}});
    if (s.ok()) items[i] = item.tensor();
  }
  return items;
}

inline void ExpectSameTensor(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.dtype(), b.dtype());
  ASSERT_EQ(a.shape(), b.shape());
  if (a.dtype() == DType::kVariant) {
    const auto x = ElementsOf(a, DType::kFloat),
               y = ElementsOf(b, DType::kFloat);
    ASSERT_EQ(x.size(), y.size());
    for (size_t i = 0; i < x.size(); ++i) {
      SCOPED_TRACE(absl::StrCat("element ", i));
      ASSERT_EQ(x[i].has_value(), y[i].has_value());
      if (x[i]) ExpectSameTensor(*x[i], *y[i]);
    }
    return;
  }
  if (a.dtype() != DType::kFloat) {
    EXPECT_EQ(std::memcmp(a.raw(), b.raw(), a.bytes()), 0);
    return;
  }
  for (int64_t k = 0; k < a.num_elements(); ++k) {
    const float x = a.data<float>()[k], y = b.data<float>()[k];
    EXPECT_TRUE(std::memcmp(&x, &y, 4) == 0 || (x != x && y != y))
        << x << ", " << y;
  }
}
inline void ExpectSame(const std::vector<Tensor>& a,
                       const std::vector<Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    SCOPED_TRACE(absl::StrCat("variable ", i));
    ExpectSameTensor(a[i], b[i]);
  }
}

}  // namespace headrace
