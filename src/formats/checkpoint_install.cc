#include "formats/checkpoint_install.h"

#include <unistd.h>

#include <set>
#include <tuple>

#include "base/files/files.h"
#include "base/mutex.h"
#include "formats/checkpoint_writer.h"
#include "formats/table.h"
#include "tensorflow/core/protobuf/tensor_bundle.pb.h"

namespace headrace {
namespace {

// How many data files the checkpoint there has: 0 when there is none, or none
// that can be read.
int ShardsThere(FileSystem* fs, const std::string& prefix) {
  auto file = fs->OpenToRead(CheckpointIndexPath(prefix));
  if (!file.ok()) return 0;
  const auto table = TableReader::Open(*std::move(file));
  if (!table.ok()) return 0;
  const auto bytes = (*table)->Get("");
  tensorflow::BundleHeaderProto header;
  if (!bytes.ok() || !header.ParseFromString(*bytes)) return 0;
  return header.num_shards();
}

// While it lives, nobody else of this process installs a checkpoint under this
// prefix: two at a time would delete and rename each other's files.
class PrefixHold {
 public:
  // The process is part of the key, as the child of a fork has copies of holds
  // whose threads it has not.
  PrefixHold(FileSystem* fs, const std::string& prefix)
      : key_(getpid(), fs, prefix) {
    MutexLock lock(mutex_);
    while (!held_.insert(key_).second) changed_.Wait(mutex_);
  }
  ~PrefixHold() {
    MutexLock lock(mutex_);
    held_.erase(key_);
    changed_.NotifyAll();
  }
  PrefixHold(const PrefixHold&) = delete;
  PrefixHold& operator=(const PrefixHold&) = delete;

 private:
  using Key = std::tuple<pid_t, FileSystem*, std::string>;
  static inline Mutex mutex_;
  static inline CondVar changed_;
  static inline std::set<Key> held_ ABSL_GUARDED_BY(mutex_);
  const Key key_;
};

class Installer {
 public:
  Installer(FileSystem* fs, const std::string& prefix, bool sync)
      : fs_(fs), prefix_(prefix), sync_(sync) {}

  // Renames `from` to data files [first, first + from.size()) of `shards`.
  Status PlaceData(const std::vector<std::string>& from, int first,
                   int shards) {
    for (size_t i = 0; i < from.size(); ++i) {
      std::string to =
          CheckpointDataPath(prefix_, first + static_cast<int>(i), shards);
      const Status status = fs_->Rename(from[i], to);
      if (!status.ok()) {
        DeletePlaced();
        return status;
      }
      placed_.push_back(std::move(to));
    }
    // A name is safe only when its folder is on the disk.
    return SyncFolder();
  }
  // From here on the checkpoint is what `write` says.
  Status PlaceIndex(IndexWriter write, int first, int shards) {
    const std::string temporary =
        TemporaryNameFor(CheckpointIndexPath(prefix_));
    Status status = write(temporary, first, shards);
    if (status.ok()) {
      status = fs_->Rename(temporary, CheckpointIndexPath(prefix_));
    }
    if (!status.ok()) {
      fs_->Delete(temporary).IgnoreError();
      DeletePlaced();
      return status;
    }
    // The files belong to a checkpoint now and are not deleted any more.
    placed_.clear();
    return SyncFolder();
  }
  // Data files that no index names any more; that they are gone is no error.
  void DeleteData(int first, int count, int shards) {
    for (int i = first; i < first + count; ++i) {
      fs_->Delete(CheckpointDataPath(prefix_, i, shards)).IgnoreError();
    }
  }

 private:
  Status SyncFolder() {
    if (!sync_) return OkStatus();
    const StringView folder = DirName(prefix_);
    return fs_->SyncDirectory(folder.empty() ? "." : std::string(folder));
  }
  void DeletePlaced() {
    for (const std::string& path : placed_) fs_->Delete(path).IgnoreError();
    placed_.clear();
  }

  FileSystem* const fs_;
  const std::string prefix_;
  const bool sync_;
  std::vector<std::string> placed_;  // not yet part of a checkpoint
};

}  // namespace

Status InstallCheckpoint(FileSystem* fs, const std::string& prefix,
                         const std::vector<std::string>& data,
                         IndexWriter write_index, bool sync) {
  const PrefixHold hold(fs, prefix);
  Installer installer(fs, prefix, sync);
  const int shards = static_cast<int>(data.size());
  const int old = ShardsThere(fs, prefix);
  // Another number of shards means other names, so the new files can lie beside
  // the old ones until the index changes in one step.
  if (old != shards) {
    HR_RETURN_IF_ERROR(installer.PlaceData(data, 0, shards));
    HR_RETURN_IF_ERROR(installer.PlaceIndex(write_index, 0, shards));
    installer.DeleteData(0, old, old);
    return OkStatus();
  }
  // The second names are links to the first ones, so that both indexes hold.
  const int more = shards + 1;
  HR_RETURN_IF_ERROR(installer.PlaceData(data, 1, more));
  HR_RETURN_IF_ERROR(installer.PlaceIndex(write_index, 1, more));
  std::vector<std::string> links;
  for (int i = 0; i < shards; ++i) {
    links.push_back(TemporaryNameFor(CheckpointDataPath(prefix, i, shards)));
    const Status linked = LinkOrCopyFile(
        fs, CheckpointDataPath(prefix, i + 1, more), links.back());
    if (linked.ok()) continue;
    for (const std::string& link : links) fs->Delete(link).IgnoreError();
    return linked;  // the new checkpoint stands, under its longer names
  }
  HR_RETURN_IF_ERROR(installer.PlaceData(links, 0, shards));
  HR_RETURN_IF_ERROR(installer.PlaceIndex(write_index, 0, shards));
  installer.DeleteData(1, shards, more);
  return OkStatus();
}

}  // namespace headrace
