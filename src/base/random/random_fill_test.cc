#include "base/random/random_fill.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "base/thread_pool.h"
#include "gtest/gtest.h"

namespace headrace {
namespace {

// What TensorFlow 2.21 draws for the stateless seed [1, 2].
const Philox kOneTwo = Philox::FromStatelessSeed(1, 2);

TEST(Philox, KeyAndCounterOfStatelessSeed) {
  const Philox p = Philox::FromStatelessSeed(3, 4);
  EXPECT_EQ(p.key64(), 5186321457711525117u);
  EXPECT_EQ(p.counter_low(), 0u);
  EXPECT_EQ(p.counter_high(), 2956673722964415482u);
}

TEST(Philox, SkipCarries) {
  Philox a = Philox::FromState(~uint64_t{0}, 7, 9);
  a.Next();
  EXPECT_EQ(a.counter_low(), 0u);
  EXPECT_EQ(a.counter_high(), 8u);
  Philox b = Philox::FromState(5, 7, 9);
  b.Skip(~uint64_t{0});
  EXPECT_EQ(b.counter_low(), 4u);
  EXPECT_EQ(b.counter_high(), 8u);
}

TEST(RandomFill, UniformAsTensorFlow) {
  float f[7];
  FillUniform(kOneTwo, f, 7);
  const float want[] = {0.8440604209899902,  0.19204533100128174,
                        0.9962232112884521,  0.16038739681243896,
                        0.27199018001556396, 0.6493459939956665,
                        0.10694444179534912};
  for (int i = 0; i < 7; ++i) EXPECT_EQ(f[i], want[i]);
  double d[2];
  FillUniform(kOneTwo, d, 2);
  EXPECT_EQ(d[0], 0.7524837538451801);
  EXPECT_EQ(d[1], 0.9697857725627486);
  half h[3];
  FillUniform(kOneTwo, h, 3);
  EXPECT_EQ(float{h[0]}, 0.54296875f);
  EXPECT_EQ(float{h[2]}, 0.060546875f);
}

TEST(RandomFill, IntegersAsTensorFlow) {
  int32_t i32[9];
  FillUniformInt(kOneTwo, 0, 10, i32, 9);
  const int want[] = {0, 9, 4, 9, 7, 5, 1, 2, 3};
  for (int i = 0; i < 9; ++i) EXPECT_EQ(i32[i], want[i]);
  int64_t i64[2];
  FillUniformInt<int64_t>(kOneTwo, -9, int64_t{1} << 50, i64, 2);
  EXPECT_EQ(i64[0], 163763913957645);
  EXPECT_EQ(i64[1], 149069389320840);
  uint32_t u32[2];
  FillBits(kOneTwo, u32, 2);
  EXPECT_EQ(u32[0], 1105988140u);
  EXPECT_EQ(u32[1], 1738052849u);
  FillBits(kOneTwo, i64, 2);
  EXPECT_EQ(i64[0], 7464880146280614444);
}

TEST(RandomFill, NormalAsTensorFlow) {
  float f[9];
  FillNormal(kOneTwo, f, 9);
  const float want[] = {
      0.544110119342804,   0.20738030970096588, 0.0735643208026886,
      0.04643455147743225, -1.301589846611023,  -0.9538565278053284,
      0.8417285680770874,  1.9396867752075195,  0.6512577533721924};
  for (int i = 0; i < 9; ++i) EXPECT_NEAR(f[i], want[i], 4e-7);
  double d[5];
  FillNormal(kOneTwo, d, 5);
  const double want64[] = {-0.1423118100189212, 0.7406072461585091,
                           -1.469047669443883, 1.147747453689489,
                           -0.7218813856153005};
  for (int i = 0; i < 5; ++i) EXPECT_NEAR(d[i], want64[i], 1e-15);
  FillTruncatedNormal(kOneTwo, f, 9);
  const float truncated[] = {
      0.544110119342804,   0.20738030970096588, 0.0735643208026886,
      0.04643455147743225, 0.16820591688156128, -1.6850333213806152,
      0.24202857911586761, 1.703450322151184,   1.1060677766799927};
  for (int i = 0; i < 9; ++i) EXPECT_NEAR(f[i], truncated[i], 4e-7);
}

// The scalar definition, number by number.
TEST(RandomFill, RangesAgreeWithTheRemainder) {
  constexpr int kN = 4096;
  std::vector<uint32_t> words(kN), numbers(kN);
  FillBits(kOneTwo, words.data(), kN);
  for (uint32_t range :
       {1u, 2u, 3u, 7u, 1000003u, 1u << 31, 0xfffffffeu, 0xffffffffu}) {
    FillUniformInt(kOneTwo, 0u, range, numbers.data(), kN);
    for (int i = 0; i < kN; ++i) ASSERT_EQ(numbers[i], words[i] % range);
  }
}

TEST(RandomFill, CounterCarriesInsideABlock) {
  for (uint64_t low : {uint64_t{0xfffffff0}, ~uint64_t{0} - 20}) {
    const Philox start = Philox::FromState(low, 5, 6);
    uint32_t words[400];
    FillBits(start, words, 400);
    Philox p = start;
    for (int g = 0; g < 100; ++g) {
      const Philox::Group want = p.Next();
      for (int j = 0; j < 4; ++j) ASSERT_EQ(words[4 * g + j], want[j]) << g;
    }
  }
}

template <typename T>
void ExpectSameForAnyThreads(void (*fill)(const Philox&, T*, int64_t)) {
  constexpr int64_t kN = 100003;
  std::vector<T> one(kN), three(kN);
  SetNumThreads(1);
  fill(Philox(42, 7), one.data(), kN);
  SetNumThreads(3);
  fill(Philox(42, 7), three.data(), kN);
  SetNumThreads(0);
  EXPECT_EQ(std::memcmp(one.data(), three.data(), kN * sizeof(T)), 0);
  double sum = 0, squares = 0;
  for (T t : one) {
    sum += double(t);
    squares += double(t) * double(t);
  }
  EXPECT_LT(std::abs(sum / kN), 0.02);
  EXPECT_LT(squares / kN, 1.02);
  EXPECT_GT(squares / kN, 0.74);
}

TEST(RandomFill, AnyNumberOfThreads) {
  ExpectSameForAnyThreads<float>(FillNormal);
  ExpectSameForAnyThreads<double>(FillNormal);
  ExpectSameForAnyThreads<half>(FillNormal);
  ExpectSameForAnyThreads<bfloat16>(FillTruncatedNormal);
  ExpectSameForAnyThreads<float>(FillTruncatedNormal);
  ExpectSameForAnyThreads<double>(FillTruncatedNormal);
}

}  // namespace
}  // namespace headrace
