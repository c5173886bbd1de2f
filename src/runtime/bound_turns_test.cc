// Turns as lists of bound calls against the turns of a plan: every op that may
// be bound, with the same bits; and what they do when a call fails or the loop
// never ends.
#include "runtime/bound_turns.h"

#include <time.h>

#include <map>

#include "base/cancellation.h"
#include "runtime/test_loop.h"

namespace headrace {
namespace {

const DType kF = DType::kFloat;
const DType kI = DType::kInt32;
constexpr int kTurns = 5;

using Loop = LoopOfCalls;

Tensor Filled(DType dtype, const Shape& shape, int seed) {
  return FilledTensor(dtype, shape, seed);
}

const std::vector<DType>& PlainTypes() {
  static const auto* const types = [] {
    auto* all = new std::vector<DType>{DType::kBool};
    for (int d = 1; d < 32; ++d) {
      const bool number =
          DispatchDType(static_cast<DType>(d), NumberTypes{}, [](auto) {});
      if (number) all->push_back(static_cast<DType>(d));
    }
    return all;
  }();
  return *types;
}

// Of how many combinations calls were bound, by op.
using Bounds = std::map<std::string, int>;

// op(a, b, ...) where operand k changes from turn to turn unless `steady` says
// otherwise.
void TryOp(const OpDef& def, DType dtype, const std::vector<Shape>& shapes,
           uint32_t steady, Bounds* bounds) {
  Loop loop(kTurns);
  std::vector<ValueId> in;
  std::string what = absl::StrCat(def.name, " ", DTypeName(dtype));
  for (size_t k = 0; k < shapes.size(); ++k) {
    // The condition of a choice.
    const DType d =
        def.inputs[k].type != DType::kInvalid ? def.inputs[k].type : dtype;
    const int seed = static_cast<int>(k);
    in.push_back(loop.Variable(Filled(d, shapes[k], seed)));
    absl::StrAppend(&what, " ", shapes[k].ToString());
    if (steady >> k & 1) {
      absl::StrAppend(&what, " steady");
      continue;
    }
    const ValueId other = loop.Variable(Filled(d, shapes[k], seed + 3));
    loop.Next(in.back(), other);
    loop.Next(other, in.back());
  }
  SCOPED_TRACE(what);
  const ValueId out = loop.Call(def.name.c_str(), in);
  if (out == kNoValue) return;
  const Shape shape = loop.ShapeOf(out);
  if (!shape.fully_known() || !IsPlain(loop.p.values[out].dtype)) return;
  const ValueId result =
      loop.Variable(Filled(loop.p.values[out].dtype, shape, 1));
  loop.Next(result, out);
  Program turn = loop.Turn();
  for (Call& call : turn.calls) {
    if (!BindCall(call).ok()) return;
  }
  if (!loop.Compare(what)) return;
  if (loop.Bound()->num_kernel_calls() == 0) ++(*bounds)[def.name];
}

TEST(BoundTurns, EveryOpThatBindsHasTheBitsOfThePlan) {
  const std::vector<std::vector<Shape>> unary = {{{}},   {{3}},  {{2, 2}},
                                                 {{16}}, {{17}}, {{5, 40}}};
  const std::vector<std::vector<Shape>> binary = {
      {{}, {}},      {{3}, {3}},       {{3}, {}},     {{}, {3}},
      {{16}, {16}},  {{2, 2}, {2, 2}}, {{17}, {1}},   {{1}, {17}},
      {{2, 3}, {3}}, {{2, 1}, {1, 3}}, {{500}, {500}}};
  const std::vector<std::vector<Shape>> ternary = {
      {{}, {}, {}},   {{3}, {3}, {3}},       {{17}, {17}, {}},  {{3}, {}, {3}},
      {{}, {4}, {4}}, {{2, 3}, {3}, {2, 3}}, {{16}, {16}, {16}}};
  Bounds bounds;
  for (const OpDef* def : AllOps()) {
    if (def->is_stateful || def->cpu_kernel == nullptr ||
        def->outputs.size() != 1 || CallsFunctions(*def) ||
        def->inputs.empty() || def->inputs.size() > 3) {
      continue;
    }
    const bool lists =
        std::any_of(def->inputs.begin(), def->inputs.end(),
                    [](const auto& a) { return a.is_list() || a.is_ref; });
    if (lists) continue;
    const auto& all = def->inputs.size() == 1   ? unary
                      : def->inputs.size() == 2 ? binary
                                                : ternary;
    for (DType dtype : PlainTypes()) {
      for (const auto& shapes : all) {
        TryOp(*def, dtype, shapes, 0, &bounds);
        for (uint32_t k = 0; k < shapes.size() && shapes.size() > 1; ++k) {
          TryOp(*def, dtype, shapes, 1u << k, &bounds);
        }
      }
      if (HasFatalFailure() || HasNonfatalFailure()) return;
    }
  }
  for (const char* op :
       {"AddV2",      "Sub",        "Mul",      "RealDiv",     "FloorMod",
        "FloorDiv",   "Maximum",    "Less",     "Equal",       "LogicalAnd",
        "LogicalNot", "Tanh",       "Exp",      "Sqrt",        "Square",
        "Neg",        "Select",     "SelectV2", "ClipByValue", "Pow",
        "BitwiseXor", "SigmoidGrad"}) {
    EXPECT_GT(bounds[op], 0) << op;
  }
  EXPECT_GT(bounds.size(), 80u);
}

TEST(BoundTurns, Casts) {
  int bound = 0;
  for (DType from : PlainTypes()) {
    for (DType to : PlainTypes()) {
      if (from == to) continue;
      Loop loop(kTurns);
      const ValueId a = loop.Variable(Filled(from, {5}, 1));
      const ValueId b = loop.Variable(Filled(from, {5}, 2));
      loop.Next(a, b);
      loop.Next(b, a);
      const ValueId out = loop.Call("Cast", {a}, {{"DstT", to}});
      if (out == kNoValue) continue;
      loop.Next(loop.Variable(Filled(to, {5}, 3)), out);
      bound += loop.Compare(absl::StrCat(DTypeName(from), DTypeName(to)));
    }
  }
  EXPECT_GT(bound, 150);
}

TEST(BoundTurns, Reductions) {
  for (const char* op :
       {"Sum", "Mean", "Max", "Min", "Prod", "EuclideanNorm"}) {
    for (DType dtype :
         {kF, DType::kDouble, kI, DType::kHalf, DType::kComplex64}) {
      for (const auto& [shape, axes] :
           std::vector<std::pair<Shape, std::vector<int32_t>>>{
               {{}, {}},
               {{7}, {0}},
               {{3, 4}, {1}},
               {{3, 4}, {0}},
               {{3, 4}, {0, 1}},
               {{20, 20}, {-1}},
               {{500}, {0}},
               {{2, 3, 4}, {0, 2}},
               {{1, 5}, {0}}}) {
        for (bool keep : {false, true}) {
          Loop loop(kTurns);
          const ValueId a = loop.Variable(Filled(dtype, shape, 1));
          const ValueId b = loop.Variable(Filled(dtype, shape, 2));
          loop.Next(a, b);
          loop.Next(b, a);
          const ValueId out =
              loop.Call(op, {a, loop.Constant(Tensor::Vector<int32_t>(axes))},
                        {{"keep_dims", keep}});
          if (out == kNoValue) continue;
          const Shape made = loop.ShapeOf(out);
          ASSERT_TRUE(made.fully_known());
          loop.Next(loop.Variable(Filled(dtype, made, 3)), out);
          Program turn = loop.Turn();
          bool kernels = true;
          for (Call& c : turn.calls) kernels = kernels && BindCall(c).ok();
          if (!kernels) continue;
          EXPECT_TRUE(loop.Compare(
              absl::StrCat(op, DTypeName(dtype), " ", shape.ToString())));
        }
      }
    }
  }
}

TEST(BoundTurns, VariablesChangePlacesAndMeet) {
  Loop loop(kTurns);
  const ValueId a = loop.Variable(Filled(kF, {3}, 1));
  const ValueId b = loop.Variable(Filled(kF, {3}, 2));
  const ValueId c = loop.Variable(Filled(kF, {3}, 3));
  const ValueId d = loop.Variable(Filled(kF, {3}, 4));
  const ValueId e = loop.Variable(Filled(kF, {3}, 5));
  const ValueId sum = loop.Call("AddV2", {a, c});
  loop.Next(a, b);
  loop.Next(b, a);
  loop.Next(c, sum);
  loop.Next(d, sum);
  loop.Next(e, loop.Constant(Filled(kF, {3}, 6)));
  EXPECT_TRUE(loop.Compare("permuted"));
}

TEST(BoundTurns, WhatStaysTheSameMovesOut) {
  Loop loop(kTurns);
  const ValueId w = loop.Variable(Filled(kF, {40, 40}, 1));  // large
  const ValueId x = loop.Variable(Filled(kF, {3}, 2));
  const ValueId product = loop.Call("MatMul", {w, w});
  const ValueId part = loop.Call(
      "Sum", {product, loop.Constant(Tensor::Vector<int32_t>({0, 1}))});
  loop.Next(x, loop.Call("Mul", {x, part}));
  EXPECT_TRUE(loop.Compare("moved"));
  const auto bound = loop.Bound();
  EXPECT_EQ(bound->num_moved_out(), 2);
  EXPECT_EQ(bound->num_calls(), 3);
}

// Kernels that are not bound run in contexts of their own, and may look at what
// is large and stays.
TEST(BoundTurns, KernelsAndViews) {
  Loop loop(kTurns);
  const ValueId table = loop.Variable(Filled(kF, {1000, 4}, 1));
  const ValueId x = loop.Variable(Filled(kF, {2, 2}, 2));
  const ValueId row = loop.Call(
      "GatherV2",
      {table, loop.p.feeds[0], loop.Constant(Tensor::Scalar<int32_t>(0))});
  const ValueId square = loop.Call(
      "Reshape", {row, loop.Constant(Tensor::Vector<int32_t>({2, 2}))});
  loop.Next(x, loop.Call("Sub", {square, x}));
  EXPECT_TRUE(loop.Compare("gathered"));
  EXPECT_EQ(loop.Bound()->num_kernel_calls(), 0);
}

// Their rules ask for values that change.
TEST(BoundTurns, GuessedShapesAreLookedAtInEveryTurn) {
  for (int turns : {5, 8}) {  // two beyond the end
    Loop loop(turns);
    const ValueId table = loop.Variable(Filled(kF, {6, 3}, 1));
    const ValueId x = loop.Variable(Filled(kF, {1, 3}, 2));
    const ValueId zero = loop.Constant(Tensor::Scalar<int32_t>(0));
    const ValueId at = loop.Call("Pack", {loop.p.feeds[0], zero}, {{"N", 2}});
    const ValueId row = loop.Call(
        "Slice", {table, at, loop.Constant(Tensor::Vector<int32_t>({1, 3}))});
    loop.p.values[row].shape = Shape{1, 3};
    loop.Next(x, loop.Call("AddV2", {x, row}));
    EXPECT_TRUE(loop.Compare("sliced"));
    // The rest of the rows, of which the graph claims that there are two.
    Loop rest(turns);
    const ValueId rows = rest.Variable(Filled(kF, {6, 3}, 1));
    const ValueId y = rest.Variable(Filled(kF, {2, 3}, 2));
    const ValueId begin = rest.Call(
        "Pack", {rest.p.feeds[0], rest.Constant(Tensor::Scalar<int32_t>(0))},
        {{"N", 2}});
    const ValueId some = rest.Call(
        "Slice",
        {rows, begin, rest.Constant(Tensor::Vector<int32_t>({-1, 3}))});
    rest.p.values[some].shape = Shape{2, 3};
    rest.Next(y, rest.Call("AddV2", {y, some}));
    EXPECT_TRUE(rest.Compare("claimed"));
    std::vector<Tensor> out;
    EXPECT_FALSE(rest.RunPlan(&out).ok());
  }
}

TEST(BoundTurns, ErrorsAreThoseOfThePlan) {
  for (const char* op : {"FloorDiv", "FloorMod", "TruncateDiv"}) {
    Loop loop(kTurns);  // fails in the third turn
    const ValueId x = loop.Variable(Tensor::Scalar<int32_t>(2));
    const ValueId y = loop.Variable(Tensor::Scalar<int32_t>(7));
    loop.Next(y, loop.Call(op, {y, x}));
    loop.Next(x,
              loop.Call("Sub", {x, loop.Constant(Tensor::Scalar<int32_t>(1))}));
    std::vector<Tensor> out;
    EXPECT_FALSE(loop.RunPlan(&out).ok());
    EXPECT_TRUE(loop.Compare(op));
  }
  Loop loop(kTurns);
  const ValueId table = loop.Constant(Filled(kF, {2, 4}, 1));
  const ValueId x = loop.Variable(Filled(kF, {4}, 2));
  loop.Next(x,
            loop.Call("GatherV2", {table, loop.p.feeds[0],
                                   loop.Constant(Tensor::Scalar<int32_t>(0))}));
  std::vector<Tensor> out;
  EXPECT_FALSE(loop.RunPlan(&out).ok());
  EXPECT_TRUE(loop.Compare("GatherV2"));
}

TEST(BoundTurns, WhatDoesNotQualify) {
  Loop large(kTurns);
  const ValueId x = large.Variable(Filled(kF, {2000}, 1));
  large.Next(x, large.Call("AddV2", {x, x}));
  EXPECT_EQ(large.Bound(), nullptr);
  Loop open(kTurns);  // of unknown size
  const ValueId y = open.Variable(Filled(kF, {3}, 1));
  open.p.values[y].shape = Shape{-1};
  open.Next(y, open.Call("AddV2", {y, y}));
  EXPECT_EQ(open.Bound(), nullptr);
  Loop random(kTurns);
  const ValueId z = random.Variable(Filled(kF, {3}, 1));
  random.Next(z, random.Call("RandomUniform",
                             {random.Constant(Tensor::Vector<int32_t>({3}))},
                             {{"dtype", kF}}));
  EXPECT_EQ(random.Bound(), nullptr);
  // Variables of other shapes go the other way, which says what is wrong.
  Loop loop(kTurns);
  const ValueId v = loop.Variable(Filled(kF, {3}, 1));
  loop.Next(v, loop.Call("AddV2", {v, v}));
  auto bound = loop.Bound();
  ASSERT_NE(bound, nullptr);
  loop.state[1] = Filled(kF, {4}, 1);
  EXPECT_FALSE(bound->Fit(loop.state));
  loop.state[1] = Filled(DType::kDouble, {3}, 1);
  EXPECT_FALSE(bound->Fit(loop.state));
}

double CpuMs() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
}

TEST(BoundTurns, EndlessLoopsStopSoon) {
  for (int calls : {1, 50}) {
    Loop loop(kTurns);
    const ValueId x = loop.Variable(Filled(DType::kDouble, {400}, 1));
    ValueId y = x;
    for (int i = 0; i < calls; ++i) y = loop.Call("Lgamma", {y});
    loop.Next(x, y);
    loop.truth = loop.Constant(Tensor::Scalar(true));
    const auto bound = loop.Bound();
    ASSERT_NE(bound, nullptr);
    const Deadline deadline(20);
    const double start = CpuMs();
    const Status s = bound->Run({}, &loop.state);
    EXPECT_EQ(s.code(), absl::StatusCode::kDeadlineExceeded) << s;
    EXPECT_LT(CpuMs() - start, 30);
  }
}

}  // namespace
}  // namespace headrace
