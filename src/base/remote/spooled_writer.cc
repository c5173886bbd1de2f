#include "base/remote/spooled_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/files/posix_writer.h"
#include "base/files/remote_file_system.h"
#include "base/guard.h"
#include "base/mutex.h"

namespace headrace {
namespace {

std::string SpoolFolder() {
  const char* folder = std::getenv("TMPDIR");
  return folder != nullptr && *folder != '\0' ? folder : "/tmp";
}

class SpooledWriter : public RemoteWritableFile {
 public:
  SpooledWriter(std::unique_ptr<Upload> upload, uint64_t base, std::string path,
                bool unsent)
      : upload_(std::move(upload)),
        base_(base),
        path_(std::move(path)),
        changed_(unsent) {}
  ~SpooledWriter() override {
    Guarded("closing a file", [this] { return Close(); }).IgnoreError();
  }
  Status Open() { return spool_.Open(); }

  Status Append(StringView data) override {
    const MutexLock lock(mutex_);
    return WriteLocked(base_ + size_, data);
  }
  Status WriteAt(uint64_t offset, StringView data) override {
    const MutexLock lock(mutex_);
    return WriteLocked(offset, data);
  }
  Status Sync() override {
    const MutexLock lock(mutex_);
    if (closed_) return FailedPrecondition(path_, ": the file is closed");
    return Send(/*last=*/false);
  }
  uint64_t size() const override {
    const MutexLock lock(mutex_);
    return base_ + size_;
  }
  Status Close() override {
    const MutexLock lock(mutex_);
    if (closed_) return OkStatus();
    closed_ = true;
    return Send(/*last=*/true);
  }

 private:
  Status WriteLocked(uint64_t offset, StringView data)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (closed_) return FailedPrecondition(path_, ": the file is closed");
    HR_RETURN_IF_ERROR(broken_);
    if (offset > INT64_MAX || data.size() > INT64_MAX - offset) {
      return OutOfRange(path_, ": no file has an offset of ", offset);
    }
    const uint64_t fixed = base_ + (upload_->only_appends() ? sent_ : 0);
    if (offset < fixed) {
      return Unimplemented(path_, ": its first ", fixed,
                           " bytes are sent and cannot be changed");
    }
    HR_RETURN_IF_ERROR(spool_.Write(offset - base_, data));
    size_ = std::max<uint64_t>(size_, offset - base_ + data.size());
    sent_ = std::min(sent_, offset - base_);  // the rest has changed
    changed_ = true;
    return OkStatus();
  }

  Status Send(bool last) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    HR_RETURN_IF_ERROR(broken_);
    if (!changed_) return OkStatus();
    const Status sent = upload_->Send(spool_, sent_, size_, last);
    if (!sent.ok()) {
      // How much of it arrived is not known: nothing can follow.
      if (upload_->only_appends()) broken_ = sent;
      return sent;
    }
    sent_ = size_;
    changed_ = false;
    return OkStatus();
  }

  const std::unique_ptr<Upload> upload_;
  const uint64_t base_;
  const std::string path_;
  mutable Mutex mutex_;
  Spool spool_;
  uint64_t size_ ABSL_GUARDED_BY(mutex_) = 0, sent_ ABSL_GUARDED_BY(mutex_) = 0;
  bool changed_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  Status broken_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

Spool::~Spool() {
  if (fd_ >= 0) close(fd_);
}

Status Spool::Open() {
  const std::string folder = SpoolFolder();
#ifdef O_TMPFILE
  fd_ = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
#endif
  if (fd_ >= 0) return OkStatus();
  std::string name = folder + "/headrace-XXXXXX";
  fd_ = mkostemp(name.data(), O_CLOEXEC);
  if (fd_ < 0) {
    return ErrnoStatus(errno, absl::StrCat("a file in ", folder, " (TMPDIR)"));
  }
  unlink(name.c_str());
  return OkStatus();
}

Status Spool::Write(uint64_t offset, StringView data) {
  while (!data.empty()) {
    const ssize_t n =
        pwrite(fd_, data.data(), std::min(data.size(), kMostAtOnce),
               static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      return ErrnoStatus(
          errno, absl::StrCat("a file in ", SpoolFolder(), " (TMPDIR)"));
    }
    offset += n;
    data.remove_prefix(n);
  }
  return OkStatus();
}

Status Spool::Read(uint64_t offset, absl::Span<char> out) const {
  while (!out.empty()) {
    const ssize_t n = pread(fd_, out.data(), std::min(out.size(), kMostAtOnce),
                            static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, "a file that is to be sent");
    if (n == 0) return Internal("a file that is to be sent has lost its end");
    offset += n;
    out.remove_prefix(n);
  }
  return OkStatus();
}

StatusOr<std::unique_ptr<WritableFile>> NewSpooledWriter(
    std::unique_ptr<Upload> upload, uint64_t base, std::string path,
    bool unsent) {
  auto writer = std::make_unique<SpooledWriter>(std::move(upload), base,
                                                std::move(path), unsent);
  HR_RETURN_IF_ERROR(writer->Open());
  return writer;
}

}  // namespace headrace
