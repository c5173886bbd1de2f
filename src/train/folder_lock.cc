#include "train/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/files/system_path.h"
#include "base/fork_mutex.h"
#include "base/mutex.h"

namespace headrace {
namespace {

using FolderId = std::pair<dev_t, ino_t>;

// The locks of this process by folder.
struct Held {
  ProcessMutex mutex;
  std::map<FolderId, std::weak_ptr<FolderLock>> locks ABSL_GUARDED_BY(mutex);
};

Held& AllHeld() {
  static Held* const held = new Held;
  return *held;
}

}  // namespace

FolderLock::~FolderLock() {
  if (fd_ >= 0) close(fd_);
}

StatusOr<std::shared_ptr<FolderLock>> FolderLock::Take(
    FileSystem* fs, const std::string& folder) {
  const auto unguarded = [] {
    return std::shared_ptr<FolderLock>(new FolderLock(-1));
  };
  if (fs != PosixFileSystem()) return unguarded();
  const std::string path = folder.empty() ? "." : folder;
  HR_ASSIGN_OR_RETURN(const char* name, SystemPath(path));
  const int fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, path);
  struct stat s;
  if (fstat(fd, &s) != 0) {
    const int error = errno;
    close(fd);
    return ErrnoStatus(error, path);
  }
  Held& held = AllHeld();
  const MutexLock guard(held.mutex);
  std::weak_ptr<FolderLock>& known = held.locks[{s.st_dev, s.st_ino}];
  if (auto lock = known.lock()) {
    close(fd);
    return lock;
  }
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    close(fd);
    if (error != EWOULDBLOCK) return unguarded();
    return FailedPrecondition(
        "another process is saving checkpoints into ", path,
        "; two writers in one folder would delete each other's checkpoints");
  }
  std::shared_ptr<FolderLock> lock(new FolderLock(fd));
  known = lock;
  return lock;
}

}  // namespace headrace
