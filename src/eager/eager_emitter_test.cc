#include "eager/eager_emitter.h"

#include "gtest/gtest.h"

namespace headrace {
namespace {

TEST(EagerEmitter, RunsAnOp) {
  Tensor x = Tensor::Vector<float>({1, 2, 3});
  auto y = RunOp("Identity", {x});
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_TRUE((*y)[0].SharesBufferWith(x));
}

TEST(EagerEmitter, RefusesWrongCalls) {
  Tensor x = Tensor::Vector<float>({1, 2, 3});
  EXPECT_EQ(RunOp("NoSuchOp", {x}).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(RunOp("Identity", {x, x}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(RunOp("Identity", {x}, {{"no_attr", 1}}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace headrace
