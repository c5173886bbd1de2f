#include "base/status.h"

#include "gtest/gtest.h"

namespace headrace {
namespace {

StatusOr<int> Half(int x) {
  if (x % 2) return InvalidArgument("Half: ", x, " is odd");
  return x / 2;
}

StatusOr<int> Quarter(int x) {
  HR_ASSIGN_OR_RETURN(int half, Half(x));
  return Half(half);
}

TEST(Status, PropagatesTheFirstError) {
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_EQ(Quarter(6).status().message(), "Half: 3 is odd");
  EXPECT_EQ(Quarter(7).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace headrace
