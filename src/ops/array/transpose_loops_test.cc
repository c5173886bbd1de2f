#include "ops/array/transpose_loops.h"

#include <cstring>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace headrace {
namespace {

void ExpectTransposed(CpuLevel level, int64_t rows, int64_t columns, int size) {
  // Strides beyond the matrix, whose gaps must stay as they are.
  const int64_t xs = columns + 3, ys = rows + 5;
  std::vector<char> x(rows * xs * size), y(columns * ys * size, 77);
  std::mt19937 random(rows * columns);
  for (char& c : x) c = static_cast<char>(random());
  std::vector<char> want = y;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      std::memcpy(&want[(c * ys + r) * size], &x[(r * xs + c) * size], size);
    }
  }
  const TransposeLoop loop =
      AtLevel(level, [&](auto level) { return FindTranspose<level>(size); });
  loop(x.data(), xs, y.data(), ys, rows, columns);
  EXPECT_TRUE(y == want) << rows << "x" << columns << " of " << size;
}

TEST(TransposeLoops, AllSizesAtAllLevels) {
  for (CpuLevel level : kCpuLevels) {
    if (!CpuRuns(level)) continue;
    for (int size : {1, 2, 4, 8, 16}) {
      for (int64_t r : {1, 2, 15, 16, 17, 64, 130}) {
        for (int64_t c : {1, 3, 16, 33, 100}) {
          ExpectTransposed(level, r, c, size);
        }
      }
    }
  }
  EXPECT_EQ(AtActiveLevel([&](auto level) { return FindTranspose<level>(3); }),
            nullptr);
}

}  // namespace
}  // namespace headrace
