// The one program of the C++ tests. --room=NAME runs the tests whose source
// files lie in src/NAME; --gtest_* flags work as ever. A room without a test
// that runs is an error, so that no test is lost by a wrong name.
#include <cstdio>
#include <cstring>
#include <string>

#include "gtest/gtest.h"

namespace {

// A filter of the tests in `room`, "" if there is none.
std::string FilterOf(const std::string& room) {
  const std::string folder = "src/" + room + "/";
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  std::string filter;
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int k = 0; k < suite.total_test_count(); ++k) {
      const testing::TestInfo& test = *suite.GetTestInfo(k);
      if (std::strstr(test.file(), folder.c_str()) == nullptr) continue;
      if (!filter.empty()) filter += ':';
      filter += std::string(suite.name()) + '.' + test.name();
    }
  }
  return filter;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], "--room=", 7) != 0) continue;
    const std::string filter = FilterOf(argv[i] + 7);
    if (filter.empty()) {
      std::fprintf(stderr, "no test in src/%s\n", argv[i] + 7);
      return 2;
    }
    testing::GTEST_FLAG(filter) = filter;
  }
  return RUN_ALL_TESTS();
}
