#include "serving/manager/memory_budget.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace headrace::serving {
namespace {

TEST(ModelMemory, TheLeastRecentlyUsedThatMayGoDo) {
  const std::vector<LoadedVersion> loaded = {
      {{"a", 1}, 10, 5, true},  {{"b", 1}, 20, 1, true},
      {{"c", 1}, 30, 0, false}, {{"d", 1}, 40, 3, true},
      {{"e", 1}, 0, 2, true},
  };
  const struct {
    uint64_t bytes;
    const char* go;  // "?": not possible
  } kRows[] = {
      {0, ""},        {1, "b1"},    {20, "b1"},
      {21, "b1d1"},   {60, "b1d1"}, {61, "b1d1a1"},
      {70, "b1d1a1"}, {71, "?"},    {UINT64_MAX, "?"},
  };
  for (const auto& row : kRows) {
    const auto go = VersionsToPutOut(loaded, row.bytes);
    std::string text = go ? "" : "?";
    if (go) {
      for (const auto& id : *go) absl::StrAppend(&text, id.name, id.version);
    }
    EXPECT_EQ(text, row.go) << row.bytes;
  }
}

}  // namespace
}  // namespace headrace::serving
