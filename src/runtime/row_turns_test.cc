// Bound turns on lists: who else holds a list sees no change, and lists that
// are not what the turns were bound for run by the plan.
#include "absl/strings/match.h"
#include "base/cancellation.h"
#include "runtime/test_turns.h"

namespace headrace {
namespace {

const AttrMap& Floats() {
  static const auto* const attrs =
      new AttrMap({{"element_dtype", DType::kFloat}});
  return *attrs;
}
Tensor Int(int32_t i) { return Tensor::Scalar<int32_t>(i); }

// `n` elements, of which those at `set` are vectors of `size`.
Tensor ListOf(int n, const std::vector<int>& set, int size = 3,
              DType dtype = DType::kFloat) {
  const AttrMap attrs = {{"element_dtype", dtype}};
  Tensor list = (*RunOp("TensorListReserve", {Int(-1), Int(n)}, attrs))[0];
  for (int i : set) {
    Tensor t = *Tensor::Allocate(dtype, {size});
    std::memset(t.raw(), i + 1, t.bytes());
    list = (*RunOp("TensorListSetItem", {list, Int(i), t}, attrs))[0];
  }
  return list;
}
Tensor Stack(int max_size, int n) {
  Tensor list =
      (*RunOp("EmptyTensorList", {Int(-1), Int(max_size)}, Floats()))[0];
  for (int i = 0; i < n; ++i) {
    list = (*RunOp("TensorListPushBack",
                   {list, Tensor::Vector<float>({1, 2, 3})}, Floats()))[0];
  }
  return list;
}
Tensor RowsOf(int n) {
  Tensor rows = *Tensor::Allocate(DType::kFloat, {n, 3});
  for (int i = 0; i < 3 * n; ++i) {
    rows.data<float>()[i] = static_cast<float>(i);
  }
  return (*RunOp("TensorListFromTensor", {rows, Int(-1)}, Floats()))[0];
}

Value Get(OpScope& s, const Value& list, const Value& i) {
  return s("TensorListGetItem", {list, i, s.Int32s({3})}, Floats());
}

// Variables: a counter, a vector of 3, and lists.
enum { kTurn, kVector, kFirst, kSecond };
std::vector<Tensor> State(const std::vector<Tensor>& lists) {
  std::vector<Tensor> state = {Int(0), Tensor::Vector<float>({1, 2, 3})};
  state.insert(state.end(), lists.begin(), lists.end());
  return state;
}

// `turns` turns of `body`, which gets the counter's next value last, run by
// the loop's plan twice and turn by turn; whether the plan has bound turns.
bool RunsTheSame(const std::vector<Tensor>& state, int turns,
                 const std::function<void(OpScope&, Values&)>& body,
                 Status* wanted = nullptr, bool known = true) {
  // Pops tell the shape of what they make by what is known of the list.
  std::map<int, HandlePart> elements;
  for (int i = kFirst; known && i < static_cast<int>(state.size()); ++i) {
    elements[i] = {DType::kFloat, {3}};
  }
  TurnFunctions f;
  f.cond = Traced(
      "cond", TypesOf(state),
      [&](OpScope& s, const Values& in) {
        return Values{s("Less", {in[kTurn], s.Int32(turns)})};
      },
      elements);
  f.body = Traced(
      "body", TypesOf(state),
      [&](OpScope& s, const Values& in) {
        Values v = in;
        body(s, v);
        v[kTurn] = s("AddV2", {in[kTurn], s.Int32(1)});
        return v;
      },
      elements);
  const auto plan = PlanOf(f, state);
  std::vector<Tensor> want = state;
  const Status s = RunByPlan(f, &want);
  if (wanted) *wanted = s;
  for (int run = 0; run < 2; ++run) {
    std::vector<Tensor> got = state;
    RunServices services;
    EXPECT_EQ(plan->Run(services, &got), s);
    if (s.ok()) ExpectSame(got, want);
  }
  return plan->bound();
}

// The same list twice, one of which is written, and both of which are.
TEST(RowTurns, VariablesThatAreTheSameList) {
  for (const Tensor& list : {ListOf(6, {1, 4}), ListOf(6, {}), RowsOf(6)}) {
    const std::vector<Tensor> state = State({list, list});
    for (int written : {1, 2}) {
      EXPECT_TRUE(RunsTheSame(state, 5, [&](OpScope& s, Values& v) {
        for (int k = kFirst; k < kFirst + written; ++k) {
          const Value i =
              k == kFirst ? v[kTurn] : s("Sub", {s.Int32(5), v[kTurn]});
          v[k] = s("TensorListSetItem", {v[k], i, v[kVector]});
        }
        v[kVector] = s("AddV2", {v[kVector], Get(s, v[kSecond], v[kTurn])});
      }));
    }
  }
}

// A list that was replaced, but is still read or handed on, is not changed
// where it lies.
TEST(RowTurns, EarlierListsKeepTheirElements) {
  const std::vector<Tensor> state = State({ListOf(4, {0, 1, 2, 3}), RowsOf(4)});
  const auto set = [](OpScope& s, Values& v) {
    return s("TensorListSetItem", {v[kFirst], v[kTurn], v[kVector]});
  };
  // Read behind the change.
  EXPECT_FALSE(RunsTheSame(state, 3, [&](OpScope& s, Values& v) {
    const Value old = v[kFirst];
    v[kFirst] = set(s, v);
    // So made that it comes behind.
    const Value i =
        s("FloorMod", {s("TensorListLength", {v[kFirst]}), s.Int32(3)});
    v[kVector] = s("Square", {Get(s, old, i)});
  }));
  // Out through two variables, one of them as it was; and both changed.
  EXPECT_FALSE(RunsTheSame(state, 3, [&](OpScope& s, Values& v) {
    v[kSecond] = v[kFirst];
    v[kFirst] = set(s, v);
  }));
  EXPECT_FALSE(RunsTheSame(state, 3, [&](OpScope& s, Values& v) {
    v[kFirst] = v[kSecond] = set(s, v);
  }));
  EXPECT_FALSE(RunsTheSame(state, 3, [&](OpScope& s, Values& v) {
    const Value old = v[kFirst];
    v[kFirst] = set(s, v);
    v[kSecond] = s("TensorListSetItem", {old, s.Int32(2), v[kVector]});
  }));
  // Swapped, and one that another takes the place of.
  EXPECT_FALSE(RunsTheSame(state, 3, [&](OpScope& s, Values& v) {
    std::swap(v[kFirst], v[kSecond]);
    v[kFirst] = set(s, v);
  }));
  EXPECT_FALSE(RunsTheSame(
      state, 3, [&](OpScope& s, Values& v) { v[kSecond] = set(s, v); }));
  // A change that nobody takes.
  RunsTheSame(state, 3, [&](OpScope& s, Values& v) {
    v[kVector] = s("AddV2", {Get(s, set(s, v), s.Int32(2)), v[kVector]});
  });
}

// Sizes from none, within what a buffer holds and beyond, and back to none.
TEST(RowTurns, ListsGrowAndShrink) {
  for (const auto& [first, turns] : std::vector<std::pair<int, int>>{
           {0, 1}, {0, 15}, {0, 16}, {0, 17}, {3, 40}, {40, 200}}) {
    for (bool rows : {false, true}) {
      const Tensor list = rows ? RowsOf(first) : Stack(-1, first);
      EXPECT_TRUE(RunsTheSame(State({list}), turns, [](OpScope& s, Values& v) {
        v[kFirst] = s("TensorListPushBack", {v[kFirst], v[kVector]});
        v[kVector] = s("Neg", {v[kVector]});
      }));
      if (first == 0) continue;
      EXPECT_TRUE(RunsTheSame(State({list}), first, [](OpScope& s, Values& v) {
        ValueList popped =
            s.All("TensorListPopBack", {v[kFirst], s.Int32s({3})}, Floats());
        v[kFirst] = popped[0];
        v[kVector] = s("Sub", {v[kVector], popped[1]});
      }));
    }
  }
}

// Indices outside, nothing to pop: the words name the size of that moment.
TEST(RowTurns, ElementsThatAreNotThere) {
  Status s;
  EXPECT_TRUE(RunsTheSame(
      State({ListOf(4, {1})}), 9,
      [](OpScope& s, Values& v) {
        v[kFirst] = s("TensorListSetItem", {v[kFirst], v[kTurn], v[kVector]});
        v[kFirst] = s("TensorListPushBack", {v[kFirst], v[kVector]});
        ValueList popped =
            s.All("TensorListPopBack", {v[kFirst], s.Int32s({3})}, Floats());
        v[kFirst] = popped[0];
      },
      &s));
  EXPECT_TRUE(absl::StrContains(
      s.message(), "Trying to modify element 4 in a list with 4 elements."))
      << s;
  EXPECT_TRUE(RunsTheSame(
      State({RowsOf(4)}), 9,
      [](OpScope& s, Values& v) {
        const Value i = s("Sub", {s.Int32(2), v[kTurn]});
        v[kVector] = s("AddV2", {v[kVector], Get(s, v[kFirst], i)});
      },
      &s));
  EXPECT_TRUE(absl::StrContains(s.message(), "Trying to access element -1"))
      << s;
  EXPECT_TRUE(RunsTheSame(
      State({Stack(-1, 3)}), 9,
      [](OpScope& s, Values& v) {
        v[kFirst] =
            s.All("TensorListPopBack", {v[kFirst], s.Int32s({3})}, Floats())[0];
      },
      &s));
  EXPECT_TRUE(absl::StrContains(s.message(), "pop from an empty list")) << s;
}

// The turns are bound for vectors of 3 floats; these are other lists.
TEST(RowTurns, ListsThatTheTurnsWereNotBoundFor) {
  const Tensor others[] = {
      ListOf(4, {2}, /*size=*/4),
      ListOf(4, {0, 1, 2, 3}, /*size=*/2),
      ListOf(4, {1}, 3, DType::kInt32),
      ListOf(4, {}, 3, DType::kInt32),
      Stack(/*max_size=*/4, 4),
      (*RunOp("TensorListReserve", {Tensor::Vector<int32_t>({4}), Int(4)},
              Floats()))[0],
      (*RunOp("TensorListFromTensor",
              {*Tensor::Allocate(DType::kInt32, {4, 3}), Int(-1)},
              {{"element_dtype", DType::kInt32}}))[0],
      Tensor::Scalar<Variant>(Variant()),
  };
  for (const Tensor& list : others) {
    for (int kind : {0, 1, 2}) {
      SCOPED_TRACE(absl::StrCat("list ", &list - others, ", kind ", kind));
      EXPECT_TRUE(RunsTheSame(State({list}), 2, [&](OpScope& s, Values& v) {
        if (kind == 0) v[kVector] = Get(s, v[kFirst], v[kTurn]);
        if (kind == 1) {
          v[kFirst] = s("TensorListSetItem", {v[kFirst], v[kTurn], v[kVector]});
        }
        if (kind == 2) {
          v[kFirst] = s("TensorListPushBack", {v[kFirst], v[kVector]});
        }
      }));
    }
  }
}

// Two shapes in one list: as the plan does it.
TEST(RowTurns, ElementsOfSeveralShapes) {
  EXPECT_FALSE(RunsTheSame(
      State({ListOf(4, {})}), 2,
      [](OpScope& s, Values& v) {
        v[kFirst] = s("TensorListSetItem", {v[kFirst], v[kTurn], v[kVector]});
        v[kFirst] =
            s("TensorListSetItem",
              {v[kFirst], s.Int32(3), s("Sum", {v[kVector], s.Int32s({0})})});
      },
      nullptr, /*known=*/false));
}

// The list that came in is as it was, and memory is let go.
TEST(RowTurns, StoppedInTheMiddle) {
  const std::vector<Tensor> state = State({Stack(-1, 2)});
  TurnFunctions f;
  f.cond = Traced("cond", TypesOf(state), [](OpScope& s, const Values& in) {
    return Values{s("Less", {s.Int32(-1), in[kTurn]})};
  });
  f.body =
      Traced("body", TypesOf(state),
             [](OpScope& s, const Values& in) {
               Values v = in;
               v[kFirst] = s("TensorListPushBack", {in[kFirst], in[kVector]});
               v[kFirst] = s.All("TensorListPopBack",
                                 {v[kFirst], s.Int32s({3})}, Floats())[0];
               v[kFirst] =
                   s("TensorListSetItem", {v[kFirst], s.Int32(1), in[kVector]});
               v[kVector] = s("Neg", {in[kVector]});
               return v;
             },
             {{kFirst, {DType::kFloat, {3}}}});
  for (int run = 0; run < 2; ++run) {
    const Deadline deadline(20);
    EXPECT_EQ(RunOp("StatelessWhile", state,
                    {{"cond", FuncRef{f.cond->name, nullptr}},
                     {"body", FuncRef{f.body->name, nullptr}}})
                  .status()
                  .code(),
              absl::StatusCode::kDeadlineExceeded);
    ExpectSame(state, State({Stack(-1, 2)}));
  }
  MutexLock lock(f.body->derived_mutex);
  EXPECT_TRUE(f.body->derived.loops.at(0).plan->bound());
}

}  // namespace
}  // namespace headrace
