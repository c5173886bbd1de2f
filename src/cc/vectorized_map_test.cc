#include "headrace/vectorized_map.h"

#include <stdexcept>

#include "gtest/gtest.h"
#include "headrace/headrace.h"

namespace tf = headrace::tf;

namespace {

using Rows = std::vector<tf::Tensor>;

tf::Tensor Matrix() {
  return tf::Tensor::From<float>({1, 2, 3, 4, 5, 6}, {3, 2});
}

Rows ScaledSum(const Rows& row) {
  return {tf::Sum(row[0] * row[1], tf::Tensor(0)), row[0]};
}

TEST(VectorizedMap, ElementsOfOneRowServeAll) {
  int traces = 0;
  const Rows y = tf::VectorizedMap(
      [&](const Rows& row) {
        ++traces;
        return ScaledSum(row);
      },
      {Matrix(), tf::Tensor::From<float>({2}, {1})});
  EXPECT_EQ(traces, 1);
  EXPECT_EQ(y[0].vector<float>(), (std::vector<float>{6, 14, 22}));
  EXPECT_EQ(y[1].shape().dims, (std::vector<int64_t>{3, 2}));
}

TEST(VectorizedMap, GradientsReachElementsAndVariables) {
  tf::Variable w(tf::Tensor(3.0f));
  const auto gradients = [&](const Rows& x) {
    tf::GradientTape tape(true);
    tape.watch(x[0]);
    const Rows y = tf::VectorizedMap(
        [&](const Rows& row) {
          return Rows{tf::Sum(row[0] * row[0], tf::Tensor(0)) * w};
        },
        x);
    return Rows{tape.gradient(y[0], x[0]), tape.gradient(y[0], w)};
  };
  const tf::Function traced(gradients);
  for (const Rows& g : {gradients({Matrix()}), traced({Matrix()})}) {
    const tf::Tensor six = tf::Tensor::From<int32_t>({6}, {1});
    EXPECT_EQ(tf::Reshape(g[0], six).vector<float>(),
              (std::vector<float>{6, 12, 18, 24, 30, 36}));
    EXPECT_EQ(g[1].item<float>(), 91);
  }
}

TEST(VectorizedMap, LoopsWhereItMay) {
  const auto texts = [](const Rows& row) { return Rows{tf::AsString(row[0])}; };
  tf::VectorizedMapOptions options;
  int told = 0;
  options.warn = [&](const std::string&) { ++told; };
  const Rows y = tf::VectorizedMap(texts, {Matrix()}, options);
  EXPECT_EQ(y[0].shape().dims, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(told, 1);
  options.loops = false;
  try {
    tf::VectorizedMap(texts, {Matrix()}, options);
    FAIL();
  } catch (const tf::Error& e) {
    EXPECT_EQ(e.code(), tf::ErrorCode::kUnimplemented);
  }
}

TEST(VectorizedMap, Refusals) {
  const tf::Tensor two = tf::Tensor::From<float>({1, 2}, {2});
  for (const Rows& elems :
       {Rows{}, Rows{tf::Tensor(1.0f)}, Rows{Matrix(), two}}) {
    try {
      tf::VectorizedMap(ScaledSum, elems);
      FAIL();
    } catch (const tf::Error& e) {
      EXPECT_EQ(e.code(), tf::ErrorCode::kInvalidArgument);
    }
  }
  const auto fails = [](const Rows&) -> Rows {
    throw std::runtime_error("no");
  };
  EXPECT_THROW(tf::VectorizedMap(fails, {Matrix()}), std::runtime_error);
}

}  // namespace
