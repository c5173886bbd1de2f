#include "ops/math/reduce.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/float_types.h"
#include "base/thread_pool.h"
#include "gtest/gtest.h"

namespace headrace {
namespace {

constexpr int kFloat = 1, kDouble = 2, kInt32 = 3, kComplex64 = 8, kBool = 10,
              kHalf = 19;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> Random(int64_t n) {
  std::mt19937 random(n);
  std::vector<float> x(n);
  for (float& v : x) v = static_cast<float>(random() % 20001) / 10000 - 1;
  return x;
}

template <typename T>
std::vector<T> Fold(Reduction r, int dtype, const std::vector<T>& x, int64_t o,
                    int64_t m, int64_t i) {
  std::vector<T> y(o * i);
  EXPECT_TRUE(Reduce(r, dtype, x.data(), y.data(), o, m, i).ok());
  return y;
}

TEST(Reduce, SumsAreNearTheTruth) {
  for (int64_t o : {1, 3}) {
    for (int64_t m : {1, 15, 64, 1000, 5000, 70001}) {
      for (int64_t i : {1, 2, 7, 130}) {
        const auto x = Random(o * m * i);
        const auto y = Fold(Reduction::kSum, kFloat, x, o, m, i);
        for (int64_t k = 0; k < o * i; ++k) {
          double sum = 0;
          for (int64_t j = 0; j < m; ++j) {
            sum += x[(k / i * m + j) * i + k % i];
          }
          ASSERT_NEAR(y[k], sum, 1e-6 * std::sqrt(m) + 1e-6)
              << o << " " << m << " " << i;
        }
      }
    }
  }
}

TEST(Reduce, BitsDoNotDependOnThreads) {
  const auto x = Random(3000000);
  for (int64_t inner : {1, 6}) {
    SetNumThreads(1);
    const auto one =
        Fold(Reduction::kSum, kFloat, x, 1, 3000000 / inner, inner);
    SetNumThreads(4);
    const auto four =
        Fold(Reduction::kSum, kFloat, x, 1, 3000000 / inner, inner);
    SetNumThreads(0);
    EXPECT_EQ(std::memcmp(one.data(), four.data(), inner * 4), 0);
  }
}

TEST(Reduce, AllKinds) {
  const std::vector<int32_t> x = {3, -1, 4, 1, -5, 9};
  using I = std::vector<int32_t>;
  EXPECT_EQ(Fold(Reduction::kSum, kInt32, x, 2, 3, 1), I({6, 5}));
  EXPECT_EQ(Fold(Reduction::kSum, kInt32, x, 1, 2, 3), I({4, -6, 13}));
  EXPECT_EQ(Fold(Reduction::kProd, kInt32, x, 2, 3, 1), I({-12, -45}));
  EXPECT_EQ(Fold(Reduction::kMax, kInt32, x, 1, 2, 3), I({3, -1, 9}));
  EXPECT_EQ(Fold(Reduction::kMin, kInt32, x, 1, 6, 1), I({-5}));
  EXPECT_EQ(Fold(Reduction::kMean, kInt32, x, 2, 3, 1), I({2, 1}));
  const std::vector<uint8_t> b = {1, 0, 1, 1};
  using B = std::vector<uint8_t>;
  EXPECT_EQ(Fold(Reduction::kAll, kBool, b, 2, 2, 1), B({0, 1}));
  EXPECT_EQ(Fold(Reduction::kAny, kBool, b, 1, 2, 2), B({1, 1}));
  const std::vector<float> c = {1, 2, 3, 4};  // 1+2i, 3+4i
  std::vector<float> y(2);
  ASSERT_TRUE(
      Reduce(Reduction::kSum, kComplex64, c.data(), y.data(), 1, 2, 1).ok());
  EXPECT_EQ(y, std::vector<float>({4, 6}));
  ASSERT_TRUE(
      Reduce(Reduction::kProd, kComplex64, c.data(), y.data(), 1, 2, 1).ok());
  EXPECT_EQ(y, std::vector<float>({-5, 10}));
  EXPECT_FALSE(
      Reduce(Reduction::kMax, kComplex64, c.data(), y.data(), 1, 2, 1).ok());
  EXPECT_FALSE(
      Reduce(Reduction::kAll, kInt32, x.data(), y.data(), 1, 2, 1).ok());
}

TEST(Reduce, EmptyGivesTheNeutralElement) {
  const std::vector<float> none;
  using F = std::vector<float>;
  EXPECT_EQ(Fold(Reduction::kSum, kFloat, none, 2, 0, 1), F({0, 0}));
  EXPECT_EQ(Fold(Reduction::kProd, kFloat, none, 1, 0, 2), F({1, 1}));
  EXPECT_EQ(Fold(Reduction::kMax, kFloat, none, 1, 0, 1), F({-kInf}));
  EXPECT_TRUE(std::isnan(Fold(Reduction::kMean, kFloat, none, 1, 0, 1)[0]));
  const std::vector<uint8_t> empty;
  EXPECT_EQ(Fold(Reduction::kAll, kBool, empty, 1, 0, 1)[0], 1);
  EXPECT_EQ(Fold(Reduction::kAny, kBool, empty, 1, 0, 2)[0], 0);
  const std::vector<int32_t> ints;
  EXPECT_EQ(Fold(Reduction::kMax, kInt32, ints, 1, 0, 1)[0], INT32_MIN);
}

TEST(Reduce, MaximumKeepsNans) {
  for (int64_t n : {3, 40, 300, 5000}) {
    for (int64_t at : {int64_t{0}, n / 2, n - 1}) {
      for (Reduction r : {Reduction::kMax, Reduction::kMin}) {
        auto x = Random(n);
        x[at] = kNan;
        EXPECT_TRUE(std::isnan(Fold(r, kFloat, x, 1, n, 1)[0])) << n;
        auto wide = Random(2 * n);
        wide[2 * at] = kNan;
        const auto y = Fold(r, kFloat, wide, 1, n, 2);
        EXPECT_TRUE(std::isnan(y[0]));
        EXPECT_FALSE(std::isnan(y[1]));
      }
    }
  }
}

TEST(Reduce, HalfIsSummedAsFloat) {
  const std::vector<half> x(100000, half(1.0f));
  EXPECT_EQ(float{Fold(Reduction::kMean, kHalf, x, 1, 100000, 1)[0]}, 1);
  EXPECT_EQ(float{Fold(Reduction::kSum, kHalf, x, 50, 2000, 1)[49]}, 2000);
  EXPECT_EQ(float{Fold(Reduction::kSum, kHalf, x, 1, 5000, 20)[3]}, 5000);
}

int64_t Arg(bool greatest, std::vector<float> x) {
  int64_t y = -1;
  EXPECT_TRUE(ArgReduce(greatest, kFloat, x.data(), &y, 1, x.size(), 1).ok());
  return y;
}

TEST(ArgReduce, AsTensorFlow) {
  EXPECT_EQ(Arg(true, {kNan, 1, 2}), 2);
  EXPECT_EQ(Arg(false, {kNan, 1, 2}), 1);
  EXPECT_EQ(Arg(true, {2, kNan, 1}), 0);
  EXPECT_EQ(Arg(true, {kNan, kNan}), 0);
  EXPECT_EQ(Arg(true, {-kInf, -kInf}), 0);
  EXPECT_EQ(Arg(false, {kNan, -kInf}), 1);
  EXPECT_EQ(Arg(true, {2, 2}), 0);
  std::vector<float> x(71, 1.f);
  x[40] = kNan;
  std::fill(x.begin() + 41, x.end(), 3.f);
  EXPECT_EQ(Arg(true, x), 41);
}

TEST(ArgReduce, RowsAndColumns) {
  for (int64_t n : {1, 5, 64, 1000, 4097}) {
    const auto x = Random(n * 20);
    std::vector<int64_t> rows(20), columns(20);
    ASSERT_TRUE(ArgReduce(true, kFloat, x.data(), rows.data(), 20, n, 1).ok());
    ASSERT_TRUE(
        ArgReduce(false, kFloat, x.data(), columns.data(), 1, n, 20).ok());
    for (int64_t k = 0; k < 20; ++k) {
      int64_t row = 0, column = 0;
      for (int64_t j = 0; j < n; ++j) {
        if (x[k * n + j] > x[k * n + row]) row = j;
        if (x[j * 20 + k] < x[column * 20 + k]) column = j;
      }
      ASSERT_EQ(rows[k], row);
      ASSERT_EQ(columns[k], column);
    }
  }
}

}  // namespace
}  // namespace headrace
