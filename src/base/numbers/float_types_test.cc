#include "base/numbers/float_types.h"

#include <cmath>
#include <cstring>

#include "gtest/gtest.h"

namespace headrace {
namespace {

static_assert(sizeof(bfloat16) == 2 && sizeof(half) == 2);
static_assert(sizeof(float8_e5m2) == 1 && sizeof(int4) == 1);
static_assert(std::is_trivially_copyable_v<half>);
static_assert(std::is_trivially_default_constructible_v<int4>);

template <typename T>
class SmallFloatTest : public testing::Test {};
using Types =
    testing::Types<bfloat16, half, float8_e5m2, float8_e4m3fn, float8_e4m3fnuz,
                   float8_e4m3b11fnuz, float8_e5m2fnuz>;
TYPED_TEST_SUITE(SmallFloatTest, Types);

constexpr float kInf = std::numeric_limits<float>::infinity();

TYPED_TEST(SmallFloatTest, EveryPatternSurvivesFloat) {
  using T = TypeParam;
  for (int i = 0; i < (1 << (8 * sizeof(T))); ++i) {
    const T t = T::FromBits(i);
    const float f = t;
    if (std::isnan(f)) {
      EXPECT_TRUE(std::isnan(float{T(f)}));
    } else {
      EXPECT_EQ(T(f).bits, t.bits) << f;
      EXPECT_EQ(T(double{f}).bits, t.bits) << f;
    }
  }
}

TYPED_TEST(SmallFloatTest, RoundsToNearestEven) {
  using T = TypeParam;
  const int top = std::numeric_limits<T>::max().bits;
  for (int i = 0; i < top; ++i) {
    const float low = T::FromBits(i), high = T::FromBits(i + 1);
    const double middle = (double{low} + high) / 2;
    EXPECT_EQ(T(middle).bits, i + (i & 1)) << i;
    EXPECT_EQ(T(static_cast<float>(middle)).bits, i + (i & 1)) << i;
    const double above = std::nextafter(middle, 1e300);
    const double below = std::nextafter(middle, 0);
    EXPECT_EQ(T(above).bits, i + 1) << i;
    EXPECT_EQ(T(below).bits, i) << i;
    EXPECT_EQ(T(std::nextafter(float(middle), kInf)).bits, i + 1) << i;
    EXPECT_EQ(T(std::nextafter(float(middle), 0.f)).bits, i) << i;
  }
}

template <typename T>
void ExpectSpecial(int nan, int minus_nan, int inf, int minus_inf, int zero,
                   int huge) {
  EXPECT_EQ(T(NAN).bits, nan);
  EXPECT_EQ(T(-std::abs(NAN)).bits, minus_nan);
  EXPECT_EQ(T(kInf).bits, inf);
  EXPECT_EQ(T(-kInf).bits, minus_inf);
  EXPECT_EQ(T(-0.0f).bits, zero);
  EXPECT_EQ(T(3.4e38f).bits, huge);
  EXPECT_EQ(T(1e300).bits, inf);
}

TEST(SmallFloat, SpecialValues) {
  ExpectSpecial<bfloat16>(0x7fc0, 0xffc0, 0x7f80, 0xff80, 0x8000, 0x7f80);
  ExpectSpecial<half>(0x7e00, 0xfe00, 0x7c00, 0xfc00, 0x8000, 0x7c00);
  ExpectSpecial<float8_e5m2>(0x7e, 0xfe, 0x7c, 0xfc, 0x80, 0x7c);
  ExpectSpecial<float8_e4m3fn>(0x7f, 0xff, 0x7f, 0xff, 0x80, 0x7f);
  ExpectSpecial<float8_e4m3fnuz>(0x80, 0x80, 0x80, 0x80, 0, 0x80);
  ExpectSpecial<float8_e4m3b11fnuz>(0x80, 0x80, 0x80, 0x80, 0, 0x80);
  ExpectSpecial<float8_e5m2fnuz>(0x80, 0x80, 0x80, 0x80, 0, 0x80);
}

TEST(SmallFloat, Limits) {
  EXPECT_EQ(float{std::numeric_limits<half>::max()}, 65504.f);
  EXPECT_EQ(float{std::numeric_limits<float8_e4m3fn>::max()}, 448.f);
  EXPECT_EQ(float{std::numeric_limits<float8_e4m3fnuz>::max()}, 240.f);
  EXPECT_EQ(float{std::numeric_limits<float8_e4m3b11fnuz>::max()}, 30.f);
  EXPECT_EQ(float{std::numeric_limits<float8_e5m2>::max()}, 57344.f);
  EXPECT_EQ(float{std::numeric_limits<float8_e5m2fnuz>::max()}, 57344.f);
  EXPECT_EQ(float{std::numeric_limits<half>::denorm_min()}, 0x1p-24f);
  EXPECT_EQ(float{std::numeric_limits<bfloat16>::epsilon()}, 0x1p-7f);
}

TEST(SmallFloat, FromIntegers) {
  EXPECT_EQ(half(2049).bits, half(2048).bits);
  EXPECT_EQ(half(int64_t{1} << 60).bits, half(kInf).bits);
  // 2^24 + 2^16 + 1 is just above a tie; through float it would be a tie.
  EXPECT_EQ(float{bfloat16((1 << 24) + (1 << 16) + 1)}, 0x1.02p24f);
}

TEST(NarrowInt, WrapsAndExtends) {
  EXPECT_EQ(int4(7), 7);
  EXPECT_EQ(int4(8), -8);
  EXPECT_EQ(int4(-9), 7);
  EXPECT_EQ(uint4(-1), 15);
  EXPECT_EQ(int2(2), -2);
  EXPECT_EQ(uint2(7), 3);
  EXPECT_EQ(int{std::numeric_limits<int4>::min()}, -8);
  EXPECT_EQ(int{std::numeric_limits<uint2>::max()}, 3);
}

}  // namespace
}  // namespace headrace
