#include "ops/math/loops/loops.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/numbers/float_types.h"
#include "gtest/gtest.h"

namespace headrace {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr int kFloat = 1, kDouble = 2, kInt32 = 3, kInt8 = 6, kInt64 = 9,
              kBool = 10, kBfloat16 = 14, kHalf = 19;

// Distance from `got` to the true value in units of got's last place.
double Ulps(float got, double want) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : 1e30;
  const float nearest = static_cast<float>(want);
  if (std::isnan(got)) return 1e30;
  if (got == nearest) return 0;
  if (std::isinf(got) || std::isinf(nearest)) {
    // Only where the true value is at the very edge.
    const float finite = std::isinf(got) ? nearest : got;
    return std::abs(finite) > 3.4028e38f ? 1 : 1e30;
  }
  const double size = std::max(std::abs(double{nearest}), 1.17549435e-38);
  const double ulp = std::ldexp(1.0, std::ilogb(size) - 23);
  return std::abs(got - want) / ulp;
}

using Reference = double (*)(double);

// The worst error over every 997th float pattern and special values.
void ExpectUlps(const char* op, Reference reference, double most = 2.0) {
  const LoopEntry* entry = FindUnaryLoop(op, kFloat);
  ASSERT_NE(entry, nullptr) << op;
  std::vector<float> x = {0.f,
                          -0.f,
                          kInf,
                          -kInf,
                          kNan,
                          1.f,
                          -1.f,
                          std::numeric_limits<float>::denorm_min(),
                          std::numeric_limits<float>::min(),
                          std::numeric_limits<float>::max(),
                          -std::numeric_limits<float>::max()};
  for (uint64_t b = 1; b < (uint64_t{1} << 32); b += 9973) {
    x.push_back(__builtin_bit_cast(float, static_cast<uint32_t>(b)));
  }
  std::mt19937 random(3);
  for (int i = 0; i < 200000; ++i) {
    x.push_back(std::ldexp(static_cast<float>(random()) / 4294967296.f - .5f,
                           static_cast<int>(random() % 12) - 4));
  }
  std::vector<float> y(x.size());
  entry->unary(x.data(), y.data(), x.size());
  double worst = 0;
  float at = 0, got = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double u = Ulps(y[i], reference(x[i]));
    if (u > worst) {
      worst = u;
      at = x[i];
      got = y[i];
    }
  }
  EXPECT_LE(worst, most) << op << "(" << at << ") = " << got << ", not "
                         << reference(at);
}

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double Softplus(double x) {
  return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}

TEST(UnaryLoops, FloatMathIsWithinTwoUlps) {
  ExpectUlps("Exp", std::exp);
  ExpectUlps("Expm1", std::expm1);
  ExpectUlps("Log", std::log);
  ExpectUlps("Log1p", std::log1p);
  ExpectUlps("Tanh", std::tanh);
  ExpectUlps("Sigmoid", Sigmoid, 2.5);
  ExpectUlps("Erf", std::erf);
  ExpectUlps("Asin", std::asin);
  ExpectUlps("Acos", std::acos);
  ExpectUlps("Atan", std::atan);
  ExpectUlps("Sin", std::sin);
  ExpectUlps("Cos", std::cos);
  ExpectUlps("Softplus", Softplus);
  ExpectUlps("Sqrt", std::sqrt, 0.51);
  ExpectUlps("Rsqrt", [](double x) { return 1 / std::sqrt(x); });
}

TEST(UnaryLoops, FloatMathThroughDoubleIsWithinOneUlp) {
  ExpectUlps("Tan", std::tan, 1);
  ExpectUlps("Sinh", std::sinh, 1);
  ExpectUlps("Cosh", std::cosh, 1);
  ExpectUlps("Asinh", std::asinh, 1);
  ExpectUlps("Acosh", std::acosh, 1);
  ExpectUlps("Atanh", std::atanh, 1);
  ExpectUlps("Erfc", std::erfc, 1);
}

TEST(UnaryLoops, ZerosKeepTheirSign) {
  for (const char* op :
       {"Expm1", "Log1p", "Sin", "Tan", "Asin", "Atan", "Sinh", "Tanh", "Asinh",
        "Atanh", "Erf", "Sqrt", "Round", "Ceil", "Floor"}) {
    float x[2] = {0.f, -0.f};
    FindUnaryLoop(op, kFloat)->unary(x, x, 2);
    EXPECT_EQ(x[0], 0) << op;
    EXPECT_FALSE(std::signbit(x[0])) << op;
    EXPECT_EQ(x[1], 0) << op;
    EXPECT_TRUE(std::signbit(x[1])) << op;
  }
}

template <typename R, typename T>
std::vector<R> RunLoop(const char* op, int dtype, std::vector<T> x) {
  const LoopEntry* e = FindUnaryLoop(op, dtype);
  if (!e) {
    ADD_FAILURE() << op << " " << dtype;
    return {};
  }
  std::vector<R> y(x.size());
  e->unary(x.data(), y.data(), x.size());
  return y;
}
template <typename T>
std::vector<T> Same(const char* op, int dtype, std::vector<T> x) {
  return RunLoop<T, T>(op, dtype, x);
}

TEST(UnaryLoops, Simple) {
  using F = std::vector<float>;
  using I = std::vector<int32_t>;
  EXPECT_EQ(Same<float>("Round", kFloat, {.5f, 1.5f, -2.5f}), F({0, 2, -2}));
  EXPECT_EQ(Same<float>("Sign", kFloat, {-3, 0, 5}), F({-1, 0, 1}));
  EXPECT_EQ(Same<int32_t>("Abs", kInt32, {-3, INT32_MIN}), I({3, INT32_MIN}));
  EXPECT_EQ(Same<int32_t>("Neg", kInt32, {-3, INT32_MIN}), I({3, INT32_MIN}));
  EXPECT_EQ(Same<float>("Relu6", kFloat, {-3, 3, 9}), F({0, 3, 6}));
  EXPECT_TRUE(std::isnan(Same<float>("Relu", kFloat, {kNan})[0]));
  EXPECT_TRUE(std::isnan(Same<float>("Relu6", kFloat, {kNan})[0]));
  EXPECT_EQ((RunLoop<uint8_t, float>("IsNan", kFloat, {1, kNan, kInf})),
            std::vector<uint8_t>({0, 1, 0}));
  EXPECT_EQ((RunLoop<uint8_t, float>("IsFinite", kFloat, {1, kNan, -kInf})),
            std::vector<uint8_t>({1, 0, 0}));
  EXPECT_EQ(Same<uint8_t>("LogicalNot", kBool, {0, 1}),
            std::vector<uint8_t>({1, 0}));
  EXPECT_EQ(FindUnaryLoop("Exp", kInt32), nullptr);
  EXPECT_EQ(FindUnaryLoop("NoSuchOp", kFloat), nullptr);
}

TEST(UnaryLoops, HalfGoesThroughFloat) {
  std::vector<half> x(1000);
  for (int i = 0; i < 1000; ++i) x[i] = half(i * 0.01f - 5);
  const auto y = Same("Tanh", kHalf, x);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(y[i].bits, half(std::tanh(double{float{x[i]}})).bits) << i;
  }
}

TEST(UnaryLoops, CutsAndInPlaceChangeNoBit) {
  std::vector<float> x(1003);
  for (int i = 0; i < 1003; ++i) x[i] = 0.003f * i + 0.1f;
  for (const char* op : {"Exp", "Log", "Tanh", "Asinh", "Erfc", "Sin"}) {
    UnaryLoop loop = FindUnaryLoop(op, kFloat)->unary;
    std::vector<float> whole(1003), pieces = x;
    loop(x.data(), whole.data(), 1003);
    for (int i = 0, m = 1; i < 1003; i += m, m = m % 37 + 1) {
      loop(&pieces[i], &pieces[i], std::min(m, 1003 - i));
    }
    EXPECT_EQ(std::memcmp(whole.data(), pieces.data(), 4 * 1003), 0) << op;
    UnaryLoop wide = FindUnaryLoop(op, kDouble)->unary;
    std::vector<double> d(x.begin(), x.end()), all(1003);
    wide(d.data(), all.data(), 1003);
    for (int i = 0, m = 1; i < 1003; i += m, m = m % 37 + 1) {
      wide(&d[i], &d[i], std::min(m, 1003 - i));
    }
    EXPECT_EQ(std::memcmp(all.data(), d.data(), 8 * 1003), 0) << op;
  }
}

template <typename T>
std::vector<T> Binary(const char* op, int dtype, std::vector<T> a,
                      std::vector<T> b) {
  const LoopEntry* e = FindBinaryLoop(op, dtype);
  if (!e || !e->binary) {
    ADD_FAILURE() << op;
    return {};
  }
  const int kind = a.size() == b.size() ? 0 : a.size() == 1 ? 1 : 2;
  std::vector<T> y(std::max(a.size(), b.size()));
  e->binary(a.data(), b.data(), y.data(), y.size(), kind);
  return y;
}

TEST(BinaryLoops, Arithmetic) {
  using F = std::vector<float>;
  EXPECT_EQ(Binary<float>("AddV2", kFloat, {1, 2}, {3, 4}), F({4, 6}));
  EXPECT_EQ(Binary<float>("Sub", kFloat, {1}, {3, 4}), F({-2, -3}));
  EXPECT_EQ(Binary<float>("Mul", kFloat, {1, 2}, {3}), F({3, 6}));
  EXPECT_EQ(Binary<float>("DivNoNan", kFloat, {1, 2}, {0, 4}), F({0, .5f}));
  EXPECT_EQ(Binary<float>("MulNoNan", kFloat, {kNan, 2}, {0, 4}), F({0, 8}));
  EXPECT_EQ(Binary<float>("FloorMod", kFloat, {-7, 7, 7}, {3, -3, 3}),
            F({2, -2, 1}));
  EXPECT_EQ(Binary<float>("Xlogy", kFloat, {0, 1}, {0, 1}), F({0, 0}));
  EXPECT_EQ(Binary<float>("Pow", kFloat, {2, 3, 0}, {3, 2, 0}), F({8, 9, 1}));
  EXPECT_EQ(Binary<float>("Pow", kFloat, {2, 3}, {2}), F({4, 9}));
  EXPECT_EQ(Binary<int64_t>("Mul", kInt64, {INT64_MAX}, {2}),
            std::vector<int64_t>({-2}));
}

TEST(BinaryLoops, RemaindersOfFloatsAreExact) {
  std::vector<float> a, b;
  std::mt19937 random(9);
  for (int i = 0; i < 20000; ++i) {
    a.push_back(__builtin_bit_cast(float, static_cast<uint32_t>(random())));
    b.push_back(
        i % 2 ? a.back() / static_cast<float>(1 + random() % 1000)
              : __builtin_bit_cast(float, static_cast<uint32_t>(random())));
  }
  for (float v : {0.f, -0.f, kInf, -kInf, kNan, 6.f, -6.f}) {
    for (float w : {0.f, -0.f, kInf, -kInf, kNan, 3.f, -3.f, 4.f}) {
      a.push_back(v);
      b.push_back(w);
    }
  }
  const auto r = Binary("Mod", kFloat, a, b);
  const auto m = Binary("FloorMod", kFloat, a, b);
  for (size_t i = 0; i < a.size(); ++i) {
    const float rest = std::fmod(a[i], b[i]);
    const bool up = rest != 0 && (rest < 0) != (b[i] < 0);
    if (std::isnan(rest)) {
      ASSERT_TRUE(std::isnan(r[i])) << a[i] << " " << b[i];
      continue;
    }
    ASSERT_EQ(r[i], rest) << a[i] << " " << b[i];
    ASSERT_EQ(std::signbit(r[i]), std::signbit(rest));
    const float floor = up ? rest + b[i] : rest;
    if (m[i] == floor) continue;
    ASSERT_NEAR(m[i], floor, std::abs(b[i]) * 1e-7);
  }
}

// Parts of a span that are not whole vectors give the same bits.
TEST(BinaryLoops, CutsChangeNoBit) {
  std::vector<double> a(203), b(203), whole(203), pieces(203);
  for (int i = 0; i < 203; ++i) {
    a[i] = 0.1 + 0.013 * i;
    b[i] = 1.7 - 0.017 * i;
  }
  for (const char* op : {"Pow", "Atan2", "Xlogy"}) {
    const BinaryLoop loop = FindBinaryLoop(op, kDouble)->binary;
    loop(a.data(), b.data(), whole.data(), 203, 0);
    for (int i = 0, m = 1; i < 203; i += m, m = m % 23 + 1) {
      m = std::min(m, 203 - i);
      loop(&a[i], &b[i], &pieces[i], m, 0);
    }
    EXPECT_EQ(std::memcmp(whole.data(), pieces.data(), 8 * 203), 0) << op;
  }
}

TEST(BinaryLoops, MaximumKeepsNans) {
  for (const char* op : {"Maximum", "Minimum"}) {
    for (float v :
         Binary<float>(op, kFloat, {kNan, 1, kNan}, {1, kNan, kNan})) {
      EXPECT_TRUE(std::isnan(v));
    }
  }
}

template <typename T>
void CheckDivision(int dtype) {
  using Wide = __int128;
  std::vector<T> a, b;
  const T low = std::numeric_limits<T>::min();
  const T high = std::numeric_limits<T>::max();
  std::mt19937_64 random(5);
  for (int i = 0; i < 3000; ++i) {
    a.push_back(static_cast<T>(random() >> (random() % 64)));
    T d = static_cast<T>(random() >> (random() % 64));
    b.push_back(d == 0 ? T{1} : d);
  }
  for (T v : {low, high, T(low + 1)}) {
    for (T d : {T(-1), T{1}, high, T{2}}) {
      a.push_back(v);
      b.push_back(d);
    }
  }
  std::vector<T> q(a.size()), r(a.size()), f(a.size()), m(a.size());
  const auto run = [&](const char* op, std::vector<T>& y) {
    EXPECT_EQ(FindBinaryLoop(op, dtype)->checked(a.data(), b.data(), y.data(),
                                                 y.size(), 0),
              0);
  };
  run("TruncateDiv", q);
  run("TruncateMod", r);
  run("FloorDiv", f);
  run("FloorMod", m);
  for (size_t i = 0; i < a.size(); ++i) {
    const Wide x = a[i], d = b[i];
    const Wide quotient = x / d, rest = x % d;
    const bool down = rest != 0 && (rest < 0) != (d < 0);
    ASSERT_EQ(q[i], static_cast<T>(quotient)) << +a[i] << " " << +b[i];
    ASSERT_EQ(r[i], static_cast<T>(rest)) << +a[i] << " " << +b[i];
    ASSERT_EQ(f[i], static_cast<T>(quotient - down)) << +a[i] << " " << +b[i];
    ASSERT_EQ(m[i], static_cast<T>(down ? rest + d : rest));
  }
}

TEST(BinaryLoops, IntegerDivision) {
  CheckDivision<int8_t>(kInt8);
  CheckDivision<uint8_t>(4);
  CheckDivision<int16_t>(5);
  CheckDivision<int32_t>(kInt32);
  CheckDivision<uint32_t>(22);
  CheckDivision<int64_t>(kInt64);
  CheckDivision<uint64_t>(23);
}

TEST(BinaryLoops, IntegerErrorsAreReported) {
  const int64_t a[3] = {7, 8, INT64_MIN}, b[3] = {0, 2, -1};
  int64_t y[3];
  for (const char* op : {"Div", "FloorDiv", "FloorMod", "Mod"}) {
    const LoopEntry* e = FindBinaryLoop(op, kInt64);
    EXPECT_EQ(e->checked(a, b, y, 3, 0), kIntegerDivisionByZero) << op;
    EXPECT_EQ(e->checked(a + 1, b + 1, y, 2, 0), 0u) << op;
  }
  const LoopEntry* pow = FindBinaryLoop("Pow", kInt64);
  EXPECT_EQ(pow->checked(a, b, y, 2, 0), 0u);
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[1], 64);
  EXPECT_EQ(pow->checked(a + 1, b + 2, y, 1, 0), kNegativeIntegerPower);
}

TEST(BinaryLoops, ShiftsAreClamped) {
  EXPECT_EQ(Binary<int32_t>("LeftShift", kInt32, {1, 1, 1}, {4, -3, 99}),
            std::vector<int32_t>({16, 1, INT32_MIN}));
  EXPECT_EQ(Binary<int32_t>("RightShift", kInt32, {-16, -16}, {2, 99}),
            std::vector<int32_t>({-4, -1}));
  EXPECT_EQ(Binary<int8_t>("RightShift", kInt8, {-128}, {100}),
            std::vector<int8_t>({-1}));
}

TEST(BinaryLoops, Comparisons) {
  const float a[3] = {1, 2, kNan}, b[3] = {1, 1, kNan};
  bool y[3];
  const LoopEntry* e = FindBinaryLoop("GreaterEqual", kFloat);
  EXPECT_EQ(e->out, kBool);
  e->binary(a, b, y, 3, 0);
  EXPECT_TRUE(y[0] && y[1] && !y[2]);
  FindBinaryLoop("NotEqual", kFloat)->binary(a, b, y, 3, 0);
  EXPECT_TRUE(!y[0] && y[1] && y[2]);
  FindBinaryLoop("Less", kFloat)->binary(a, b + 2, y, 3, 2);
  EXPECT_TRUE(!y[0] && !y[1] && !y[2]);
}

template <typename From, typename To>
std::vector<To> Cast(int from, int to, std::vector<From> x) {
  std::vector<To> y(x.size());
  UnaryLoop loop = FindCastLoop(from, to);
  if (!loop) {
    ADD_FAILURE() << from << " to " << to;
    return y;
  }
  loop(x.data(), y.data(), x.size());
  return y;
}

TEST(CastLoops, Numbers) {
  // Out of range a processor's own conversion counts, as in TensorFlow.
#if defined(__aarch64__)
  const std::vector<int32_t> beyond = {0, INT32_MAX};
#else
  const std::vector<int32_t> beyond = {INT32_MIN, INT32_MIN};
#endif
  EXPECT_EQ((Cast<float, int32_t>(kFloat, kInt32, {kNan, 3e9f})), beyond);
  EXPECT_EQ((Cast<float, int32_t>(kFloat, kInt32, {1.9f, -1.9f})),
            std::vector<int32_t>({1, -1}));
  EXPECT_EQ((Cast<float, uint8_t>(kFloat, 4, {1.9f, 255.f, 257.f, -1.f})),
            std::vector<uint8_t>({1, 255, 1, 255}));
  EXPECT_EQ((Cast<double, uint64_t>(kDouble, 23, {1.8e19, 5})),
            std::vector<uint64_t>({18000000000000000000u, 5}));
  EXPECT_EQ((Cast<int64_t, float>(kInt64, kFloat, {(1 << 24) + 1})),
            std::vector<float>({1 << 24}));
  EXPECT_EQ((Cast<float, uint8_t>(kFloat, kBool, {0, -0.f, .1f, kNan})),
            std::vector<uint8_t>({0, 0, 1, 1}));
  EXPECT_EQ((Cast<int32_t, int8_t>(kInt32, kInt8, {300, -200})),
            std::vector<int8_t>({44, 56}));
}

TEST(CastLoops, SmallAndComplexTypes) {
  for (int n : {1, 7, 100, 1500}) {
    std::vector<int32_t> x(n);
    for (int i = 0; i < n; ++i) x[i] = i - n / 2;
    const auto h = Cast<int32_t, half>(kInt32, kHalf, x);
    const auto b = Cast<half, bfloat16>(kHalf, kBfloat16, h);
    for (int i = 0; i < n; ++i) {
      EXPECT_EQ(float{h[i]}, float{half(x[i])});
      EXPECT_EQ(b[i].bits, bfloat16(float{h[i]}).bits);
    }
  }
  std::vector<float> complex(6);
  FindCastLoop(kInt32, 8)(std::vector<int32_t>{1, 2, 3}.data(), complex.data(),
                          3);
  EXPECT_EQ(complex, std::vector<float>({1, 0, 2, 0, 3, 0}));
  double wide[6];
  FindCastLoop(8, 18)(complex.data(), wide, 3);
  EXPECT_EQ(wide[4], 3);
  int64_t back[3];
  FindCastLoop(18, kInt64)(wide, back, 3);
  EXPECT_EQ(back[2], 3);
  EXPECT_EQ((Cast<float, float8_e4m3fn>(kFloat, 25, {448, 500}))[0].bits, 0x7e);
  EXPECT_EQ(int{(Cast<int32_t, int4>(kInt32, 29, {9}))[0]}, -7);
  EXPECT_EQ(FindCastLoop(7, 1), nullptr);
  EXPECT_EQ(FindCastLoop(-1, 1), nullptr);
  EXPECT_EQ(FindCastLoop(1, 133), nullptr);
}

TEST(SelectLoops, AllKinds) {
  const bool c[3] = {true, false, true};
  const int32_t a[3] = {1, 2, 3}, b[3] = {4, 5, 6};
  int32_t y[3];
  SelectLoop loop = FindSelectLoop(4);
  loop(c, a, b, y, 3, 0);
  EXPECT_EQ(std::vector<int32_t>(y, y + 3), std::vector<int32_t>({1, 5, 3}));
  loop(c, a, b, y, 3, 1);
  EXPECT_EQ(std::vector<int32_t>(y, y + 3), std::vector<int32_t>({1, 5, 1}));
  loop(c, a, b, y, 3, 2);
  EXPECT_EQ(std::vector<int32_t>(y, y + 3), std::vector<int32_t>({1, 4, 3}));
  loop(c, a, b, y, 3, 3);
  EXPECT_EQ(std::vector<int32_t>(y, y + 3), std::vector<int32_t>({1, 4, 1}));
  EXPECT_EQ(FindSelectLoop(3), nullptr);
}

TEST(ClipAndSlope, Floats) {
  float x[4] = {-5, .5f, 5, kNan};
  const float low = -1, high = 1;
  float y[4];
  FindClipLoop(kFloat)(x, &low, &high, y, 4);
  EXPECT_EQ(y[0], -1);
  EXPECT_EQ(y[1], .5f);
  EXPECT_EQ(y[2], 1);
  EXPECT_TRUE(std::isnan(y[3]));
  FindParameterLoop("LeakyRelu", kFloat)(x, y, 4, 0.2);
  EXPECT_EQ(y[0], -1);
  EXPECT_EQ(y[2], 5);
  const float g[3] = {1, 1, 1};
  FindParameterLoop2("LeakyReluGrad", kFloat)(g, x, y, 3, 0.25);
  EXPECT_EQ(y[0], .25f);
  EXPECT_EQ(y[1], 1);
}

TEST(SpecialMath, KnownValues) {
  const auto d = [](const char* op, double x) {
    return Same<double>(op, kDouble, {x})[0];
  };
  EXPECT_NEAR(d("Digamma", 1), -0.57721566490153286, 1e-15);
  EXPECT_NEAR(d("Digamma", -1.5), 0.70315664064524319, 1e-14);
  EXPECT_NEAR(d("Lgamma", 0.5), 0.57236494292470009, 1e-15);
  EXPECT_NEAR(d("Erfinv", 0.5), 0.47693627620446987, 1e-15);
  EXPECT_NEAR(d("Ndtri", 0.025), -1.9599639845400542, 1e-14);
  EXPECT_EQ(d("Erfinv", 1), kInf);
  EXPECT_TRUE(std::isnan(d("Erfinv", 2)));
  for (double x : {1e-9, .1, .7, .99, .9999999}) {
    EXPECT_NEAR(std::erf(d("Erfinv", x)) / x, 1, 1e-14);
  }
  const auto d2 = [](const char* op, double a, double b) {
    return Binary<double>(op, kDouble, {a}, {b})[0];
  };
  EXPECT_NEAR(d2("Igamma", 2, 3), 0.80085172652854419, 1e-14);
  EXPECT_NEAR(d2("Igammac", 2, 3), 0.19914827347145581, 1e-14);
  EXPECT_NEAR(d2("Igamma", 10, 3), 0.0011024881301154815, 1e-16);
  EXPECT_NEAR(d2("Zeta", 2, 1), M_PI * M_PI / 6, 1e-14);
  EXPECT_NEAR(d2("Polygamma", 1, 1), M_PI * M_PI / 6, 1e-14);
  // Far from where its series starts, it still ends.
  EXPECT_EQ(d2("Zeta", 2, INFINITY), 0);
  EXPECT_EQ(d2("Zeta", INFINITY, 2), 0);
  EXPECT_NEAR(d2("Zeta", 3, 1e30) / 5e-61, 1, 1e-14);
  EXPECT_EQ(d2("Zeta", 40, 1e20), 0);
  EXPECT_NEAR(d2("Zeta", 2, -9999.5), 9.869504401089442, 1e-12);
  EXPECT_NEAR(d2("Zeta", 2, -1e15 - 0.5), M_PI * M_PI, 1e-12);
  EXPECT_NEAR(d2("Zeta", 100, 10) / 1.0000725e-100, 1, 1e-7);
}

}  // namespace
}  // namespace headrace
