#include "base/safety_policy.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

constexpr char kEverything[] =
    "allow: prints, reads ReadFile  # and more\n"
    "deny: MatrixInverse\n"
    "\n"
    "only: Add\tMatMul\n"
    "memory: 512 MiB\n"
    "time: 2.5\n"
    "nodes: 10000\n"
    "recursion: none\n"
    "output: 1GiB";

TEST(SafetyPolicyTest, ReadsWhatLinesSay) {
  const auto p = SafetyPolicy::Parse(kEverything);
  ASSERT_TRUE(p.ok()) << p.status();
  EXPECT_TRUE(p->allowed.Has(Reach::kPrints));
  EXPECT_TRUE(p->allowed.Has(Reach::kReadsFiles));
  EXPECT_FALSE(p->allowed.Has(Reach::kWritesFiles));
  EXPECT_TRUE(p->allowed_ops.contains("ReadFile"));
  EXPECT_TRUE(p->denied_ops.contains("MatrixInverse"));
  EXPECT_EQ(p->only_ops.size(), 2u);
  EXPECT_EQ(p->memory, int64_t{512} << 20);
  EXPECT_EQ(p->time_ns, 2'500'000'000);
  EXPECT_EQ(p->nodes, 10000);
  EXPECT_EQ(p->recursion, 0);
  EXPECT_EQ(p->output, int64_t{1} << 30);
}

TEST(SafetyPolicyTest, WhatIsNotSaidIsTheDefault) {
  EXPECT_EQ(*SafetyPolicy::Parse(""), SafetyPolicy());
  EXPECT_EQ(*SafetyPolicy::Parse("# nothing\n\n"), SafetyPolicy());
}

TEST(SafetyPolicyTest, IsReadAsItIsWritten) {
  for (const char* text : {kEverything, "", "time: none\nallow: files"}) {
    const auto p = SafetyPolicy::Parse(text);
    ASSERT_TRUE(p.ok());
    EXPECT_EQ(*SafetyPolicy::Parse(p->ToString()), *p) << p->ToString();
  }
}

TEST(SafetyPolicyTest, NamesTheLineThatIsWrong) {
  for (const char* line :
       {"memory", "memory: -1", "memory: 0", "memory: 1 PiB", "memory: 1.5 GiB",
        "memory: 9999999999 GiB", "memory: 99999999999999999999", "time: nan",
        "time: inf", "time: -1", "time: 0", "time: 1e300", "nodes: many",
        "colour: red", "allow: read-file", "deny: prints", "only: a/b", ": 1",
        "allow ReadFile"}) {
    const auto p = SafetyPolicy::Parse(absl::StrCat("# first\n", line));
    ASSERT_FALSE(p.ok()) << line;
    EXPECT_TRUE(absl::IsInvalidArgument(p.status())) << line;
    EXPECT_NE(p.status().message().find("line 2"), StringView::npos) << line;
  }
}

// Cut anywhere, it is a policy or an error, never the wrong limit of a line
// that is whole.
TEST(SafetyPolicyTest, CutAnywhere) {
  const std::string text = kEverything;
  for (size_t n = 0; n < text.size(); ++n) {
    const auto p = SafetyPolicy::Parse(StringView(text).substr(0, n));
    EXPECT_TRUE(p.ok() || absl::IsInvalidArgument(p.status())) << n;
  }
  EXPECT_FALSE(SafetyPolicy::Parse(std::string(2 << 20, '#')).ok());
}

}  // namespace
}  // namespace headrace
