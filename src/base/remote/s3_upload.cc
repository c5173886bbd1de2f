#include "base/remote/s3_upload.h"

#include <algorithm>
#include <functional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "base/guard.h"
#include "base/job_threads.h"

namespace headrace {
namespace {

using S3ClientPtr = std::shared_ptr<S3Client>;

// S3's own limits are 5 GiB for an object that is put or copied at once, 5 MiB
// for a part that is not the last, and 10,000 parts.
constexpr uint64_t kMostAtOneCall = 64 << 20;
constexpr uint64_t kSmallestPart = 16 << 20;
constexpr uint64_t kMostParts = 9000;
constexpr uint64_t kCopiedPart = uint64_t{1} << 30;
// Fewer bytes are sent anew and not copied, which takes two requests more.
constexpr uint64_t kLeastCopied = 8 << 20;
constexpr std::chrono::seconds kAbortTime{5};

// A part of an object that is made: its own bytes, or a copy of another's.
struct Piece {
  uint64_t offset, size;
  bool copied;
};

// Cuts [begin, end) into pieces of about equal size.
void AddPieces(uint64_t begin, uint64_t end, uint64_t most, bool copied,
               std::vector<Piece>* pieces) {
  const uint64_t count = (end - begin + most - 1) / most;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t at = begin + (end - begin) / count * i;
    const uint64_t next =
        i + 1 == count ? end : begin + (end - begin) / count * (i + 1);
    pieces->push_back({at, next - at, copied});
  }
}

std::string CopySource(const S3Path& path) {
  return absl::StrCat("x-amz-copy-source: ", PercentEncode(path.bucket), "/",
                      PercentEncode(path.key, "/"));
}

using SendPiece = std::function<Status(const Piece&, S3Call*)>;

// One object of several parts.
class PartedObject {
 public:
  PartedObject(S3ClientPtr client, S3Path path)
      : client_(std::move(client)), path_(std::move(path)) {}

  // `prepare` fills a call with a piece. Returns the new object's tag.
  StatusOr<std::string> Make(const std::vector<Piece>& pieces,
                             const SendPiece& prepare) {
    HttpAnswer answer;
    HR_RETURN_IF_ERROR(
        client_->Do({"POST", path_, {{"uploads", ""}}}, &answer));
    HR_ASSIGN_OR_RETURN(upload_, ParseUploadId(answer.body));
    StatusOr<std::string> tag = Send(pieces, prepare);
    if (!tag.ok()) Abort();
    return tag;
  }

 private:
  StatusOr<std::string> Send(const std::vector<Piece>& pieces,
                             const SendPiece& prepare) {
    std::vector<std::string> tags;
    for (const Piece& piece : pieces) {
      S3Call call{"PUT", path_};
      call.query = {{"partNumber", absl::StrCat(tags.size() + 1)},
                    {"uploadId", upload_}};
      HR_RETURN_IF_ERROR(prepare(piece, &call));
      HttpAnswer answer;
      HR_RETURN_IF_ERROR(client_->Do(call, &answer));
      if (piece.copied) {
        HR_ASSIGN_OR_RETURN(tags.emplace_back(), ParseCopyTag(answer.body));
      } else {
        tags.emplace_back(answer.Header("etag"));
      }
    }
    return Complete(tags);
  }

  StatusOr<std::string> Complete(const std::vector<std::string>& tags) {
    S3Call call{"POST", path_, {{"uploadId", upload_}}};
    call.SetBody(CompletionXml(tags));
    call.slow = true;
    HttpAnswer answer;
    bool repeated = false;
    const Status status = client_->Do(call, &answer, &repeated);
    if (status.ok()) return ParseCopyTag(answer.body);
    // Done by the try whose answer was lost: its tag ends with the parts'
    // count.
    if (repeated && absl::IsNotFound(status)) {
      const auto made = VersionOf(*client_, path_);
      if (made.ok() &&
          absl::StrContains(made->tag, absl::StrCat("-", tags.size(), "\""))) {
        return made->tag;
      }
    }
    return status;
  }

  // The parts that arrived cost room until then. Also of work that was stopped:
  // on a thread that nobody stops.
  void Abort() {
    struct Waiter {
      Mutex mutex;
      CondVar changed;
      bool done ABSL_GUARDED_BY(mutex) = false;
    };
    const auto waiter = std::make_shared<Waiter>();
    const S3Call call{"DELETE", path_, {{"uploadId", upload_}}};
    const Status begun = RunOnOwnThread([client = client_, call, waiter] {
      Guarded("leaving an upload", [&] {
        HttpAnswer answer;
        return client->Do(call, &answer);
      }).IgnoreError();
      const MutexLock lock(waiter->mutex);
      waiter->done = true;
      waiter->changed.NotifyAll();
    });
    if (!begun.ok()) return;
    const auto end = Tries::Clock::now() + kAbortTime;
    const MutexLock lock(waiter->mutex);
    while (!waiter->done && Tries::Clock::now() < end) {
      waiter->changed.WaitFor(waiter->mutex, std::chrono::milliseconds(100));
    }
  }

  const S3ClientPtr client_;
  const S3Path path_;
  std::string upload_;
};

void AddCopiedRange(const S3Path& from, const std::string& tag,
                    const Piece& piece, S3Call* call) {
  call->slow = true;
  call->headers = {CopySource(from),
                   absl::StrCat("x-amz-copy-source-range: bytes=", piece.offset,
                                "-", piece.offset + piece.size - 1)};
  if (!tag.empty()) {
    call->headers.push_back(absl::StrCat("x-amz-copy-source-if-match: ", tag));
  }
}

class S3Upload : public Upload {
 public:
  S3Upload(S3ClientPtr client, S3Path path, S3Version base)
      : client_(std::move(client)),
        path_(std::move(path)),
        base_(base.size),
        there_(std::move(base)) {}

  bool only_appends() const override { return false; }

  Status Send(const Spool& spool, uint64_t sent, uint64_t size,
              bool /*last*/) override {
    const uint64_t total = base_ + size;
    HR_RETURN_IF_ERROR(replaced_);
    HR_RETURN_IF_ERROR(FindBase());
    const uint64_t kept = std::min(base_ + sent, there_.size);
    StatusOr<std::string> tag = std::string();
    if (kept >= kLeastCopied && !there_.tag.empty()) {
      tag = SendParts(spool, kept, total);
      if (absl::IsAborted(tag.status()) && base_ == 0) {
        tag = SendWhole(spool, total);  // another has replaced it
      }
    } else {
      tag = SendWhole(spool, total);
    }
    // What arrived of a call that failed is not known.
    there_ = tag.ok() ? S3Version{total, *tag} : S3Version();
    if (!absl::IsAborted(tag.status())) return tag.status();
    return replaced_ = FailedPrecondition(
               S3Client::Shown(path_),
               ": the object was replaced while it was appended to");
  }

 private:
  // Of what is appended to: its version where a call before failed, and its
  // bytes where they are few.
  Status FindBase() {
    if (base_ == 0) return OkStatus();
    if (there_.tag.empty()) {
      HR_ASSIGN_OR_RETURN(there_, VersionOf(*client_, path_));
    }
    uint64_t size = there_.size;
    if (base_ < kLeastCopied && head_.empty()) {
      std::string head(base_, '\0');
      HR_ASSIGN_OR_RETURN(
          size, client_->Read(path_, there_.tag, 0, absl::MakeSpan(head)));
      if (size == base_) head_ = std::move(head);
    }
    if (size >= base_) return OkStatus();
    return replaced_ = FailedPrecondition(S3Client::Shown(path_),
                                          ": the object has become shorter");
  }

  Status ReadAt(const Spool& spool, uint64_t offset,
                absl::Span<char> out) const {
    if (offset < head_.size()) {
      const size_t n = std::min<uint64_t>(out.size(), head_.size() - offset);
      std::copy_n(head_.data() + offset, n, out.data());
      offset += n;
      out.remove_prefix(n);
    }
    return out.empty() ? OkStatus() : spool.Read(offset - base_, out);
  }

  StatusOr<std::string> SendWhole(const Spool& spool, uint64_t total) {
    // Bytes that are not here must be copied from what is there.
    if (base_ > head_.size()) return SendParts(spool, base_, total);
    if (total > kMostAtOneCall) return SendParts(spool, 0, total);
    S3Call call{"PUT", path_};
    AddBytes(spool, {0, total, false}, &call);
    HttpAnswer answer;
    HR_RETURN_IF_ERROR(client_->Do(call, &answer));
    return std::string(answer.Header("etag"));
  }

  void AddBytes(const Spool& spool, const Piece& piece, S3Call* call) const {
    call->body_size = piece.size;
    call->body = [this, &spool, begin = piece.offset](uint64_t offset,
                                                      absl::Span<char> out) {
      return ReadAt(spool, begin + offset, out);
    };
  }

  // The first `kept` bytes are copied.
  StatusOr<std::string> SendParts(const Spool& spool, uint64_t kept,
                                  uint64_t total) {
    std::vector<Piece> pieces;
    AddPieces(0, kept, kCopiedPart, true, &pieces);
    AddPieces(kept, total, std::max(kSmallestPart, total / kMostParts), false,
              &pieces);
    return PartedObject(client_, path_)
        .Make(pieces, [&](const Piece& piece, S3Call* call) {
          if (piece.copied) {
            AddCopiedRange(path_, there_.tag, piece, call);
          } else {
            AddBytes(spool, piece, call);
          }
          return OkStatus();
        });
  }

  const S3ClientPtr client_;
  const S3Path path_;
  const uint64_t base_;
  S3Version there_;   // tag "": not known
  Status replaced_;   // by another: nothing can be appended
  std::string head_;  // the first base_ bytes, where they are few
};

}  // namespace

StatusOr<S3Version> VersionOf(S3Client& client, const S3Path& path) {
  HttpAnswer answer;
  HR_RETURN_IF_ERROR(client.Do({"HEAD", path}, &answer));
  HR_ASSIGN_OR_RETURN(const FileStat stat, ParseS3Head(answer));
  return S3Version{stat.size, std::string(answer.Header("etag"))};
}

Status PutEmpty(S3Client& client, const S3Path& path, bool only_new) {
  S3Call call{"PUT", path};
  if (only_new) call.headers = {"If-None-Match: *"};
  HttpAnswer answer;
  const Status status = client.Do(call, &answer);
  if (absl::IsAborted(status)) return AlreadyExists(status.message());
  return status;
}

Status CopyObject(S3ClientPtr client, const S3Path& from, const S3Path& to) {
  HR_ASSIGN_OR_RETURN(const S3Version version, VersionOf(*client, from));
  if (version.size > kCopiedPart) {
    std::vector<Piece> pieces;
    AddPieces(0, version.size, kCopiedPart, true, &pieces);
    return PartedObject(client, to)
        .Make(pieces,
              [&](const Piece& piece, S3Call* call) {
                AddCopiedRange(from, version.tag, piece, call);
                return OkStatus();
              })
        .status();
  }
  S3Call call{"PUT", to};
  call.headers = {CopySource(from)};
  call.slow = true;
  HttpAnswer answer;
  HR_RETURN_IF_ERROR(client->Do(call, &answer));
  return ParseCopyTag(answer.body).status();
}

std::unique_ptr<Upload> NewS3Upload(S3ClientPtr client, S3Path path,
                                    S3Version base) {
  return std::make_unique<S3Upload>(std::move(client), std::move(path),
                                    std::move(base));
}

}  // namespace headrace
