#include "base/coding.h"

#include "gtest/gtest.h"

namespace headrace {
namespace {

TEST(Coding, VarintsComeBack) {
  for (int bit = 0; bit < 64; ++bit) {
    for (uint64_t v :
         {uint64_t{1} << bit, (uint64_t{1} << bit) - 1, ~uint64_t{0} >> bit}) {
      std::string bytes;
      PutVarint64(&bytes, v);
      EXPECT_EQ(bytes.size(), VarintLength(v));
      absl::string_view in = bytes;
      uint64_t back;
      ASSERT_TRUE(GetVarint64(&in, &back));
      EXPECT_EQ(back, v);
      EXPECT_TRUE(in.empty());
      for (size_t cut = 0; cut < bytes.size(); ++cut) {
        in = absl::string_view(bytes).substr(0, cut);
        EXPECT_FALSE(GetVarint64(&in, &back));
        EXPECT_EQ(in.size(), cut);
      }
    }
  }
}

TEST(Coding, RefusesWhatDoesNotFit) {
  uint64_t wide;
  uint32_t narrow;
  const std::string long_one(11, '\x80'),
      too_big = std::string(9, '\xff') + '\2';
  absl::string_view in = long_one;
  EXPECT_FALSE(GetVarint64(&in, &wide));
  in = too_big;
  EXPECT_FALSE(GetVarint64(&in, &wide));
  std::string bytes;
  PutVarint64(&bytes, uint64_t{1} << 32);
  in = bytes;
  EXPECT_FALSE(GetVarint32(&in, &narrow));
  EXPECT_EQ(in.size(), bytes.size());
}

TEST(Coding, FixedIsLittleEndian) {
  std::string bytes;
  PutFixed32(&bytes, 0x04030201);
  PutFixed64(&bytes, 0x0c0b0a0908070605);
  EXPECT_EQ(bytes, "\1\2\3\4\5\6\7\b\t\n\v\f");
  absl::string_view in = bytes, front;
  uint32_t a;
  uint64_t b;
  ASSERT_TRUE(GetFixed32(&in, &a));
  ASSERT_TRUE(GetFixed64(&in, &b));
  EXPECT_EQ(a, 0x04030201);
  EXPECT_EQ(b, 0x0c0b0a0908070605);
  EXPECT_FALSE(GetFixed32(&in, &a));
  EXPECT_FALSE(GetBytes(&in, 1, &front));
}

}  // namespace
}  // namespace headrace
