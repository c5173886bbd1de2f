#include "serving/rest/route.h"

#include <gtest/gtest.h>

namespace headrace::serving {
namespace {

// "kind name version label", or the error.
std::string RouteText(StringView method, StringView path) {
  const auto route = RouteOf(method, path);
  if (!route.ok()) return std::string(route.status().message());
  constexpr const char* kKinds[] = {"classify", "regress", "predict", "status",
                                    "metadata"};
  const auto& spec = route->spec;
  return absl::StrCat(
      kKinds[static_cast<int>(route->kind)], " ", spec.name(), " ",
      spec.has_version() ? absl::StrCat(spec.version().value()) : "-", " ",
      spec.has_version_label() ? spec.version_label() : "-");
}

TEST(RestRoute, Paths) {
  const struct {
    const char *method, *path, *route;
  } rows[] = {
      {"POST", "/v1/models/m:predict", "predict m - -"},
      {"POST", "/V1/Models/m/Versions/7:regress", "regress m 7 -"},
      {"POST", "/v1/models/m/labels/a%20b:classify", "classify m - a b"},
      {"POST", "/v1/models/a%2Fb%zz:predict", "predict a/b%zz - -"},
      {"GET", "/v1/models", "status  - -"},
      {"GET", "/v1/models/m", "status m - -"},
      {"GET", "/v1/models/m/versions/3", "status m 3 -"},
      {"GET", "/v1/models/m/labels/l/metadata", "metadata m - l"},
      {"GET", "/v1/models/m/METADATA", "metadata m - -"},
      {"GET", "/v1/models/versions/3", "status  3 -"},
      {"POST", "/v1/models/m:PREDICT",
       "Malformed request: POST /v1/models/m:PREDICT"},
      {"POST", "/v1/models/m", "Malformed request: POST /v1/models/m"},
      {"POST", "/v1/models/m:predict/",
       "Malformed request: POST /v1/models/m:predict/"},
      {"POST", "/v1/models/:predict",
       "Malformed request: POST /v1/models/:predict"},
      {"POST", "/v1/models/m/versions/x:predict",
       "Malformed request: POST /v1/models/m/versions/x:predict"},
      {"GET", "/v1/models/m:predict",
       "Malformed request: GET /v1/models/m:predict"},
      {"GET", "/v1/models/", "Malformed request: GET /v1/models/"},
      {"PUT", "/v1/models/m:predict",
       "Malformed request: PUT /v1/models/m:predict"},
      {"POST", "/v1/models/m/versions/9223372036854775807:predict",
       "predict m 9223372036854775807 -"},
      {"POST", "/v1/models/m/versions/9223372036854775808:predict",
       "Failed to convert version: 9223372036854775808 to numeric."},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(RouteText(row.method, row.path), row.route) << row.path;
  }
  EXPECT_TRUE(IsRestPath("/V1/x"));
  EXPECT_FALSE(IsRestPath("/v1"));
  EXPECT_FALSE(IsRestPath("/v2/models"));
}

TEST(RestRoute, StatusesOfCodes) {
  const std::pair<absl::StatusCode, int> rows[] = {
      {absl::StatusCode::kOk, 200},
      {absl::StatusCode::kInvalidArgument, 400},
      {absl::StatusCode::kFailedPrecondition, 400},
      {absl::StatusCode::kOutOfRange, 400},
      {absl::StatusCode::kUnauthenticated, 401},
      {absl::StatusCode::kPermissionDenied, 403},
      {absl::StatusCode::kNotFound, 404},
      {absl::StatusCode::kAlreadyExists, 409},
      {absl::StatusCode::kAborted, 409},
      {absl::StatusCode::kResourceExhausted, 429},
      {absl::StatusCode::kCancelled, 499},
      {absl::StatusCode::kUnknown, 500},
      {absl::StatusCode::kInternal, 500},
      {absl::StatusCode::kDataLoss, 500},
      {absl::StatusCode::kUnimplemented, 501},
      {absl::StatusCode::kUnavailable, 503},
      {absl::StatusCode::kDeadlineExceeded, 504},
  };
  for (const auto& [code, http] : rows) {
    EXPECT_EQ(HttpStatusOf(Status(code, "x")), http);
  }
}

}  // namespace
}  // namespace headrace::serving
