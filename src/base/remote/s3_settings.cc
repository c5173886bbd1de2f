#include "base/remote/s3_settings.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files/files.h"
#include "base/remote/remote_clients.h"
#include "base/sandbox.h"

namespace headrace {
namespace {

constexpr size_t kLongestBucket = 255, kShortestBucket = 3;
constexpr size_t kLongestHostPart = 63;
constexpr char kDefaultRegion[] = "us-east-1";

constexpr const char* kS3Variables[] = {
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_CONFIG_FILE",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_CA_BUNDLE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "S3_ENDPOINT",
    "S3_USE_HTTPS",
    "S3_VERIFY_SSL",
    "S3_CA_FILE",
    "HEADRACE_S3_TIMEOUT",
    "HOME"};
// Where credentials may come from that this client does not ask.
constexpr const char* kUnknownSources[] = {
    "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI"};
constexpr const char* kUnknownSettings[] = {"role_arn", "credential_process",
                                            "sso_session", "sso_start_url"};

// The first of the variables that is set.
std::string FirstOf(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return "";
}

std::string AwsFile(const char* variable, StringView name) {
  std::string path = FirstOf({variable});
  if (!path.empty()) return path;
  const std::string home = FirstOf({"HOME"});
  return home.empty() ? "" : JoinPath(home, absl::StrCat(".aws/", name));
}
std::string CredentialsFile() {
  return AwsFile("AWS_SHARED_CREDENTIALS_FILE", "credentials");
}
std::string ConfigFile() { return AwsFile("AWS_CONFIG_FILE", "config"); }

StatusOr<bool> FlagOf(const char* variable) {
  const std::string text = absl::AsciiStrToLower(FirstOf({variable}));
  if (text.empty() || text == "1" || text == "true") return true;
  if (text == "0" || text == "false") return false;
  return InvalidArgument(variable, " is '", text, "', neither 0 nor 1");
}

StatusOr<AwsProfile> ReadProfile() {
  const std::string given = FirstOf({"AWS_PROFILE", "AWS_DEFAULT_PROFILE"});
  AwsProfile profile;
  bool found = false;
  for (const std::string& path : {CredentialsFile(), ConfigFile()}) {
    if (path.empty()) continue;
    const auto text = ReadWholeFile(PosixFileSystem(), path);
    if (absl::IsNotFound(text.status())) continue;
    HR_RETURN_IF_ERROR(text.status());
    found |= AddAwsProfile(*text, given.empty() ? "default" : given, &profile);
  }
  if (found || given.empty()) return profile;
  return InvalidArgument("AWS_PROFILE is ", given, ", which neither ",
                         CredentialsFile(), " nor ", ConfigFile(), " has");
}

std::string Value(const AwsProfile& profile, StringView name) {
  const auto found = profile.find(name);
  return found == profile.end() ? "" : found->second;
}

StatusOr<AwsCredentials> FindCredentials(const AwsProfile& profile) {
  AwsCredentials out{FirstOf({"AWS_ACCESS_KEY_ID"}),
                     FirstOf({"AWS_SECRET_ACCESS_KEY"}),
                     FirstOf({"AWS_SESSION_TOKEN"})};
  if (out.id.empty() != out.secret.empty()) {
    return InvalidArgument(
        "of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY only one is set");
  }
  if (!out.id.empty()) return out;
  out = {Value(profile, "aws_access_key_id"),
         Value(profile, "aws_secret_access_key"),
         Value(profile, "aws_session_token")};
  if (!out.id.empty() && !out.secret.empty()) return out;
  std::string unknown;
  for (const char* name : kUnknownSources) {
    if (!FirstOf({name}).empty()) unknown = name;
  }
  for (const char* name : kUnknownSettings) {
    if (!Value(profile, name).empty()) unknown = name;
  }
  if (unknown.empty()) return AwsCredentials();
  return Unimplemented("credentials of S3 by ", unknown,
                       " (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a "
                       "profile that has keys, are understood)");
}

Status FindEndpoint(const AwsProfile& profile, S3Settings* out) {
  std::string& place = out->endpoint;
  place = FirstOf({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "S3_ENDPOINT"});
  if (place.empty()) place = Value(profile, "endpoint_url");
  while (absl::EndsWith(place, "/")) place.pop_back();
  if (place.empty()) return OkStatus();
  if (!absl::StrContains(place, "://")) {
    place = absl::StrCat(out->secure ? "https://" : "http://", place);
  }
  const size_t host = place.find("://") + 3;
  if ((absl::StartsWith(place, "http://") ||
       absl::StartsWith(place, "https://")) &&
      host < place.size() &&
      place.find_first_of("/?#@ \t\r\n", host) == std::string::npos) {
    return OkStatus();
  }
  return InvalidArgument("the endpoint of S3, '", place,
                         "', is not http://host:port or https://host:port");
}

// Whether a bucket is part of a host's name that a certificate of AWS covers.
bool IsHostPart(StringView bucket) {
  if (bucket.size() > kLongestHostPart) return false;
  for (const char c : bucket) {
    if (!absl::ascii_islower(c) && !absl::ascii_isdigit(c) && c != '-') {
      return false;
    }
  }
  return bucket.front() != '-' && bucket.back() != '-';
}

}  // namespace

StatusOr<S3Path> ParseS3Path(StringView path) {
  StringView rest = path;
  if (!absl::ConsumePrefix(&rest, "s3://")) {
    return InvalidArgument(path, " is no path of S3");
  }
  const size_t slash = std::min(rest.find('/'), rest.size());
  S3Path out{std::string(rest.substr(0, slash)),
             std::string(rest.substr(slash))};
  bool named = out.bucket.size() >= kShortestBucket &&
               out.bucket.size() <= kLongestBucket;
  for (const char c : out.bucket) {
    named &= absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
             StringView("-._").find(c) != StringView::npos;
  }
  if (!named || absl::StrContains(out.bucket, "..")) {
    return InvalidArgument("'", out.bucket, "' is no name of a bucket (in ",
                           path, ")");
  }
  StringView key = out.key;
  while (absl::ConsumePrefix(&key, "/")) {
  }
  while (absl::ConsumeSuffix(&key, "/")) {
  }
  out.key = std::string(key);
  return out;
}

bool AddAwsProfile(StringView text, StringView name, AwsProfile* profile) {
  bool within = false, found = false;
  for (StringView line : absl::StrSplit(text, '\n')) {
    // What is indented belongs to the line before: settings of one service.
    const bool nested = !line.empty() && absl::ascii_isspace(line[0]);
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#' || line[0] == ';' || nested) continue;
    if (absl::ConsumePrefix(&line, "[")) {
      line = absl::StripAsciiWhitespace(line.substr(0, line.find(']')));
      if (absl::ConsumePrefix(&line, "profile ")) {
        line = absl::StripLeadingAsciiWhitespace(line);
      }
      within = line == name;
      found |= within;
    } else if (const size_t equals = line.find('=');
               within && equals != StringView::npos) {
      const StringView left = line.substr(0, equals);
      const StringView right = line.substr(equals + 1);
      profile->emplace(
          absl::AsciiStrToLower(absl::StripTrailingAsciiWhitespace(left)),
          absl::StripAsciiWhitespace(right));
    }
  }
  return found;
}

StatusOr<S3Settings> S3Settings::FromEnvironment() {
  const AdoptedSandbox outside;  // the process' own, not a model's
  S3Settings out;
  HR_ASSIGN_OR_RETURN(const AwsProfile profile, ReadProfile());
  HR_ASSIGN_OR_RETURN(out.credentials, FindCredentials(profile));
  HR_ASSIGN_OR_RETURN(out.secure, FlagOf("S3_USE_HTTPS"));
  HR_ASSIGN_OR_RETURN(out.verify, FlagOf("S3_VERIFY_SSL"));
  HR_RETURN_IF_ERROR(FindEndpoint(profile, &out));
  out.certificates = FirstOf({"S3_CA_FILE", "AWS_CA_BUNDLE"});
  out.region = FirstOf({"AWS_REGION", "AWS_DEFAULT_REGION"});
  if (out.region.empty()) out.region = Value(profile, "region");
  if (out.region.empty()) out.region = kDefaultRegion;
  if (!IsAwsRegion(out.region)) {
    return InvalidArgument("'", out.region, "' is no name of an AWS region");
  }
  HR_ASSIGN_OR_RETURN(out.limits.patience, PatienceOf("HEADRACE_S3_TIMEOUT"));
  return out;
}

std::string S3Settings::Key() {
  const AdoptedSandbox outside;
  std::string key = ValuesOf(kS3Variables);
  // Keys that last an hour are written anew there.
  for (const std::string& path : {CredentialsFile(), ConfigFile()}) {
    const auto stat = PosixFileSystem()->Stat(path);
    absl::StrAppend(&key, "\n", stat.ok() ? stat->mtime_ns : 0);
  }
  return key;
}

bool IsAwsRegion(StringView name) { return !name.empty() && IsHostPart(name); }

S3Place PlaceOfBucket(const S3Settings& settings, StringView region,
                      StringView bucket) {
  S3Place out;
  std::string start = settings.endpoint;
  const bool own = !start.empty();
  const bool virtual_host = !own && IsHostPart(bucket);
  if (!own) {
    start = absl::StrCat(settings.secure ? "https://" : "http://",
                         virtual_host ? bucket : "", virtual_host ? "." : "",
                         "s3.", region, ".amazonaws.com",
                         absl::StartsWith(region, "cn-") ? ".cn" : "");
  }
  if (!virtual_host) out.path = absl::StrCat("/", bucket);
  out.host = start.substr(start.find("://") + 3);
  out.url = start + out.path;
  return out;
}

}  // namespace headrace
