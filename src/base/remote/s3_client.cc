#include "base/remote/s3_client.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "base/sha256.h"

namespace headrace {
namespace {

using Milliseconds = std::chrono::milliseconds;

// Transfers that do not move are left after this part of the patience.
constexpr int kS3Stalls = 4;
constexpr int kSlowTimes = 10;  // see S3Call::slow
// An answer leads to another region, and that one tells that the clock is
// wrong.
constexpr int kMostLessons = 3;
constexpr size_t kSumPiece = 256 << 10;

bool IsTransfer(const S3Call& call) { return call.take || call.body_size > 0; }

// Where the bytes of an answer of 206 begin, and how many the object has; of
// "bytes 5-9/20".
bool ParseRange(StringView text, uint64_t* begin, uint64_t* size) {
  const size_t dash = text.find('-'), slash = text.find('/');
  return absl::StartsWith(text, "bytes ") && dash != StringView::npos &&
         slash != StringView::npos &&
         absl::SimpleAtoi(text.substr(6, dash - 6), begin) &&
         absl::SimpleAtoi(text.substr(slash + 1), size);
}

}  // namespace

void S3Call::SetBody(std::string text) {
  body_size = text.size();
  body = [text = std::move(text)](uint64_t offset, absl::Span<char> out) {
    std::memcpy(out.data(), text.data() + offset, out.size());
    return OkStatus();
  };
}

std::string S3Client::RegionOf(const std::string& bucket) {
  const MutexLock lock(mutex_);
  const auto found = regions_.find(bucket);
  return found == regions_.end() ? settings_.region : found->second;
}

TryLimits S3Client::LimitsOf(const S3Call& call) const {
  TryLimits limits = settings_.limits;
  if (call.slow) limits.patience *= kSlowTimes;
  return limits;
}

// TLS says that a body arrived as it was sent. Without it, the sum does.
StatusOr<std::string> S3Client::SumOf(const S3Call& call) const {
  if (settings_.credentials.id.empty()) return std::string();
  const std::string url =
      PlaceOfBucket(settings_, settings_.region, call.path.bucket).url;
  if (call.body_size > kSumPiece && absl::StartsWith(url, "https://")) {
    return std::string(kUnsignedBody);
  }
  Sha256 sum;
  std::string piece;
  for (uint64_t at = 0; at < call.body_size; at += piece.size()) {
    piece.resize(std::min<uint64_t>(kSumPiece, call.body_size - at));
    HR_RETURN_IF_ERROR(call.body(at, absl::MakeSpan(piece)));
    sum.Add(piece);
  }
  return absl::BytesToHexString(BytesOf(sum.Finish()));
}

HttpRequest S3Client::Signed(const S3Call& call, const std::string& sum,
                             const Tries& tries) {
  const std::string region = RegionOf(call.path.bucket);
  const S3Place place = PlaceOfBucket(settings_, region, call.path.bucket);
  const std::string key = absl::StrCat("/", PercentEncode(call.path.key, "/"));
  AwsCall aws{call.method, place.host, place.path + key, "", sum,
              region,      "s3",       call.headers};
  for (const auto& [name, value] : call.query) {
    absl::StrAppend(&aws.query, aws.query.empty() ? "" : "&",
                    PercentEncode(name), "=", PercentEncode(value));
  }
  HttpRequest out;
  out.method = call.method;
  out.url =
      absl::StrCat(place.url, key, aws.query.empty() ? "" : "?", aws.query);
  out.headers = call.headers;
  if (!settings_.credentials.id.empty()) {
    const auto headers = AwsHeaders(aws, settings_.credentials,
                                    std::time(nullptr) + clock_.load());
    out.headers.insert(out.headers.end(), headers.begin(), headers.end());
  }
  out.body_size = call.body_size;
  out.body = call.body;
  out.take = call.take;
  out.most_body = kMostS3Answer;
  out.verify = settings_.verify;
  out.certificates = settings_.certificates;
  out.connect = std::min(kConnectTime, tries.left());
  out.whole = IsTransfer(call) ? Milliseconds(0) : tries.left();
  out.stall = IsTransfer(call) && !call.slow
                  ? settings_.limits.patience / kS3Stalls
                  : tries.left();
  return out;
}

bool S3Client::Learn(const S3Call& call, const HttpAnswer& answer,
                     const S3Error& error) {
  if (error.trouble == S3Trouble::kRegion) {
    const MutexLock lock(mutex_);
    std::string& region = regions_[call.path.bucket];
    if (region.empty()) region = settings_.region;
    return std::exchange(region, error.region) != error.region;
  }
  if (error.trouble == S3Trouble::kClock) {
    const auto time = ParseHttpTime(answer.Header("date"));
    if (!time.ok()) return false;
    clock_ = *time / 1000000000 - std::time(nullptr);
    return true;
  }
  return false;
}

Status S3Client::Once(const S3Call& call, const std::string& sum,
                      const Tries& tries, HttpAnswer* answer, bool* again) {
  const std::string shown = Shown(call.path);
  *again = false;
  for (int lessons = 0;; ++lessons) {
    const Status sent = http_->Do(Signed(call, sum, tries), answer);
    if (!sent.ok()) {
      *again = IsTransient(sent);
      return Status(sent.code(), absl::StrCat(shown, ": ", sent.message()));
    }
    if (answer->status / 100 == 2 && !(call.slow && IsS3Error(*answer))) {
      return OkStatus();
    }
    const S3Error error = ParseS3Error(*answer, shown);
    if (lessons < kMostLessons && Learn(call, *answer, error)) continue;
    *again = error.trouble == S3Trouble::kRetry;
    return error.status;
  }
}

Status S3Client::Do(const S3Call& call, HttpAnswer* answer, bool* repeated) {
  HR_ASSIGN_OR_RETURN(const std::string sum, SumOf(call));
  Tries tries(LimitsOf(call));
  for (;;) {
    bool again = false;
    const Status status = Once(call, sum, tries, answer, &again);
    if (repeated != nullptr) *repeated = tries.reached;
    if (status.ok() || !again) return status;
    tries.reached |= answer->reached;
    // A transfer took its time.
    if (IsTransfer(call)) {
      tries.end = Tries::Clock::now() + LimitsOf(call).patience;
    }
    HR_ASSIGN_OR_RETURN(const bool more, tries.Again());
    if (!more) return status;
  }
}

struct S3Client::ReadState {
  uint64_t offset;
  absl::Span<char> out;
  size_t done = 0;
  bool ended = false;  // the object has no more
};

Status S3Client::ReadOnce(const S3Call& call, ReadState* state,
                          const Tries& tries, bool* again) {
  const uint64_t begin = state->offset + state->done;
  HttpAnswer answer;
  S3Call part = call;
  part.headers.push_back(absl::StrCat("Range: bytes=", begin, "-",
                                      state->offset + state->out.size() - 1));
  Status wrong;
  uint64_t size = 0;
  part.take = [&](StringView bytes) {
    uint64_t at = 0;
    if (answer.status != 206 ||
        !ParseRange(answer.Header("content-range"), &at, &size) ||
        at != begin) {
      wrong = DataLoss(Shown(call.path),
                       ": the answer is not of the bytes that were asked for");
      return false;
    }
    if (bytes.size() > state->out.size() - state->done) return false;
    std::memcpy(state->out.data() + state->done, bytes.data(), bytes.size());
    state->done += bytes.size();
    return true;
  };
  const Status status =
      Once(part, absl::BytesToHexString(BytesOf(Sha256Of(""))), tries, &answer,
           again);
  if (!wrong.ok()) *again = false;
  HR_RETURN_IF_ERROR(wrong);
  if (answer.status == 416) {
    state->ended = true;
    return OkStatus();
  }
  if (absl::IsAborted(status)) {
    return FailedPrecondition(Shown(call.path),
                              ": the object was replaced while it was read");
  }
  HR_RETURN_IF_ERROR(status);
  state->ended = size <= state->offset + state->done;
  if (state->ended || state->done == state->out.size()) return OkStatus();
  *again = true;
  return Unavailable(Shown(call.path), ": an answer was cut after ",
                     state->done, " of ", state->out.size(), " bytes");
}

StatusOr<size_t> S3Client::Read(const S3Path& path, const std::string& tag,
                                uint64_t offset, absl::Span<char> out) {
  S3Call call{"GET", path};
  if (!tag.empty()) call.headers.push_back(absl::StrCat("If-Match: ", tag));
  ReadState state{offset, out};
  Tries tries(settings_.limits);
  while (state.done < out.size() && !state.ended) {
    const size_t had = state.done;
    bool again = false;
    const Status status = ReadOnce(call, &state, tries, &again);
    if (status.ok() || state.done == out.size()) continue;
    if (!again) return status;
    // Who gave much may be asked on; a new count begins.
    if (state.done - had >= kMuchRead) tries = Tries(settings_.limits);
    HR_ASSIGN_OR_RETURN(const bool more, tries.Again());
    if (!more) return status;
  }
  return state.done;
}

}  // namespace headrace
