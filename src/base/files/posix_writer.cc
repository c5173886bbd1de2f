#include "base/files/posix_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "base/allocator.h"
#include "base/guard.h"

namespace headrace {
namespace {

// Past the page cache go whole blocks of the file, from memory that lies at a
// multiple of what devices ask for.
constexpr uint64_t kFileBlock = WritableFile::kBlock;
// The smallest block of disks; those that want 4 KiB refuse once (EINVAL) and
// are written through the page cache.
constexpr uint64_t kMemoryBlock = 512;
// What is not aligned in memory is copied in pieces of this size.
// Half a megabyte stays in a core's cache and is as fast as larger writes.
constexpr size_t kStagedBytes = 512 << 10;

class Writer : public WritableFile {
 public:
  Writer(int fd, uint64_t size, std::string path)
      : fd_(fd), size_(size), path_(std::move(path)) {}
  ~Writer() override {
    Guarded("closing a file", [this] { return CloseAll(); }).IgnoreError();
  }

  Status Append(StringView data) override { return WriteAt(size_, data); }

  Status WriteAt(uint64_t offset, StringView data) override {
    HR_RETURN_IF_ERROR(Check(offset, data.size()));
    return WriteCached(offset, data);
  }

  Status WriteThrough(uint64_t offset, StringView data) override {
    HR_RETURN_IF_ERROR(Check(offset, data.size()));
    const uint64_t end = offset + data.size();
    const uint64_t first = (offset + kFileBlock - 1) / kFileBlock * kFileBlock;
    const uint64_t last = end / kFileBlock * kFileBlock;
    if (first >= last || !OpenDirect()) return WriteCached(offset, data);
    HR_RETURN_IF_ERROR(WriteCached(offset, data.substr(0, first - offset)));
    HR_RETURN_IF_ERROR(
        WriteBlocks(first, data.substr(first - offset, last - first)));
    return WriteCached(last, data.substr(last - offset));
  }

  // Blocks that are there before the pages: the kernel neither looks for them
  // page by page nor, as ext4 does, at the rename over another file. Inside
  // the file's size writes past the page cache need not wait for one another.
  void Reserve(uint64_t offset, uint64_t size) override {
#if defined(__linux__)
    if (fd_ < 0 || size == 0 || offset > INT64_MAX ||
        size > INT64_MAX - offset) {
      return;
    }
    // A file system that cannot says so at the write, if it matters.
    if (fallocate(fd_, 0, static_cast<off_t>(offset),
                  static_cast<off_t>(size)) == 0) {
      reserved_ = std::max(reserved_, offset + size);
    }
#endif
  }

  Status Sync() override {
    if (fd_ < 0) return Closed();
    if (WaitsForDisk() && fsync(fd_) != 0) return ErrnoStatus(errno, path_);
    return OkStatus();
  }

  uint64_t size() const override { return size_; }

  Status Close() override {
    if (fd_ < 0) return OkStatus();
    return CloseAll();
  }

 private:
  Status Closed() const {
    return FailedPrecondition(path_, ": the file is closed");
  }
  Status Check(uint64_t offset, size_t size) const {
    if (fd_ < 0) return Closed();
    if (offset > INT64_MAX || size > INT64_MAX - offset) {
      return OutOfRange(path_, ": no file has an offset of ", offset);
    }
    return OkStatus();
  }

  Status WriteCached(uint64_t offset, StringView data) {
    if (data.empty()) return OkStatus();
    const uint64_t end = offset + data.size();
    while (!data.empty()) {
      const ssize_t n =
          pwrite(fd_, data.data(), std::min(data.size(), kMostAtOnce),
                 static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return ErrnoStatus(errno, path_);
      offset += n;
      data.remove_prefix(n);
    }
    Grow(end);
    return OkStatus();
  }

  // Whether there is a descriptor whose writes pass the page cache.
  bool OpenDirect() {
#ifdef O_DIRECT
    std::call_once(direct_once_, [this] {
      if (!WaitsForDisk()) return;  // then the page cache is the faster one
      // The name may stand for another file by now; this one does not.
      const std::string self = absl::StrCat("/proc/self/fd/", fd_);
      direct_fd_ = open(self.c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC);
    });
#endif
    return direct_fd_ >= 0 && !direct_refused_;
  }

  Status WriteBlocks(uint64_t offset, StringView data) {
    if (reinterpret_cast<uintptr_t>(data.data()) % kMemoryBlock == 0) {
      return WriteDirect(offset, data);
    }
    // The allocator's large blocks lie at multiples of a page.
    void* const copy = AllocateMemory(kStagedBytes);
    if (copy == nullptr) return WriteCached(offset, data);
    Status status;
    while (!data.empty() && status.ok()) {
      const StringView part = data.substr(0, kStagedBytes);
      std::memcpy(copy, part.data(), part.size());
      status = WriteDirect(offset,
                           StringView(static_cast<char*>(copy), part.size()));
      offset += part.size();
      data.remove_prefix(part.size());
    }
    FreeMemory(copy, kStagedBytes);
    return status;
  }

  Status WriteDirect(uint64_t offset, StringView data) {
    while (!data.empty() && !direct_refused_) {
      const ssize_t n =
          pwrite(direct_fd_, data.data(), std::min(data.size(), kMostAtOnce),
                 static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno != EINVAL) return ErrnoStatus(errno, path_);
      // A device that wants larger blocks, or a file system that wrote a part.
      if (n <= 0 || n % kFileBlock != 0) direct_refused_ = true;
      if (n <= 0) break;
      offset += n;
      data.remove_prefix(n);
      Grow(offset);
    }
    return WriteCached(offset, data);
  }

  void Grow(uint64_t end) {
    uint64_t size = size_.load(std::memory_order_relaxed);
    // Several threads write parts of one file: the greatest end counts.
    while (size < end && !size_.compare_exchange_weak(size, end)) {
    }
  }

  Status CloseAll() {
    Status status;
    const auto note = [&](int failed) {
      if (failed != 0 && status.ok()) status = ErrnoStatus(errno, path_);
    };
    if (direct_fd_ >= 0) note(close(direct_fd_));
    if (fd_ >= 0 && reserved_ > size_) {
      // Reserved blocks that nothing was written to would count as zeros of the
      // file.
      note(ftruncate(fd_, static_cast<off_t>(size_.load())));
    }
    if (fd_ >= 0) note(close(fd_));
    fd_ = direct_fd_ = -1;
    return status;
  }

  int fd_;
  std::atomic<uint64_t> size_;
  uint64_t reserved_ = 0;  // where the longest reservation ends
  std::once_flag direct_once_;
  int direct_fd_ = -1;
  std::atomic<bool> direct_refused_ = false;
  const std::string path_;
};

}  // namespace

bool WaitsForDisk() {
  const char* text = std::getenv("HEADRACE_SYNC");
  return text == nullptr || StringView(text) != "0";
}

std::unique_ptr<WritableFile> NewPosixWriter(int fd, uint64_t size,
                                             std::string path) {
  return std::make_unique<Writer>(fd, size, std::move(path));
}

}  // namespace headrace
