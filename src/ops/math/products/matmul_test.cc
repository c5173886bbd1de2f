#include <array>
#include <cmath>

#include "base/thread_pool.h"
#include "eager/eager_emitter.h"
#include "gtest/gtest.h"
#include "ops/math/products/gemm.h"

namespace headrace {
namespace {

// Numbers that are easy to sum exactly.
template <typename T>
Tensor Numbers(Shape shape) {
  Tensor t = *Tensor::Allocate(DTypeOf<T>, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    t.data<T>()[i] = static_cast<T>(static_cast<float>(i * 7 % 11) - 5);
  }
  return t;
}

template <typename T>
void CheckProduct(int64_t m, int64_t n, int64_t k, bool ta, bool tb) {
  Tensor a = Numbers<T>(ta ? Shape{k, m} : Shape{m, k});
  Tensor b = Numbers<T>(tb ? Shape{n, k} : Shape{k, n});
  auto c = RunOp("MatMul", {a, b}, {{"transpose_a", ta}, {"transpose_b", tb}});
  ASSERT_TRUE(c.ok()) << c.status();
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < k; ++p) {
        sum += static_cast<double>(a.data<T>()[ta ? p * m + i : i * k + p]) *
               static_cast<double>(b.data<T>()[tb ? j * k + p : p * n + j]);
      }
      const double got = static_cast<double>((*c)[0].data<T>()[i * n + j]);
      ASSERT_NEAR(got, sum, std::abs(sum) * 0.01)
          << m << "x" << n << "x" << k << " at " << i << "," << j;
    }
  }
}

TEST(MatMul, EveryWayOfPacking) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{1, 1, 1},
                         {3, 5, 7},
                         {1, 300, 40},
                         {300, 1, 40},
                         {17, 33, 9},
                         {64, 64, 64},
                         {40, 130, 600},
                         {129, 70, 1030},
                         {131, 115, 257},
                         {9, 1200, 301},
                         {700, 17, 260},
                         {32, 128, 512},
                         {12, 45, 2000},
                         {64, 130, 1030},
                         {33, 517, 129},
                         // Rows of operands a multiple of 2 KiB apart, strips
                         // of copies of which rows would be so again.
                         {16, 1024, 300},
                         {40, 2048, 264},
                         {512, 96, 260},
                         {1024, 100, 130},
                         {264, 2048, 40},
                         {20, 512, 2048},
                         // Few rows.
                         {2, 1100, 70},
                         {3, 2048, 130},
                         {7, 301, 100},
                         {5, 70, 64},
                         {4, 9, 5000},
                         {0, 3, 2},
                         {3, 2, 0}}) {
    for (int t = 0; t < 4; ++t) {
      CheckProduct<float>(m, n, k, t & 1, t & 2);
      CheckProduct<double>(m, n, k, t & 1, t & 2);
    }
  }
}

TEST(MatMul, OtherTypes) {
  for (int t = 0; t < 4; ++t) {
    CheckProduct<int32_t>(5, 6, 7, t & 1, t & 2);
    CheckProduct<half>(5, 6, 7, t & 1, t & 2);
    CheckProduct<bfloat16>(5, 1, 7, t & 1, t & 2);
  }
}

TEST(MatMul, NansStayInTheirRow) {
  Tensor a = Numbers<float>({200, 128}), b = Numbers<float>({128, 200});
  a.data<float>()[7 * 128 + 5] = std::nanf("");
  Tensor c = (*RunOp("MatMul", {a, b}))[0];
  for (int64_t i = 0; i < c.num_elements(); ++i) {
    ASSERT_EQ(std::isnan(c.data<float>()[i]), i / 200 == 7) << i;
  }
}

class MatMulThreads : public testing::TestWithParam<std::array<int64_t, 3>> {};
INSTANTIATE_TEST_SUITE_P(Sizes, MatMulThreads,
                         testing::Values(std::array<int64_t, 3>{150, 90, 700},
                                         std::array<int64_t, 3>{1021, 515, 129},
                                         std::array<int64_t, 3>{32, 1000, 64},
                                         std::array<int64_t, 3>{5, 90, 700}));

TEST_P(MatMulThreads, SameBits) {
  const auto [m, n, k] = GetParam();
  Tensor a = *Tensor::Allocate(DType::kFloat, {m, k});
  Tensor b = *Tensor::Allocate(DType::kFloat, {k, n});
  for (Tensor* t : {&a, &b}) {
    for (int64_t i = 0; i < t->num_elements(); ++i) {
      t->data<float>()[i] = std::sin(static_cast<float>(i));
    }
  }
  SetNumThreads(1);
  Tensor one = (*RunOp("MatMul", {a, b}))[0];
  for (int threads : {2, 4, 7}) {
    SetNumThreads(threads);
    Tensor many = (*RunOp("MatMul", {a, b}))[0];
    EXPECT_EQ(std::memcmp(one.raw(), many.raw(), one.bytes()), 0) << threads;
  }
  SetNumThreads(0);
}

TEST(MatMul, FewRowsWithATransposedMatrixHaveTheSameBitsForAnyThreads) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{32, 128, 512},
                         {13, 200, 1500},
                         {64, 33, 1000}}) {
    const Tensor a = Numbers<float>({m, k}), b = Numbers<float>({n, k});
    SetNumThreads(1);
    const Tensor one = (*RunOp("MatMul", {a, b}, {{"transpose_b", true}}))[0];
    for (int threads : {2, 5}) {
      SetNumThreads(threads);
      const Tensor many =
          (*RunOp("MatMul", {a, b}, {{"transpose_b", true}}))[0];
      EXPECT_EQ(std::memcmp(one.raw(), many.raw(), one.bytes()), 0) << threads;
    }
    SetNumThreads(0);
  }
}

TEST(MatMul, RefusesSizesThatDiffer) {
  auto r = RunOp("MatMul", {Numbers<float>({2, 3}), Numbers<float>({4, 5})});
  EXPECT_EQ(r.status().message(),
            "Matrix size-incompatible: In[0]: [2,3], In[1]: [4,5] [Op:MatMul]");
}

TEST(BatchMatMul, Broadcasts) {
  Tensor x = Numbers<float>({2, 1, 3, 4}), y = Numbers<float>({5, 4, 2});
  auto c = RunOp("BatchMatMulV2", {x, y});
  ASSERT_TRUE(c.ok()) << c.status();
  const Tensor& out = (*c)[0];
  ASSERT_EQ(out.shape(), (Shape{2, 5, 3, 2}));
  for (int i = 0; i < 10; ++i) {
    auto part = RunOp("MatMul", {x.Rows(i / 5, i / 5 + 1).WithShape({3, 4}),
                                 y.Rows(i % 5, i % 5 + 1).WithShape({4, 2})});
    ASSERT_TRUE(part.ok());
    EXPECT_EQ(std::memcmp((*part)[0].raw(), out.data<float>() + i * 6, 24), 0);
  }
}

// Products that are made one after the other while the next one's operands are
// fetched have the bits of each by itself, on any number of threads.
TEST(BatchMatMul, OfMiddlingSizesHasTheBitsOfEach) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{128, 128, 64},
                         {37, 96, 200},
                         {100, 32, 384},
                         {128, 64, 128},
                         {64, 128, 97},
                         {50, 72, 150}}) {
    for (int t = 0; t < 4; ++t) {
      const int64_t count = 9;
      const bool ta = t & 1, tb = t & 2;
      Tensor a = *Tensor::Allocate(
          DType::kFloat, ta ? Shape{count, k, m} : Shape{count, m, k});
      Tensor b = *Tensor::Allocate(
          DType::kFloat, tb ? Shape{count, n, k} : Shape{count, k, n});
      for (Tensor* each : {&a, &b}) {
        for (int64_t i = 0; i < each->num_elements(); ++i) {
          each->data<float>()[i] = std::sin(static_cast<float>(i));
        }
      }
      for (int threads : {1, 2, 4}) {
        SetNumThreads(threads);
        const Tensor all = (*RunOp("BatchMatMulV2", {a, b},
                                   {{"adj_x", ta}, {"adj_y", tb}}))[0];
        for (int64_t i = 0; i < count; ++i) {
          // (Not by MatMul, which may turn B round first: on some processors
          // oneDNN adds up in another order then.)
          Tensor one = *Tensor::Allocate(DType::kFloat, Shape{m, n});
          ASSERT_TRUE(Gemm(DType::kFloat, GemmDims::Dense(m, n, k, ta, tb),
                           a.data<float>() + i * m * k,
                           b.data<float>() + i * k * n, one.data<float>())
                          .ok());
          EXPECT_EQ(
              std::memcmp(one.raw(), all.Rows(i, i + 1).raw(), one.bytes()), 0)
              << m << " " << n << " " << k << " " << t << " " << i;
        }
      }
      SetNumThreads(0);
    }
  }
}

}  // namespace
}  // namespace headrace
