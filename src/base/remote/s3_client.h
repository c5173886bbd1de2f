// Calls of S3: signed, sent to the bucket's region, tried again.
#pragma once

#include <atomic>
#include <ctime>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "base/fork_mutex.h"
#include "base/mutex.h"
#include "base/net/http_client.h"
#include "base/remote/s3_answer.h"
#include "base/remote/s3_settings.h"
#include "base/remote/tries.h"
#include "base/status.h"

namespace headrace {

using S3Query = std::vector<std::pair<std::string, std::string>>;

struct S3Call {
  std::string method;
  S3Path path;    // key "": the bucket
  S3Query query;  // sorted by name
  std::vector<std::string> headers;
  uint64_t body_size = 0;
  std::function<Status(uint64_t offset, absl::Span<char> out)> body;
  // As HttpRequest's.
  std::function<bool(StringView bytes)> take;
  // The server's own work takes long (copies): ten times the patience, and the
  // answer may be an error in spite of its status.
  bool slow = false;

  void SetBody(std::string text);
};

// Thread-safe.
class S3Client {
 public:
  S3Client(HttpClient* http, S3Settings settings)
      : http_(http), settings_(std::move(settings)) {}

  // OK with an answer of 2xx. Errors: see ParseS3Error; Unavailable and
  // DeadlineExceeded where no try came to an answer. `*repeated`, unless null,
  // is set where the call may have been done by a try before, whose answer was
  // lost.
  Status Do(const S3Call& call, HttpAnswer* answer, bool* repeated = nullptr);

  // Fills `out` with an object's bytes from `offset` on, of the version `tag`
  // ("": whichever). Returns how many bytes: fewer only where the object ends
  // there. FailedPrecondition where it was replaced.
  StatusOr<size_t> Read(const S3Path& path, const std::string& tag,
                        uint64_t offset, absl::Span<char> out);

  static std::string Shown(const S3Path& path) {
    return absl::StrCat("s3://", path.bucket, "/", path.key);
  }

 private:
  struct ReadState;
  // One try, with another place or clock at once where the answer tells it.
  // `*again`: another may help.
  Status Once(const S3Call& call, const std::string& sum, const Tries& tries,
              HttpAnswer* answer, bool* again);
  HttpRequest Signed(const S3Call& call, const std::string& sum,
                     const Tries& tries);
  // Whether what the answer tells was not known before.
  bool Learn(const S3Call& call, const HttpAnswer& answer,
             const S3Error& error);
  std::string RegionOf(const std::string& bucket);
  StatusOr<std::string> SumOf(const S3Call& call) const;
  TryLimits LimitsOf(const S3Call& call) const;
  Status ReadOnce(const S3Call& call, ReadState* state, const Tries& tries,
                  bool* again);

  HttpClient* const http_;
  const S3Settings settings_;
  std::atomic<int64_t> clock_{0};  // the server's less ours, seconds
  ForkMutex mutex_;
  std::map<std::string, std::string> regions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace headrace
