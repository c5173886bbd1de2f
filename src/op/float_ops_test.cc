#include "op/float_ops.h"

#include "gtest/gtest.h"
#include "op/registry.h"

namespace headrace {
namespace {

std::optional<int64_t> Count(StringView name, std::vector<DType> types,
                             const AttrMap& attrs, std::vector<Shape> inputs,
                             const Shape& output) {
  StatusOr<ResolvedOpPtr> op = ResolveOp(*FindOp(name), types, attrs);
  EXPECT_TRUE(op.ok()) << op.status();
  std::vector<const Shape*> given;
  for (const Shape& s : inputs) given.push_back(&s);
  const Shape* made[] = {&output};
  return CountFloatOps(**op, given, made);
}

const std::vector<DType> kTwo = {DType::kFloat, DType::kFloat};

TEST(FloatOps, FollowTheShapes) {
  EXPECT_EQ(Count("MatMul", kTwo, {}, {{2, 3}, {3, 4}}, {2, 4}), 48);
  EXPECT_EQ(
      Count("MatMul", kTwo, {{"transpose_a", true}}, {{3, 2}, {3, 4}}, {2, 4}),
      48);
  EXPECT_EQ(Count("L2Loss", {DType::kFloat}, {}, {Shape{0}}, {}), 0);
}

TEST(FloatOps, AreNothingWhereNobodyCounts) {
  EXPECT_EQ(Count("Tanh", {DType::kFloat}, {}, {Shape{3}}, {3}), std::nullopt);
}

TEST(FloatOps, AreUnknownWithTheShapes) {
  const Shape any = Shape::UnknownRank();
  EXPECT_EQ(Count("AddV2", kTwo, {}, {{-1, 4}, {4}}, {-1, 4}),
            kUnknownFloatOps);
  EXPECT_EQ(Count("MatMul", kTwo, {}, {any, any}, {2, 4}), kUnknownFloatOps);
  EXPECT_EQ(Count("MatMul", kTwo, {}, {}, {2, 4}), kUnknownFloatOps);
}

// Sizes whose product is more than 64 bits hold.
TEST(FloatOps, AreCutOff) {
  const int64_t n = int64_t{1} << 31;
  EXPECT_EQ(Count("MatMul", kTwo, {}, {{n, n}, {n, n}}, {n, n}),
            int64_t{9200000000000000000});
}

}  // namespace
}  // namespace headrace
