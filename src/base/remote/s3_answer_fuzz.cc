// Any bytes as what S3 answers, and as the files of the AWS tools.
#include <cstdlib>

#include "base/remote/s3_answer.h"
#include "base/remote/s3_settings.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, size_t size) {
  using namespace headrace;
  const StringView bytes(data, size);
  if (const auto page = ParseS3Page(bytes, "d/"); page.ok()) {
    for (const auto* names : {&page->keys, &page->prefixes}) {
      for (const std::string& name : *names) {
        if (name.substr(0, 2) != "d/" || name.find('\0') != name.npos) abort();
      }
    }
  }
  (void)ParseUploadId(bytes);
  (void)ParseCopyTag(bytes);
  (void)ParseDeletions(bytes);
  (void)ParseHttpTime(bytes);
  HttpAnswer answer;
  answer.body = std::string(bytes);
  (void)IsS3Error(answer);
  for (const int status : {200, 301, 400, 403, 503}) {
    answer.status = status;
    const S3Error error = ParseS3Error(answer, "s3://b/k");
    if (error.status.ok()) abort();
    if (error.trouble == S3Trouble::kRegion && !IsAwsRegion(error.region)) {
      abort();
    }
  }
  answer.headers = {{"content-length", std::string(bytes)},
                    {"last-modified", std::string(bytes)},
                    {"x-amz-bucket-region", std::string(bytes)}};
  (void)ParseS3Head(answer);
  (void)ParseS3Error(answer, "s3://b/k");
  AwsProfile profile;
  (void)AddAwsProfile(bytes, "default", &profile);
  if (const auto path = ParseS3Path(bytes); path.ok()) {
    if (path->bucket.find('/') != std::string::npos) abort();
  }
  return 0;
}
