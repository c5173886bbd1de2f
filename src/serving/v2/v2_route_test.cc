#include "serving/v2/v2_route.h"

#include <gtest/gtest.h>

namespace headrace::serving {
namespace {

TEST(V2Route, Paths) {
  using Kind = V2Route::Kind;
  const struct {
    const char* path;
    Kind kind;
    const char *model, *version, *method;
  } rows[] = {
      {"/v2", Kind::kServer, "", "", "GET"},
      {"/v2/", Kind::kServer, "", "", "GET"},
      {"/v2/models/m", Kind::kModel, "m", "", "GET"},
      {"/v2/models/a%20b/versions/7", Kind::kModel, "a b", "7", "GET"},
      {"/v2/models/m/ready", Kind::kReady, "m", "", "GET"},
      {"/v2/models/m/versions/7/ready", Kind::kReady, "m", "7", "GET"},
      {"/v2/models/m/infer", Kind::kInfer, "m", "", "POST"},
      {"/v2/models/m/versions/canary/infer", Kind::kInfer, "m", "canary",
       "POST"},
      {"/v2/models/stats", Kind::kStatistics, "", "", "GET"},
      {"/v2/models/m/stats", Kind::kStatistics, "m", "", "GET"},
      {"/v2/repository/index", Kind::kIndex, "", "", "POST"},
      {"/v2/repository/models/m/load", Kind::kLoad, "m", "", "POST"},
      {"/v2/repository/models/m/unload", Kind::kUnload, "m", "", "POST"},
  };
  for (const auto& row : rows) {
    const auto route = V2RouteOf(row.path);
    ASSERT_TRUE(route.has_value()) << row.path;
    EXPECT_EQ(route->kind, row.kind) << row.path;
    EXPECT_EQ(route->model, row.model) << row.path;
    EXPECT_EQ(route->version, row.version) << row.path;
    EXPECT_STREQ(route->Method(), row.method) << row.path;
  }
}

TEST(V2Route, OtherPaths) {
  for (const char* path :
       {"", "/", "/V2", "/v1", "/v2/models", "/v2/models//infer",
        "/v2/Models/m", "/v2/models/m/Infer", "/v2/models/m/versions",
        "/v2/models/m/versions//infer", "/v2/models/m/infer/x",
        "/v2/repository", "/v2/repository/models/m", "/v2/other",
        "/v2/repository/models/m/drop"}) {
    EXPECT_FALSE(V2RouteOf(path).has_value()) << path;
  }
}

}  // namespace
}  // namespace headrace::serving
