#include "serving/v2/statistics.h"

#include <gtest/gtest.h>

namespace headrace::serving {
namespace {

ModelSpec Version(const char* model, int64_t number) {
  ModelSpec spec;
  spec.set_name(model);
  spec.mutable_version()->set_value(number);
  return spec;
}

TEST(InferStatisticsBook, OldVersionsAreForgotten) {
  InferStatisticsBook book;
  const auto told = [&](const char* model, std::optional<int64_t> version) {
    inference::ModelStatisticsResponse response;
    book.Tell(model, version, &response);
    return response.model_stats_size();
  };
  constexpr int64_t kMost = kMostPastVersions;
  book.Note(Version("a", 7), OkStatus(), std::chrono::nanoseconds(5));
  book.Note(Version("z", 7), OkStatus(), std::chrono::nanoseconds(5));
  for (int64_t v = 1; v <= kMost + 2; ++v) {
    book.Note(Version("m", v), OkStatus(), std::chrono::nanoseconds(5));
    book.Note(Version("m", v), Internal("bad"), std::chrono::nanoseconds(3));
  }
  EXPECT_EQ(told("m", std::nullopt), kMost);
  EXPECT_EQ(told("m", 2), 0);
  EXPECT_EQ(told("m", 3), 1);
  book.Note(Version("m", 1), OkStatus(), std::chrono::nanoseconds(9));
  EXPECT_EQ(told("m", 1), 1);
  EXPECT_EQ(told("m", 3), 0);
  EXPECT_EQ(told("a", 7), 1);
  EXPECT_EQ(told("z", 7), 1);
}

}  // namespace
}  // namespace headrace::serving
