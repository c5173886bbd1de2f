// Products that read parts of their operands, or make parts of their results,
// must compute what the ops by themselves do.
#include "absl/strings/match.h"
#include "op/registry.h"
#include "runtime/test_plan.h"

namespace headrace {
namespace {

bool Has(const std::string& plan, StringView op) {
  return absl::StrContains(plan, absl::StrCat("= ", op, "("));
}

TEST(NarrowProducts, OnePartOfASplit) {
  for (bool ta : {false, true}) {
    for (bool tb : {false, true}) {
      for (int64_t m : {1, 3, 40}) {
        std::string plan = Compare(
            [&](OpScope& s, const Values& v) -> Values {
              Value p = s("MatMul", {v[0], v[1]},
                          {{"transpose_a", ta}, {"transpose_b", tb}});
              return {s.All("SplitV", {p, s.Int32s({50, 90}), s.Int32(1)},
                            {{"num_split", 2}})[1]};
            },
            {Numbers(ta ? Shape{160, m} : Shape{m, 160}),
             Numbers(tb ? Shape{140, 160} : Shape{160, 140})});
        EXPECT_EQ(Lines(plan), 1) << plan;
      }
    }
  }
}

TEST(NarrowProducts, ASliceOfColumns) {
  auto body = [](int64_t row, int64_t rows) {
    return [=](OpScope& s, const Values& v) -> Values {
      Value p = s("MatMul", {v[0], v[1]});
      return {s("Relu", {s("Slice", {p, s.Int32s({(int32_t)row, 7}),
                                     s.Int32s({(int32_t)rows, 20})})})};
    };
  };
  const std::vector<Tensor> in = {Numbers({30, 24}), Numbers({24, 33}, 5)};
  EXPECT_FALSE(Has(Compare(body(0, 30), in), "Slice"));
  EXPECT_TRUE(Has(Compare(body(3, 20), in), "Slice"));  // of rows as well
}

TEST(NarrowProducts, WhatIsReadWholeStays) {
  const std::vector<Tensor> in = {Numbers({30, 24}), Numbers({24, 40}, 5)};
  std::string both = Compare(
      [](OpScope& s, const Values& v) -> Values {
        ValueList parts =
            s.All("Split", {s.Int32(1), s("MatMul", {v[0], v[1]})},
                  {{"num_split", 2}});
        return {parts[0], parts[1]};
      },
      in);
  EXPECT_TRUE(Has(both, "Split"));
  std::string whole = Compare(
      [](OpScope& s, const Values& v) -> Values {
        Value p = s("MatMul", {v[0], v[1]});
        return {p, s.All("Split", {s.Int32(-1), p}, {{"num_split", 4}})[2]};
      },
      in);
  EXPECT_TRUE(Has(whole, "Split"));
}

TEST(NarrowProducts, ColumnsAreChecked) {
  const DType f = DType::kFloat;
  using Columns = std::vector<int64_t>;
  for (const Columns& columns :
       {Columns{}, Columns{1}, Columns{-1, 2}, Columns{2, -1}, Columns{3, 2},
        Columns{INT64_MAX, INT64_MAX}, Columns{0, 1, 2}}) {
    auto op =
        ResolveOp(*FindOp("MatMul"), {f, f}, {{"_headrace_columns", columns}});
    ASSERT_TRUE(op.ok()) << op.status();
    OpScope s;
    s("MatMul", {Value(Numbers({3, 4})), Value(Numbers({4, 4}))},
      {{"_headrace_columns", columns}});
    EXPECT_TRUE(absl::IsInvalidArgument(s.status())) << s.status();
  }
}

// Attention over what one product made: `three` is [n, t, 3, heads, size].
Values Attention(OpScope& s, const Value& three, int64_t heads, int64_t size) {
  ValueList parts =
      s.All("Unpack", {three}, {{"num", 3}, {"axis", 2}});  // [n, t, h, d]
  auto turned = [&](const Value& v) {
    return s("Transpose", {v, s.Int32s({0, 2, 1, 3})});
  };
  Value q = turned(parts[0]), k = turned(parts[1]), v = turned(parts[2]);
  Value scores = s("BatchMatMulV2", {q, k}, {{"adj_y", true}});
  Value heard = turned(s("BatchMatMulV2", {scores, v}));
  const int32_t width = static_cast<int32_t>(heads * size);
  return {s("Reshape", {heard, s.Int32s({-1, width})}), scores};
}

TEST(ViewOperands, Attention) {
  for (int64_t t : {1, 5, 33}) {
    for (int64_t size : {1, 8, 32}) {
      std::string plan = Compare(
          [&](OpScope& s, const Values& v) -> Values {
            return Attention(s, v[0], 4, size);
          },
          {Numbers({2, t, 3, 4, size})});
      EXPECT_FALSE(Has(plan, "Transpose")) << plan;
      EXPECT_FALSE(Has(plan, "Unpack")) << plan;
      EXPECT_FALSE(Has(plan, "BatchMatMulV2")) << plan;
    }
  }
}

TEST(ViewOperands, BothSidesAdjointAndTurned) {
  for (bool ax : {false, true}) {
    for (bool ay : {false, true}) {
      std::string plan = Compare(
          [&](OpScope& s, const Values& v) -> Values {
            Value x = s("Transpose", {v[0], s.Int32s({1, 0, 3, 2})});
            Value y = s("Transpose", {v[1], s.Int32s({2, 0, 1, 3})});
            Value p =
                s("BatchMatMulV2", {x, y}, {{"adj_x", ax}, {"adj_y", ay}});
            return {s("Transpose", {p, s.Int32s({2, 1, 0, 3})})};
          },
          {Numbers(ax ? Shape{3, 2, 9, 40} : Shape{3, 2, 40, 9}),
           Numbers(ay ? Shape{3, 20, 2, 40} : Shape{3, 40, 2, 20}, 5)});
      EXPECT_EQ(Lines(plan), 1) << plan;
    }
  }
}

// A transposition between two products belongs to one of them only.
TEST(ViewOperands, ProductsInARow) {
  Compare(
      [](OpScope& s, const Values& v) -> Values {
        Value p = s("BatchMatMul", {v[0], v[1]});
        Value turned = s("Transpose", {p, s.Int32s({1, 0, 2})});
        Value q = s("BatchMatMul", {turned, v[2]});
        Value back = s("Transpose", {q, s.Int32s({1, 0, 2})});
        return {s("BatchMatMul", {back, back}, {{"adj_y", true}}), back};
      },
      {Numbers({6, 5, 4}), Numbers({6, 4, 3}), Numbers({5, 3, 7})});
}

TEST(ViewOperands, WhatDoesNotFitStays) {
  // Columns that are not contiguous, batches that are broadcast.
  std::string plan = Compare(
      [](OpScope& s, const Values& v) -> Values {
        Value x = s("Transpose", {v[0], s.Int32s({2, 1, 0})});
        Value p = s("BatchMatMulV2", {x, v[1]});
        return {s("Transpose", {p, s.Int32s({0, 2, 1})})};
      },
      {Numbers({4, 5, 6}), Numbers({1, 4, 7})});
  EXPECT_TRUE(Has(plan, "Transpose")) << plan;
  EXPECT_TRUE(Has(plan, "BatchMatMulV2")) << plan;
}

TEST(ViewOperands, OrdersAreChecked) {
  using List = std::vector<int64_t>;
  struct Case {
    int64_t axis, index;
    List x, out;
  };
  for (const Case& c :
       {Case{-1, 0, {0, 1}, {}}, Case{-1, 0, {0, 0, 2}, {}},
        Case{-1, 0, {0, 1, 3}, {}}, Case{3, 0, {}, {}}, Case{0, 2, {}, {}},
        Case{0, -1, {}, {}}, Case{0, 0, {}, {}}, Case{-1, 0, {}, {0, 1}},
        Case{-1, 0, {}, {-1, 1, 2}}}) {
    OpScope s;
    s("_ViewedBatchMatMul",
      {Value(Numbers({2, 3, 4})), Value(Numbers({2, 4, 5}))},
      {{"x_axis", c.axis},
       {"x_index", c.index},
       {"x_order", c.x},
       {"out_order", c.out}});
    EXPECT_TRUE(absl::IsInvalidArgument(s.status())) << s.status();
  }
}

}  // namespace
}  // namespace headrace
