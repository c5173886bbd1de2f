// Files that lie in the memory of this process: what ram:// paths mean, and
// for tests. Behaves as the machine's file system does, except that folders
// need not be made first: a file's folders come with it. Relative and absolute
// paths are different names; "//" and a trailing "/" count as one and none.
// Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/files/file_system.h"
#include "base/mutex.h"

namespace headrace {

class MemoryFileSystem : public FileSystem {
 public:
  // The bytes of one file; open files keep them alive.
  struct Content {
    Mutex mutex;
    std::string bytes ABSL_GUARDED_BY(mutex);
    int64_t mtime_ns ABSL_GUARDED_BY(mutex) = 0;
  };

  StatusOr<std::unique_ptr<RandomAccessFile>> OpenToRead(
      const std::string& path) override;
  StatusOr<std::unique_ptr<WritableFile>> OpenToWrite(const std::string& path,
                                                      WriteMode mode) override;
  StatusOr<FileStat> Stat(const std::string& path) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status Delete(const std::string& path) override;
  Status CreateDirectory(const std::string& path) override;
  Status DeleteDirectory(const std::string& path) override;
  StatusOr<std::vector<std::string>> List(const std::string& path) override;
  Status SyncDirectory(const std::string& path) override;

 private:
  StatusOr<std::shared_ptr<Content>> Find(const std::string& path);
  bool IsFolder(const std::string& path) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddParents(const std::string& path)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  std::map<std::string, std::shared_ptr<Content>> files_
      ABSL_GUARDED_BY(mutex_);
  std::set<std::string> folders_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace headrace
