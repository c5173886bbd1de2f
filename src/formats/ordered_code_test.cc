#include "formats/ordered_code.h"

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"

namespace headrace {
namespace {

TEST(OrderedCode, SignedComesBackAndSorts) {
  std::vector<int64_t> numbers = {0, -1, INT64_MAX, INT64_MIN};
  for (int bit = 0; bit < 63; ++bit) {
    for (int64_t d : {-1, 0, 1}) {
      numbers.push_back((int64_t{1} << bit) + d);
      numbers.push_back(-(int64_t{1} << bit) + d);
    }
  }
  std::sort(numbers.begin(), numbers.end());
  std::string before;
  for (int64_t v : numbers) {
    std::string code;
    PutOrderedSigned(&code, v);
    EXPECT_LE(before, code);
    absl::string_view in = code;
    int64_t back;
    ASSERT_TRUE(GetOrderedSigned(&in, &back)) << v;
    EXPECT_EQ(back, v);
    EXPECT_TRUE(in.empty());
    for (size_t n = 0; n < code.size(); ++n) {
      in = absl::string_view(code).substr(0, n);
      EXPECT_FALSE(GetOrderedSigned(&in, &back));
    }
    before = code;
  }
}

// Bytes that upstream's index files hold.
TEST(OrderedCode, KnownBytes) {
  std::string code;
  PutOrderedSigned(&code, 0);
  PutOrderedSigned(&code, -1);
  PutOrderedSigned(&code, 3);
  PutOrderedSigned(&code, 64);
  EXPECT_EQ(code, "\x80\x7f\x83\xc0\x40");
  code.clear();
  PutOrderedNumber(&code, 0);
  PutOrderedNumber(&code, 1);
  PutOrderedNumber(&code, 0x1234);
  EXPECT_EQ(code, std::string("\0\1\1\2\x12\x34", 6));
}

TEST(OrderedCode, StringsComeBackAndSort) {
  const std::vector<std::string> sorted = {"",
                                           std::string("\0", 1),
                                           std::string("\0b", 2),
                                           "a",
                                           "ab",
                                           "b",
                                           "\xff",
                                           "\xff\xff"};
  std::string before;
  for (const std::string& s : sorted) {
    std::string code, back;
    PutOrderedString(&code, s);
    EXPECT_LT(before, code);
    absl::string_view in = code;
    ASSERT_TRUE(GetOrderedString(&in, &back));
    EXPECT_EQ(back, s);
    before = code;
  }
}

}  // namespace
}  // namespace headrace
