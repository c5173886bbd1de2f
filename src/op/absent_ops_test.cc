#include "op/absent_ops.h"

#include <set>

#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "op/registry.h"

namespace headrace {
namespace {

TEST(AbsentOpsTest, SaysWhy) {
  const std::string text = WhyAbsent("ConfigureDistributedTPU");
  EXPECT_EQ(text,
            "ConfigureDistributedTPU is an op of TensorFlow that Headrace does "
            "not have: it runs on TPUs alone.");
  EXPECT_EQ(WhyAbsent("NobodysOp"), "");
  EXPECT_EQ(WhyAbsent(""), "");
}

TEST(AbsentOpsTest, LookUpsSayIt) {
  const std::string text(LookUpOp("NcclReduce").status().message());
  EXPECT_TRUE(text.ends_with(WhyAbsent("NcclReduce"))) << text;
}

TEST(AbsentOpsTest, EachNameOnceAndNoneThatIsThere) {
  std::set<std::string> seen;
  for (const AbsentOps& row : AllAbsentOps()) {
    for (StringView name : absl::StrSplit(row.names, ' ')) {
      EXPECT_TRUE(seen.emplace(name).second) << name;
      EXPECT_EQ(FindOp(name), nullptr) << name;
    }
  }
}

}  // namespace
}  // namespace headrace
