#include "ops/array/permute.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace headrace {
namespace {

void ExpectPermuted(std::vector<int64_t> dims, std::vector<int32_t> order,
                    int size) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  std::mt19937 random(n);
  std::vector<char> x(n * size), y(n * size, 77), want(n * size);
  for (char& c : x) c = static_cast<char>(random());
  const int rank = static_cast<int>(dims.size());
  std::vector<int64_t> stride(rank, 1), at(rank, 0);
  for (int i = rank - 2; i >= 0; --i) stride[i] = stride[i + 1] * dims[i + 1];
  for (int64_t i = 0; i < n; ++i) {
    int64_t offset = 0;
    for (int k = 0; k < rank; ++k) offset += at[k] * stride[order[k]];
    std::memcpy(&want[i * size], &x[offset * size], size);
    for (int k = rank - 1; k >= 0 && ++at[k] == dims[order[k]]; --k) at[k] = 0;
  }
  ASSERT_TRUE(Permute(x.data(), y.data(), dims, order, size).ok());
  EXPECT_TRUE(y == want) << testing::PrintToString(dims) << " "
                         << testing::PrintToString(order) << " " << size;
}

TEST(Permute, MatricesOfAllSizes) {
  for (int size : {1, 2, 4, 8, 16}) {
    for (int64_t r : {1, 2, 15, 16, 17, 64, 130}) {
      for (int64_t c : {1, 3, 16, 33, 100}) {
        ExpectPermuted({r, c}, {1, 0}, size);
      }
    }
  }
}

TEST(Permute, AllOrdersOfFourAxes) {
  std::vector<int32_t> order = {0, 1, 2, 3};
  do {
    ExpectPermuted({3, 18, 5, 33}, order, 4);
    ExpectPermuted({2, 1, 40, 3}, order, 2);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(Permute, EmptyAndScalar) {
  ExpectPermuted({0, 3}, {1, 0}, 4);
  ExpectPermuted({}, {}, 4);
}

TEST(Permute, RejectsWhatIsNoPermutation) {
  char x[16], y[16];
  EXPECT_FALSE(Permute(x, y, {2, 2}, {0, 0}, 4).ok());
  EXPECT_FALSE(Permute(x, y, {2, 2}, {0, 2}, 4).ok());
  EXPECT_FALSE(Permute(x, y, {2, 2}, {0}, 4).ok());
  EXPECT_FALSE(Permute(x, y, {2, 2}, {1, 0}, 3).ok());
}

}  // namespace
}  // namespace headrace
