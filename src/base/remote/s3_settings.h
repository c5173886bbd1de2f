// Where S3 is and who asks: paths, the environment, and the AWS tools' files.
#pragma once

#include <map>
#include <string>

#include "base/remote/aws_signature.h"
#include "base/remote/tries.h"
#include "base/status.h"

namespace headrace {

struct S3Path {
  std::string bucket, key;  // the key without slashes at its ends
};

// "s3://bucket/key". InvalidArgument where the bucket is no name of one.
StatusOr<S3Path> ParseS3Path(StringView path);

// A profile of ~/.aws/credentials or ~/.aws/config. Those of several files are
// merged, the first file's values before the others'.
using AwsProfile = std::map<std::string, std::string, std::less<>>;

// Adds what a file says of a profile, under "[name]" or "[profile name]";
// returns whether it says anything. Lines that are none of its are passed over.
bool AddAwsProfile(StringView text, StringView name, AwsProfile* profile);

struct S3Settings {
  std::string endpoint;  // "http://host:port" of an own server; "": AWS
  std::string region;
  bool secure = true;          // HTTPS to AWS
  bool verify = true;          // certificates
  std::string certificates;    // a file of them, "": the system's
  AwsCredentials credentials;  // id "": requests are not signed
  TryLimits limits;

  // The variables above the files: see docs/clusters.md. Unimplemented where
  // credentials come from what is not known here, InvalidArgument where a
  // profile is missing or a value is wrong.
  static StatusOr<S3Settings> FromEnvironment();
  // All that the settings depend on, as a key.
  static std::string Key();
};

// Of a region's name, which becomes part of a host's.
bool IsAwsRegion(StringView name);

struct S3Place {
  std::string url;   // "https://host", and "/bucket" of path style
  std::string host;  // as in "Host:"
  std::string path;  // what of the url is path: "" or "/bucket"
};
// AWS has a host for each bucket, but for names that are no part of one's; own
// servers have the bucket in the path.
S3Place PlaceOfBucket(const S3Settings& settings, StringView region,
                      StringView bucket);

}  // namespace headrace
