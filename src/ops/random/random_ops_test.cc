// A few numbers of real TensorFlow's streams.
#include "eager/eager_emitter.h"
#include "gtest/gtest.h"

namespace headrace {
namespace {

TEST(RandomOps, AnOpGoesOnWithItsStream) {
  ForgetResolvedOps();
  AttrMap attrs = {{"seed", 1}, {"seed2", 2}, {"dtype", DType::kFloat}};
  Tensor shape = Tensor::Vector<int32_t>({3});
  auto first = RunOp("RandomUniform", {shape}, attrs);
  auto second = RunOp("RandomUniform", {shape}, attrs);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE((*first)[0].data<float>()[0], (*second)[0].data<float>()[0]);
  ForgetResolvedOps();
  auto again = RunOp("RandomUniform", {shape}, attrs);
  EXPECT_EQ((*first)[0].data<float>()[0], (*again)[0].data<float>()[0]);
}

TEST(RandomOps, RefusesBadShapes) {
  auto r = RunOp("RandomUniform", {Tensor::Vector<int32_t>({-1})},
                 {{"dtype", DType::kFloat}});
  EXPECT_EQ(r.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(RandomOps, StatelessNumbersFollowFromTheSeedAlone) {
  Tensor shape = Tensor::Vector<int32_t>({1000});
  Tensor seed = Tensor::Vector<int64_t>({3, 4});
  auto a = RunOp("StatelessRandomNormal", {shape, seed});
  auto b = RunOp("StatelessRandomNormal", {shape, seed});
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_TRUE(AttrEquals((*a)[0], (*b)[0]));
}

}  // namespace
}  // namespace headrace
