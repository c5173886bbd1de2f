#include "serving/json/json_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "absl/strings/str_cat.h"

namespace headrace::serving {
namespace {

template <typename T>
std::string Written(T value) {
  std::string out;
  AppendJsonNumber(value, &out);
  return out;
}

TEST(JsonWriter, Numbers) {
  EXPECT_EQ(Written(2.0f), "2.0");
  EXPECT_EQ(Written(-0.0f), "-0.0");
  EXPECT_EQ(Written(1e-7f), "1e-07");
  EXPECT_EQ(Written(9e6f), "9e+06");
  EXPECT_EQ(Written(1.0f / 3), "0.333333343");
  EXPECT_EQ(Written(0.1), "0.1");
  EXPECT_EQ(Written(1.0 / 3), "0.33333333333333331");
  EXPECT_EQ(Written(123456.0), "123456.0");
  EXPECT_EQ(Written(1234567.0), "1234567.0");
  EXPECT_EQ(Written(1e300), "1e+300");
  EXPECT_EQ(Written(std::numeric_limits<float>::denorm_min()), "1.4013e-45");
  EXPECT_EQ(Written(std::nanf("")), "NaN");
  EXPECT_EQ(Written(-HUGE_VALF), "-Infinity");
  EXPECT_EQ(Written(HUGE_VAL), "Infinity");
}

// What printf and strtof would make of it by the same rule.
std::string ByPrintf(float value) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.6g", value);
  if (std::strtof(text, nullptr) != value) {
    std::snprintf(text, sizeof(text), "%.9g", value);
  }
  if (std::strpbrk(text, ".e") == nullptr) std::strcat(text, ".0");
  return text;
}

// Where the number of digits changes, and the text gets an exponent: of floats
// nearest to powers of ten, some lie below these.
TEST(JsonWriter, NumbersNextToPowersOfTen) {
  for (int power = -12; power < 12; ++power) {
    float value = std::strtof(absl::StrCat("1e", power).c_str(), nullptr);
    for (int i = 0; i < 4; ++i) value = std::nextafterf(value, 0);
    for (int i = 0; i < 9; ++i) {
      EXPECT_EQ(Written(value), ByPrintf(value));
      EXPECT_EQ(Written(-value), ByPrintf(-value));
      value = std::nextafterf(value, HUGE_VALF);
    }
  }
}

TEST(JsonWriter, NumbersAreAsPrintfHasThem) {
  std::mt19937 random(7);
  for (int i = 0; i < 400000; ++i) {
    const uint32_t bits = random();
    float value;
    std::memcpy(&value, &bits, 4);
    // Those of everyday sizes, with few digits and with many.
    if (i % 4 == 0) value = static_cast<int>(bits % 2000001) / 1000.0f;
    if (i % 4 == 1) {
      int exponent;
      value = std::ldexp(std::frexp(value, &exponent), i % 40 - 15);
    }
    if (i % 4 == 2) {
      value = static_cast<float>(static_cast<int>(bits % 2000001) *
                                 std::pow(10.0, i % 17 - 13));
    }
    if (!std::isfinite(value)) continue;
    ASSERT_EQ(Written(value), ByPrintf(value));
  }
}

TEST(JsonWriter, Strings) {
  std::string out;
  AppendJsonString(StringView("a\"\\\n\0\x1f\xff/", 8), &out);
  EXPECT_EQ(out, "\"a\\\"\\\\\\n\\u0000\\u001F\xff/\"");
  EXPECT_EQ(JsonError("no \"x\""), "{\n    \"error\": \"no \\\"x\\\"\"\n}");
}

}  // namespace
}  // namespace headrace::serving
