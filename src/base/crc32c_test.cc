#include "base/crc32c.h"

#include <string>

#include "gtest/gtest.h"

namespace headrace {
namespace {

TEST(Crc32c, KnownValues) {
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
}

TEST(Crc32c, EveryFormAgreesAtEveryLength) {
  std::string data(40000, 0);
  uint32_t state = 1;
  for (char& c : data) c = static_cast<char>((state = state * 69069 + 5) >> 24);
  for (size_t n : {0, 1, 7, 8, 9, 767, 768, 769, 5000, 12287, 12288, 12300,
                   13500, 24576, 30001, 39990}) {
    for (size_t from : {0, 1, 5}) {
      const char* p = data.data() + from;
      const uint32_t crc = Crc32cExtend(0, p, n);
      EXPECT_EQ(crc, Crc32cExtendPortable(0, p, n)) << n;
      const size_t cut = n / 3;
      EXPECT_EQ(crc, Crc32cExtend(Crc32cExtend(0, p, cut), p + cut, n - cut));
      EXPECT_EQ(crc, Crc32cCombine(Crc32cExtend(0, p, cut),
                                   Crc32cExtend(0, p + cut, n - cut), n - cut));
    }
  }
}

TEST(Crc32c, MaskComesOff) {
  for (uint32_t crc : {0u, 1u, 0xe3069283u, ~0u}) {
    EXPECT_EQ(UnmaskCrc(MaskCrc(crc)), crc);
    EXPECT_NE(MaskCrc(crc), crc);
  }
}

}  // namespace
}  // namespace headrace
