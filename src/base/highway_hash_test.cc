#include "base/highway_hash.h"

#include <gtest/gtest.h>

#include <string>

namespace headrace {
namespace {

constexpr HighwayHash::Key kKey = {0x0706050403020100, 0x0f0e0d0c0b0a0908,
                                   0x1716151413121110, 0x1f1e1d1c1b1a1918};

// 0, 1, 2, ... : the bytes of the published test vectors.
std::string Counting(size_t n) {
  std::string bytes(n, '\0');
  for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<char>(i);
  return bytes;
}

TEST(HighwayHashTest, GivesThePublishedValues) {
  EXPECT_EQ(HighwayHash64(kKey, ""), 0x907a56de22c26e53);
  EXPECT_EQ(HighwayHash64(kKey, Counting(1)), 0x7eab43aac7cddd78);
  EXPECT_EQ(HighwayHash64(kKey, Counting(3)), 0x5c6befab8a463d80);
  EXPECT_EQ(HighwayHash64(kKey, Counting(17)), 0x19fe67d2c8c5c0e2);
  EXPECT_EQ(HighwayHash64(kKey, Counting(32)), 0xa0c964d9ecd580fc);
}

TEST(HighwayHashTest, PartsGiveTheHashOfTheWhole) {
  const std::string all = Counting(200);
  const uint64_t expected = HighwayHash64(kKey, all);
  for (size_t cut = 0; cut <= all.size(); ++cut) {
    HighwayHash hash(kKey);
    hash.Update(absl::string_view(all).substr(0, cut));
    hash.Update(absl::string_view(all).substr(cut));
    EXPECT_EQ(hash.Finish(), expected) << cut;
  }
}

}  // namespace
}  // namespace headrace
