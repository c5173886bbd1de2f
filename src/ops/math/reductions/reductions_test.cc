#include <cmath>

#include "base/thread_pool.h"
#include "eager/eager_emitter.h"
#include "gtest/gtest.h"

namespace headrace {
namespace {

Tensor Waves(Shape shape) {
  Tensor t = *Tensor::Allocate(DType::kFloat, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    t.data<float>()[i] = std::sin(static_cast<float>(i * i % 1009));
  }
  return t;
}

Tensor Axes(std::vector<int32_t> v) { return Tensor::Vector<int32_t>(v); }

// Every subset of the axes of a tensor of rank 4, against a plain loop.
TEST(Reductions, AllAxes) {
  for (const Shape& shape :
       {Shape{3, 5, 4, 7}, Shape{2, 1500, 1, 3}, Shape{40, 2, 3, 300}}) {
    Tensor x = Waves(shape);
    for (int mask = 0; mask < 16; ++mask) {
      std::vector<int32_t> axes;
      Shape kept;
      for (int i = 0; i < 4; ++i) {
        if (mask >> i & 1) {
          axes.push_back(i - 4);
          kept.AddDim(1);
        } else {
          kept.AddDim(shape[i]);
        }
      }
      std::vector<double> sums(kept.num_elements());
      std::vector<float> tops(kept.num_elements(), -INFINITY);
      for (int64_t i = 0; i < x.num_elements(); ++i) {
        int64_t rest = i, at = 0, stride = 1;
        for (int d = 3; d >= 0; --d) {
          const int64_t k = rest % shape[d];
          rest /= shape[d];
          if (!(mask >> d & 1)) at += k * stride;
          stride *= kept[d];
        }
        sums[at] += x.data<float>()[i];
        tops[at] = std::max(tops[at], x.data<float>()[i]);
      }
      auto sum = RunOp("Sum", {x, Axes(axes)}, {{"keep_dims", true}});
      auto max = RunOp("Max", {x, Axes(axes)}, {{"keep_dims", true}});
      ASSERT_TRUE(sum.ok() && max.ok()) << sum.status() << max.status();
      ASSERT_EQ((*sum)[0].shape(), kept);
      for (size_t i = 0; i < sums.size(); ++i) {
        ASSERT_NEAR((*sum)[0].data<float>()[i], sums[i], 1e-3);
        ASSERT_EQ((*max)[0].data<float>()[i], tops[i]);
      }
    }
  }
}

TEST(Reductions, SameBitsForAnyThreads) {
  for (const Shape& shape :
       {Shape{1, 300000}, Shape{300000, 5}, Shape{4, 70000}, Shape{3000, 130},
        Shape{90000, 40}}) {
    for (int axis : {0, 1}) {
      Tensor x = Waves(shape);
      SetNumThreads(1);
      Tensor one = (*RunOp("Sum", {x, Axes({axis})}))[0];
      SetNumThreads(5);
      Tensor many = (*RunOp("Sum", {x, Axes({axis})}))[0];
      SetNumThreads(0);
      EXPECT_EQ(std::memcmp(one.raw(), many.raw(), one.bytes()), 0);
    }
  }
}

TEST(Reductions, EdgesAndErrors) {
  auto one = [](const char* op, Tensor x) {
    return (*RunOp(op, {x, Axes({0})}))[0];
  };
  Tensor none = *Tensor::Allocate(DType::kFloat, {0});
  EXPECT_EQ(one("Sum", none).scalar<float>(), 0);
  EXPECT_EQ(one("Prod", none).scalar<float>(), 1);
  EXPECT_EQ(one("Max", none).scalar<float>(), -INFINITY);
  EXPECT_TRUE(std::isnan(one("Mean", none).scalar<float>()));
  EXPECT_EQ(
      one("Mean", Tensor::Vector<int8_t>({100, 100, 50})).scalar<int8_t>(), 83);
  EXPECT_TRUE(std::isnan(
      one("Max", Tensor::Vector<float>({1, NAN, 2})).scalar<float>()));
  EXPECT_EQ(one("EuclideanNorm", Tensor::Vector<int32_t>({3, 4, 5}))
                .scalar<int32_t>(),
            7);
  EXPECT_TRUE(one("All", *Tensor::Allocate(DType::kBool, {0})).scalar<bool>());
  EXPECT_FALSE(RunOp("Sum", {Waves({2, 2}), Axes({0, -2})}).ok());
  EXPECT_FALSE(RunOp("Sum", {Waves({2, 2}), Axes({2})}).ok());
}

TEST(ArgMax, PassesOverNans) {
  auto at = [](Tensor x) {
    return (*RunOp("ArgMax", {x, Tensor::Scalar<int32_t>(0)}))[0]
        .scalar<int64_t>();
  };
  EXPECT_EQ(at(Tensor::Vector<float>({NAN, 1, NAN, 2})), 3);
  EXPECT_EQ(at(Tensor::Vector<float>({5, 7, 7, 2})), 1);
  std::vector<int32_t> many(10000, 3);
  many[7321] = 4;
  EXPECT_EQ(at(Tensor::Vector<int32_t>(many)), 7321);
  Tensor x = Waves({50, 70});
  auto r = RunOp("ArgMin", {x, Tensor::Scalar<int32_t>(0)});
  ASSERT_TRUE(r.ok());
  for (int j = 0; j < 70; ++j) {
    int best = 0;
    for (int i = 1; i < 50; ++i) {
      if (x.data<float>()[i * 70 + j] < x.data<float>()[best * 70 + j])
        best = i;
    }
    EXPECT_EQ((*r)[0].data<int64_t>()[j], best);
  }
}

}  // namespace
}  // namespace headrace
