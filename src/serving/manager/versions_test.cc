#include "serving/manager/versions.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "base/files/files.h"

namespace headrace::serving {
namespace {

TEST(ModelVersions, AreWholeNamesOfDigits) {
  const struct {
    const char* name;
    int64_t version;  // -1: none
  } kRows[] = {
      {"0", 0},
      {"1", 1},
      {"00000123", 123},
      {"9223372036854775807", INT64_MAX},
      {"9223372036854775808", -1},
      {"99999999999999999999999", -1},
      {"", -1},
      {"-7", -7},
      {"--7", -1},
      {"-", -1},
      {"+1", -1},
      {" 1", -1},
      {"1 ", -1},
      {"1.0", -1},
      {"1e3", -1},
      {"0x10", -1},
      {"v1", -1},
      {"1_tmp", -1},
      {".1", -1},
  };
  for (const auto& row : kRows) {
    EXPECT_EQ(VersionOfName(row.name).value_or(-1), row.version) << row.name;
  }
}

TEST(ModelVersions, OfTwoNamesForOneTheLastIsTaken) {
  std::vector<std::string> warnings;
  const auto found = VersionsOfNames({"007", "07", "7", "8", "x"}, &warnings);
  EXPECT_EQ(found, (std::map<int64_t, std::string>{{7, "7"}, {8, "8"}}));
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_EQ(warnings[0], "folders 007 and 07 are both version 7; 07 is taken");
}

TEST(ModelVersions, APolicyWants) {
  const std::map<int64_t, std::string> there = {
      {1, ""}, {2, ""}, {5, ""}, {9, ""}};
  const struct {
    const char* policy;
    std::set<int64_t> wanted;
    std::vector<int64_t> missing;
  } kRows[] = {
      {"", {9}, {}},
      {"latest {}", {9}, {}},
      {"latest { num_versions: 0 }", {9}, {}},
      {"latest { num_versions: 1 }", {9}, {}},
      {"latest { num_versions: 3 }", {2, 5, 9}, {}},
      {"latest { num_versions: 4294967295 }", {1, 2, 5, 9}, {}},
      {"all {}", {1, 2, 5, 9}, {}},
      {"specific { versions: 2 versions: 5 }", {2, 5}, {}},
      {"specific { versions: 2 versions: 3 versions: 3 }", {2}, {3, 3}},
      {"specific { versions: -4 }", {}, {-4}},
      {"specific {}", {}, {}},
  };
  for (const auto& row : kRows) {
    VersionPolicy policy;
    ASSERT_TRUE(
        google::protobuf::TextFormat::ParseFromString(row.policy, &policy));
    const Wish wish = WishOf(policy, there);
    EXPECT_EQ(wish.wanted, row.wanted) << row.policy;
    EXPECT_EQ(wish.missing, row.missing) << row.policy;
    EXPECT_TRUE(WishOf(policy, {}).wanted.empty()) << row.policy;
  }
}

TEST(ModelVersions, AreChildrenOfTheBasePath) {
  const std::string base = "ram://manager_versions";
  std::string local;
  auto files = FileSystemFor(base, &local);
  ASSERT_TRUE(files.ok());
  (void)DeleteRecursively(*files, local);  // of a test before
  std::vector<std::string> warnings;
  EXPECT_EQ(ListVersions(base, &warnings).status().code(),
            absl::StatusCode::kNotFound);
  ASSERT_TRUE((*files)->CreateDirectory(local).ok());
  const auto empty = ListVersions(base, &warnings);
  ASSERT_TRUE(empty.ok());
  EXPECT_TRUE(empty->empty());
  ASSERT_TRUE(CreateDirectories(*files, JoinPath(local, "0012")).ok());
  ASSERT_TRUE(CreateDirectories(*files, JoinPath(local, "tmp")).ok());
  const auto found = ListVersions(base, &warnings);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*found, (std::map<int64_t, std::string>{{12, base + "/0012"}}));
  EXPECT_TRUE(warnings.empty());
}

}  // namespace
}  // namespace headrace::serving
