// Several checkpoints into one: what a sharded save ends with.
#include "base/files/files.h"
#include "formats/checkpoint_install.h"
#include "formats/checkpoint_writer.h"
#include "formats/table.h"
#include "formats/version_check.h"
#include "tensorflow/core/framework/versions.pb.h"
#include "tensorflow/core/protobuf/tensor_bundle.pb.h"

namespace headrace {
namespace {

using Entry = tensorflow::BundleEntryProto;

struct Merged {
  std::map<std::string, Entry> entries;
  std::vector<std::string> data;  // files, by shard of the merged checkpoint
  tensorflow::VersionDef versions;
};

// Adds one entry, its shard already renumbered.
Status AddEntry(const std::string& key, Entry entry, Merged* merged) {
  const auto [at, added] = merged->entries.try_emplace(key, std::move(entry));
  if (added) return OkStatus();
  Entry& present = at->second;
  // Slices of one tensor may come from several sources; whole tensors may not.
  if (entry.slices().empty() || present.slices().empty()) {
    return InvalidArgument("Merging checkpoints: duplicate key ", key);
  }
  if (present.dtype() != entry.dtype() ||
      present.shape().SerializeAsString() !=
          entry.shape().SerializeAsString()) {
    return InvalidArgument("Merging checkpoints: slices of ", key,
                           " do not agree on dtype and shape");
  }
  for (auto& slice : *entry.mutable_slices()) {
    *present.add_slices() = std::move(slice);
  }
  return OkStatus();
}

Status AddSource(FileSystem* fs, const std::string& prefix, Merged* merged) {
  HR_ASSIGN_OR_RETURN(auto file, fs->OpenToRead(CheckpointIndexPath(prefix)));
  HR_ASSIGN_OR_RETURN(auto table, TableReader::Open(std::move(file)));
  const int first = static_cast<int>(merged->data.size());
  int shards = -1;
  HR_RETURN_IF_ERROR(table->Scan([&](StringView key, StringView value) {
    const auto bad = [&] { return DataLoss(table->path(), ": bad entry"); };
    if (shards < 0) {
      tensorflow::BundleHeaderProto header;
      if (!key.empty() || !header.ParseFromArray(value.data(), value.size()) ||
          header.num_shards() < 0 ||
          // Numbers from files, for which places are made: all together stay
          // below the limit.
          header.num_shards() > kMostShards - first) {
        return bad();
      }
      shards = header.num_shards();
      merged->versions = header.version();
      return CheckVersions(header.version(), 1, 0, "Checkpoint", "checkpoint");
    }
    Entry entry;
    if (!entry.ParseFromArray(value.data(), value.size()) ||
        entry.shard_id() < 0 || entry.shard_id() >= shards) {
      return bad();
    }
    // The data files of all sources are counted through.
    entry.set_shard_id(entry.shard_id() + first);
    return AddEntry(std::string(key), std::move(entry), merged);
  }));
  if (shards < 0) return DataLoss(table->path(), ": no header");
  for (int i = 0; i < shards; ++i) {
    merged->data.push_back(CheckpointDataPath(prefix, i, shards));
  }
  return OkStatus();
}

// As a new file; the data files are numbers `first`.. of `num_shards`.
Status WriteIndex(FileSystem* fs, const std::string& path, const Merged& merged,
                  int first, int num_shards, bool sync) {
  HR_ASSIGN_OR_RETURN(auto file, fs->OpenToWrite(path, WriteMode::kCreateNew));
  TableWriter table(file.get());
  tensorflow::BundleHeaderProto header;
  header.set_num_shards(num_shards);
  *header.mutable_version() = merged.versions;
  HR_RETURN_IF_ERROR(table.Add("", header.SerializeAsString()));
  // Tables want their keys in order, which a map has.
  for (const auto& [key, entry] : merged.entries) {
    Entry moved = entry;
    // An entry of slices lies in no shard itself; its pieces do.
    if (entry.slices().empty()) moved.set_shard_id(entry.shard_id() + first);
    HR_RETURN_IF_ERROR(table.Add(key, moved.SerializeAsString()));
  }
  HR_RETURN_IF_ERROR(table.Finish());
  if (sync) HR_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

}  // namespace

Status MergeCheckpoints(FileSystem* fs, absl::Span<const std::string> prefixes,
                        const std::string& merged_prefix, bool allow_missing,
                        bool sync) {
  Merged merged;
  std::vector<std::string> sources;
  for (const std::string& prefix : prefixes) {
    const Status status = AddSource(fs, prefix, &merged);
    // A process that had nothing to save wrote no files.
    if (allow_missing && absl::IsNotFound(status)) continue;
    HR_RETURN_IF_ERROR(status);
    sources.push_back(prefix);
  }
  if (sources.empty()) {
    return InvalidArgument("Merging checkpoints: no source for ",
                           merged_prefix);
  }
  HR_RETURN_IF_ERROR(InstallCheckpoint(
      fs, merged_prefix, merged.data,
      [&](const std::string& path, int first, int num_shards) {
        return WriteIndex(fs, path, merged, first, num_shards, sync);
      },
      sync));
  // The data files were renamed away; the index files alone are left. One
  // source may have the merged name itself.
  for (const std::string& source : sources) {
    if (source == merged_prefix) continue;
    HR_RETURN_IF_ERROR(fs->Delete(CheckpointIndexPath(source)));
  }
  if (!sync) return OkStatus();
  const StringView folder = DirName(merged_prefix);
  return fs->SyncDirectory(folder.empty() ? "." : std::string(folder));
}

}  // namespace headrace
