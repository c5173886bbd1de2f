// Functions of one row for all rows: what has no form, no rows, or no shape.
#include "vectorize/vectorize.h"

#include "autodiff/function_gradient.h"
#include "graph/test_function.h"
#include "gtest/gtest.h"

namespace headrace {
namespace {

const DType kF = DType::kFloat;

FunctionPtr Row(const std::vector<Shape>& args,
                const std::function<Value(OpScope&, const Values&)>& body) {
  ArgTypes types;
  for (const Shape& s : args) types.push_back({kF, s});
  return Traced("row", types, [&](OpScope& s, const Values& in) {
    return Values{body(s, in)};
  });
}

RowValue Stacked(std::vector<float> v, const Shape& shape) {
  Tensor t = *Tensor::Allocate(kF, shape);
  std::copy(v.begin(), v.end(), t.data<float>());
  return {Value(t), Stacking::kStacked};
}
RowValue Shared(float v) { return {Value(Tensor::Scalar<float>(v))}; }

StatusOr<Tensor> Call(const FunctionPtr& f, const Values& args) {
  HR_ASSIGN_OR_RETURN(ValueList outputs, CallDifferentiably(f, args, nullptr));
  return outputs[0].tensor();
}

StatusOr<Tensor> ForRows(const FunctionPtr& f, std::vector<RowValue> args,
                         int32_t rows, const VectorizeOptions& options) {
  const Value count(Tensor::Scalar<int32_t>(rows));
  HR_ASSIGN_OR_RETURN(FunctionPtr all,
                      FunctionForRows(f, args, count, options));
  Values inputs;
  for (const RowValue& v : args) inputs.push_back(v.value);
  inputs.push_back(count);
  return Call(all, inputs);
}

VectorizeOptions NoLoops() {
  VectorizeOptions options;
  options.loops = false;
  return options;
}

std::vector<float> Numbers(const Tensor& t) {
  return {t.data<float>(), t.data<float>() + t.num_elements()};
}

const std::vector<float> kSix = {1, 2, 3, 4, 5, 6};

TEST(Vectorize, SharedAndStackedInputs) {
  FunctionPtr f = Row({{2}, {}}, [](OpScope& s, auto in) {
    return s("Sum", {s("Mul", {in[0], in[1]}), s.Int32s({0})});
  });
  auto y = ForRows(f, {Stacked(kSix, {3, 2}), Shared(2)}, 3, NoLoops());
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(Numbers(*y), (std::vector<float>{6, 14, 22}));
  y = ForRows(f, {Stacked(kSix, {3, 2}), Stacked({1, 0, 2}, {3})}, 3,
              NoLoops());
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(Numbers(*y), (std::vector<float>{3, 0, 22}));
}

TEST(Vectorize, WhatNoRowHasAHandInIsRepeated) {
  FunctionPtr f =
      Row({{2}}, [](OpScope& s, auto) { return s("Neg", {s.Scalar(kF, 3)}); });
  auto y = ForRows(f, {Stacked(kSix, {3, 2})}, 3, NoLoops());
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(Numbers(*y), (std::vector<float>{-3, -3, -3}));
}

TEST(Vectorize, NoRows) {
  FunctionPtr f = Row({{2, 3}}, [](OpScope& s, auto in) {
    Value flat = s("Reshape", {in[0], s.Int32s({-1})});
    return s("ConcatV2", {flat, flat, s.Int32(0)});
  });
  auto y = ForRows(f, {Stacked({}, {0, 2, 3})}, 0, NoLoops());
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(y->shape(), (Shape{0, 12}));
}

// Where a rank is not known, some ops have no form; their rows have.
TEST(Vectorize, UnknownRanks) {
  FunctionPtr f = Row({Shape::UnknownRank(), {}}, [](OpScope& s, auto in) {
    return s("AddV2", {in[0], in[1]});
  });
  const Values x = {Stacked(kSix, {3, 2}).value,
                    Stacked({10, 20, 30}, {3}).value};
  FunctionPtr all;
  auto traced = [&](const VectorizeOptions& options) {
    Status refusal;
    FunctionPtr whole = Traced(
        "whole", {{kF, Shape::UnknownRank()}, {kF, Shape{3}}},
        [&](OpScope& s, const Values& in) -> Values {
          const Value count = s.Int32(3);
          auto made = FunctionForRows(
              f, {{in[0], Stacking::kStacked}, {in[1], Stacking::kStacked}},
              count, options);
          refusal = made.status();
          if (!made.ok()) return {};
          all = *made;
          return {CallFunction(s, all, {in[0], in[1], count})[0]};
        });
    return refusal.ok() ? Call(whole, x) : StatusOr<Tensor>(refusal);
  };
  EXPECT_EQ(traced(NoLoops()).status().code(),
            absl::StatusCode::kUnimplemented);
  auto y = traced({});
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(Numbers(*y), (std::vector<float>{11, 12, 23, 24, 35, 36}));
}

TEST(Vectorize, OpsWithoutARuleAreToldOfAndLooped) {
  FunctionPtr f =
      Row({{2}}, [](OpScope& s, auto in) { return s("AsString", {in[0]}); });
  const RowValue x = Stacked(kSix, {3, 2});
  auto y = ForRows(f, {x}, 3, NoLoops());
  EXPECT_EQ(y.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_NE(y.status().message().find("vectorization defined for AsString"),
            std::string::npos);
  std::vector<std::string> told;
  VectorizeOptions options;
  options.warn = [&](const std::string& text) { told.push_back(text); };
  y = ForRows(f, {x}, 3, options);
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(y->shape(), (Shape{3, 2}));
  ASSERT_EQ(told.size(), 1);
  EXPECT_NE(told[0].find("converting AsString"), std::string::npos);
  // No rows are looped over as any other number is.
  y = ForRows(f, {Stacked({}, {0, 2})}, 0, {});
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(y->shape(), (Shape{0, 2}));
}

TEST(Vectorize, RowsOfDifferentSizesAreAnError) {
  FunctionPtr f =
      Row({{2}}, [](OpScope& s, auto in) { return s("Where", {in[0]}); });
  auto y = ForRows(f, {Stacked({0, 1, 1, 1}, {2, 2})}, 2, {});
  EXPECT_EQ(y.status().code(), absl::StatusCode::kInvalidArgument);
  y = ForRows(f, {Stacked({0, 1, 1, 0}, {2, 2})}, 2, {});
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(y->shape(), (Shape{2, 1, 1}));
}

// An op that takes any variant knows nothing of elements that have the rows.
TEST(Vectorize, ListsDoNotStrayIntoOtherOps) {
  FunctionPtr f = Row({{2}}, [](OpScope& s, auto in) {
    Value list = s("TensorListFromTensor",
                   {in[0], s.Int32s(absl::Span<const int32_t>())},
                   {{"element_dtype", kF}});
    Value two = s("Pack", {list, list});
    Value one = s.All("Unpack", {two}, {{"num", 2}})[1];
    return s("TensorListStack", {one, s.Int32s(absl::Span<const int32_t>())},
             {{"element_dtype", kF}});
  });
  const RowValue x = Stacked(kSix, {3, 2});
  auto y = ForRows(f, {x}, 3, NoLoops());
  ASSERT_EQ(y.status().code(), absl::StatusCode::kUnimplemented) << y.status();
  EXPECT_NE(y.status().message().find("'Pack'"), std::string::npos);
  y = ForRows(f, {x}, 3, {});
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(Numbers(*y), kSix);
}

TEST(Vectorize, ListsAreNoResults) {
  FunctionPtr f = Row({{2}}, [](OpScope& s, auto in) {
    return s("TensorListFromTensor",
             {in[0], s.Int32s(absl::Span<const int32_t>())},
             {{"element_dtype", kF}});
  });
  auto y = ForRows(f, {Stacked(kSix, {3, 2})}, 3, NoLoops());
  EXPECT_EQ(y.status().code(), absl::StatusCode::kUnimplemented);
}

TEST(Vectorize, CallsWithinCallsEnd) {
  FunctionPtr f =
      Row({{2}}, [](OpScope& s, auto in) { return s("Neg", {in[0]}); });
  std::vector<FunctionPtr> held = {f};
  for (int depth = 0; depth < 40; ++depth) {
    held.push_back(Row({{2}}, [&](OpScope& s, auto in) {
      return CallFunction(s, held.back(), {in[0]})[0];
    }));
  }
  const RowValue x = Stacked(kSix, {3, 2});
  auto y = ForRows(held.back(), {x}, 3, NoLoops());
  EXPECT_EQ(y.status().code(), absl::StatusCode::kUnimplemented);
  for (const FunctionPtr& g : {held.back(), held[8]}) {
    y = ForRows(g, {x}, 3, {});
    ASSERT_TRUE(y.ok()) << y.status();
    EXPECT_EQ(Numbers(*y), (std::vector<float>{-1, -2, -3, -4, -5, -6}));
  }
}

TEST(Vectorize, ArgumentsThatDoNotFit) {
  FunctionPtr f =
      Row({{2}}, [](OpScope& s, auto in) { return s("Neg", {in[0]}); });
  auto y = ForRows(f, {}, 3, NoLoops());
  EXPECT_EQ(y.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(RowsOf, CountsTheRows) {
  const Value three = Stacked(kSix, {3, 2}).value;
  const Value one = Stacked({7}, {1, 1}).value;
  auto rows = RowsOf({three, one});
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->count.tensor().scalar<int32_t>(), 3);
  EXPECT_EQ(rows->args[0].row_shape(), (Shape{2}));
  EXPECT_TRUE(rows->args[1].shared());
  EXPECT_EQ(rows->args[1].row_shape(), (Shape{1}));
  rows = RowsOf({one, one});
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_FALSE(rows->args[0].shared());
  EXPECT_EQ(rows->count.tensor().scalar<int32_t>(), 1);
}

TEST(RowsOf, RefusesWhatHasNone) {
  const Value three = Stacked(kSix, {3, 2}).value;
  const Value two = Stacked(kSix, {2, 3}).value;
  for (const std::vector<Value>& elems :
       {std::vector<Value>{}, {Shared(1).value}, {three, two}}) {
    EXPECT_EQ(RowsOf(elems).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace headrace
