// What S3 answers, as values, and what it is sent. Answers come from strangers:
// each is checked, and what does not fit is DataLoss.
#pragma once

#include <string>
#include <vector>

#include "base/files/file_system.h"
#include "base/net/http_client.h"

namespace headrace {

// Answers that are read have at most so many bytes: a page of a list has a
// thousand keys of at most 3 KiB each, percent-encoded.
inline constexpr size_t kMostS3Answer = size_t{8} << 20;

// "Wed, 12 Oct 2009 17:50:00 GMT", in nanoseconds since 1970.
StatusOr<int64_t> ParseHttpTime(StringView text);

struct S3Page {
  std::vector<std::string> keys;
  std::vector<std::string> prefixes;  // each ends with a slash
  std::string next;                   // continues the list, "": it is whole
};
// Of ListObjectsV2; all names begin with `prefix`.
StatusOr<S3Page> ParseS3Page(StringView xml, StringView prefix);

// Of HEAD.
StatusOr<FileStat> ParseS3Head(const HttpAnswer& answer);

// Of CreateMultipartUpload.
StatusOr<std::string> ParseUploadId(StringView xml);
// Of CopyObject and UploadPartCopy: the tag of what was made.
StatusOr<std::string> ParseCopyTag(StringView xml);
// Of DeleteObjects: the first key that was not deleted, OK where all were.
Status ParseDeletions(StringView xml);

std::string DeletionXml(absl::Span<const std::string> keys);
std::string CompletionXml(absl::Span<const std::string> tags);

// What a call came to: what to do next, beside the error.
enum class S3Trouble {
  kNone,    // the request was understood and refused
  kRetry,   // it is sent again, after a while
  kRegion,  // it is sent to `region`
  kClock,   // it is signed by the server's clock
};
struct S3Error {
  Status status;
  S3Trouble trouble = S3Trouble::kNone;
  std::string region;
  std::string code;  // the server's word
};
// An answer that is none of 2xx, or (of copies and completions) has an error as
// its body. The status' text begins with `path` and has the server's code.
S3Error ParseS3Error(const HttpAnswer& answer, StringView path);

// Whether the answer is an error in spite of its status.
bool IsS3Error(const HttpAnswer& answer);

}  // namespace headrace
