// Tells two processes apart that rotate the checkpoints of one folder: each
// would delete the other's.
#pragma once

#include <memory>
#include <string>

#include "base/files/file_system.h"

namespace headrace {

// Held while this process rotates a folder's checkpoints. It is the system's
// advisory lock on the folder itself: no file is made, and the end of the
// process, however it ends, lets it go. Holders of one process share it.
// Thread-safe.
class FolderLock {
 public:
  // FailedPrecondition when another process holds the folder's lock. Folders
  // that are not on this machine's file system, or on one without locks, are
  // not guarded.
  static StatusOr<std::shared_ptr<FolderLock>> Take(FileSystem* fs,
                                                    const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;

 private:
  explicit FolderLock(int fd) : fd_(fd) {}
  const int fd_;  // -1: not guarded
};

}  // namespace headrace
