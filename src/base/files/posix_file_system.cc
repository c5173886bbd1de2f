// Files of this machine, by plain system calls.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/escaping.h"
#include "base/files/file_system.h"
#include "base/files/posix_writer.h"
#include "base/files/system_path.h"
#include "base/sandbox.h"
#include "base/thread_pool.h"

namespace headrace {
namespace {

// The most that one call moves: the kernel stops at 2 GiB anyway.
constexpr size_t kMostAtOnce = size_t{1} << 30;

// Bytes; above the 128 KiB that Linux reads ahead by itself.
constexpr size_t kLongRead = 256 << 10;

class PosixReader : public RandomAccessFile {
 public:
  PosixReader(int fd, uint64_t size, std::string path)
      : fd_(fd), size_(size), path_(std::move(path)) {}
  ~PosixReader() override { close(fd_); }

  StatusOr<size_t> ReadSome(uint64_t offset,
                            absl::Span<char> out) const override {
    if (offset > INT64_MAX - out.size()) {
      return OutOfRange(path_, ": no file has an offset of ", offset);
    }
    Announce(offset, out.size());
    size_t done = 0;
    while (done < out.size()) {
      const ssize_t n = pread(fd_, out.data() + done,
                              std::min(out.size() - done, kMostAtOnce),
                              static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return ErrnoStatus(errno, path_);
      if (n == 0) break;
      done += n;
    }
    return done;
  }
  uint64_t size() const override { return size_; }
  const std::string& path() const override { return path_; }

 private:
  // The kernel reads ahead of a reader by little; of long reads it may begin
  // all at once.
  void Announce(uint64_t offset, size_t size) const {
#ifdef POSIX_FADV_WILLNEED
    if (size < kLongRead) return;
    (void)posix_fadvise(fd_, static_cast<off_t>(offset),
                        static_cast<off_t>(size), POSIX_FADV_WILLNEED);
#endif
  }

  const int fd_;
  const uint64_t size_;
  const std::string path_;
};

// Whether a file has an end and can be read at any place. Terminals and the
// like never end, pipes wait for who writes; the empty device is an empty file.
bool CanBeRead(const struct stat& s) {
  if (S_ISCHR(s.st_mode)) return s.st_rdev == makedev(1, 3);
  return !S_ISFIFO(s.st_mode) && !S_ISSOCK(s.st_mode);
}

// An open descriptor of a file that is not a folder, and its size.
StatusOr<std::pair<int, uint64_t>> OpenFile(const std::string& path,
                                            int flags) {
  HR_RETURN_IF_ERROR(CheckSandboxFile(path, (flags & O_ACCMODE) != O_RDONLY));
  HR_ASSIGN_OR_RETURN(const char* name, SystemPath(path));
  // Opening a pipe would wait for its other end.
  const int fd = open(name, flags | O_CLOEXEC | O_NONBLOCK, 0644);
  if (fd < 0) return ErrnoStatus(errno, path);
  struct stat s;
  int error = fstat(fd, &s) == 0 ? 0 : errno;
  if (error == 0 && S_ISDIR(s.st_mode)) error = EISDIR;
  const bool writes = (flags & O_ACCMODE) != O_RDONLY;
  // Opened without waiting; writes to a pipe are to wait for its reader again.
  if (error == 0 && writes && !S_ISREG(s.st_mode) &&
      fcntl(fd, F_SETFL, flags & O_APPEND) != 0) {
    error = errno;
  }
  if (error == 0 && (writes || CanBeRead(s))) {
    return std::make_pair(fd, static_cast<uint64_t>(s.st_size));
  }
  close(fd);
  if (error != 0) return ErrnoStatus(error, path);
  return InvalidArgument(path, " is a pipe or a device, not a file to read");
}

// The last reference to a large file that is about to lose its name: giving its
// pages back takes as long as writing them, and happens on another thread.
class LateRelease {
 public:
  explicit LateRelease(const char* path) {
    struct stat s;
    if (lstat(path, &s) != 0 || !S_ISREG(s.st_mode)) return;
    if (s.st_size < kLargeFile) return;
    fd_ = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  }
  ~LateRelease() {
    if (fd_ >= 0) Schedule([fd = fd_] { close(fd); });
  }
  LateRelease(const LateRelease&) = delete;
  LateRelease& operator=(const LateRelease&) = delete;

 private:
  // Giving back the pages of 16 MiB takes half a millisecond; smaller files are
  // not worth a job.
  static constexpr off_t kLargeFile = 16 << 20;
  int fd_ = -1;
};

Status Result(int returned, const std::string& path) {
  return returned == 0 ? OkStatus() : ErrnoStatus(errno, path);
}

class Posix : public FileSystem {
 public:
  StatusOr<std::unique_ptr<RandomAccessFile>> OpenToRead(
      const std::string& path) override {
    HR_ASSIGN_OR_RETURN(auto file, OpenFile(path, O_RDONLY));
    return std::make_unique<PosixReader>(file.first, file.second, path);
  }

  StatusOr<std::unique_ptr<WritableFile>> OpenToWrite(const std::string& path,
                                                      WriteMode mode) override {
    int flags = O_WRONLY | O_CREAT;
    if (mode == WriteMode::kTruncate) flags |= O_TRUNC;
    if (mode == WriteMode::kCreateNew) flags |= O_EXCL;
    HR_ASSIGN_OR_RETURN(auto file, OpenFile(path, flags));
    return NewPosixWriter(file.first, file.second, path);
  }

  StatusOr<FileStat> Stat(const std::string& path) override {
    HR_RETURN_IF_ERROR(CheckSandboxFile(path, /*write=*/false));
    HR_ASSIGN_OR_RETURN(const char* name, SystemPath(path));
    struct stat s;
    if (stat(name, &s) != 0) return ErrnoStatus(errno, path);
    FileStat out;
    out.is_directory = S_ISDIR(s.st_mode);
    out.size = out.is_directory ? 0 : s.st_size;
    out.mtime_ns = s.st_mtim.tv_sec * int64_t{1000000000} + s.st_mtim.tv_nsec;
    return out;
  }

  Status Rename(const std::string& from, const std::string& to) override {
    HR_RETURN_IF_ERROR(CheckSandboxFile(from, /*write=*/true));
    HR_RETURN_IF_ERROR(CheckSandboxFile(to, /*write=*/true));
    HR_ASSIGN_OR_RETURN(const char* old_name, SystemPath(from));
    HR_ASSIGN_OR_RETURN(const char* new_name, SystemPath(to));
    const LateRelease replaced(new_name);
    if (rename(old_name, new_name) == 0) return OkStatus();
    return ErrnoStatus(errno, absl::StrCat(from, " -> ", to));
  }

  Status Delete(const std::string& path) override {
    HR_RETURN_IF_ERROR(CheckSandboxFile(path, /*write=*/true));
    HR_ASSIGN_OR_RETURN(const char* name, SystemPath(path));
    const LateRelease deleted(name);
    return Result(unlink(name), path);
  }

  Status CreateDirectory(const std::string& path) override {
    HR_RETURN_IF_ERROR(CheckSandboxFile(path, /*write=*/true));
    HR_ASSIGN_OR_RETURN(const char* name, SystemPath(path));
    return Result(mkdir(name, 0755), path);
  }

  Status DeleteDirectory(const std::string& path) override {
    HR_RETURN_IF_ERROR(CheckSandboxFile(path, /*write=*/true));
    HR_ASSIGN_OR_RETURN(const char* name, SystemPath(path));
    return Result(rmdir(name), path);
  }

  StatusOr<std::vector<std::string>> List(const std::string& path) override {
    HR_RETURN_IF_ERROR(CheckSandboxFile(path, /*write=*/false));
    HR_ASSIGN_OR_RETURN(const char* folder_name, SystemPath(path));
    DIR* const folder = opendir(folder_name);
    if (folder == nullptr) return ErrnoStatus(errno, path);
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = readdir(folder)) {
      const StringView name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
    const int error = errno;
    closedir(folder);
    if (error != 0) return ErrnoStatus(error, path);
    // The system's order differs from run to run.
    std::sort(names.begin(), names.end());
    return names;
  }

  Status SyncDirectory(const std::string& path) override {
    if (!WaitsForDisk()) return OkStatus();
    HR_ASSIGN_OR_RETURN(const char* folder, SystemPath(path));
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return ErrnoStatus(errno, path);
    // Some file systems cannot, and say EINVAL; nothing can be done there.
    const Status status = fsync(fd) == 0 || errno == EINVAL
                              ? OkStatus()
                              : ErrnoStatus(errno, path);
    close(fd);
    return status;
  }
};

}  // namespace

StatusOr<const char*> SystemPath(const std::string& path) {
  if (path.find('\0') == std::string::npos) return path.c_str();
  return InvalidArgument("a path must not have NUL characters: \"",
                         absl::CEscape(path), "\"");
}

FileSystem* PosixFileSystem() {
  static FileSystem* const fs = new Posix;
  return fs;
}

}  // namespace headrace
