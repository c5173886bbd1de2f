// Elements in folders, as upstream lays them out:
//
//   FOLDER/snapshot.metadata      a SnapshotMetadataRecord, written last
//   FOLDER/RUN/SHARD.shard/FILE.snapshot
//
// SHARD and FILE are numbers of eight digits. The files are records
// (formats/records.h), one a component of an element: a serialised TensorProto.
// A walk that is saved in its middle ends all files; what follows lies in files
// of the next number.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/files/file_system.h"
#include "data/dataset.h"
#include "formats/records.h"

namespace headrace {

// What snapshot.metadata says.
struct SavedRun {
  std::string graph_hash;  // "" where the folder is of one pipeline only
  std::string run_id;
  std::vector<DType> types;
  int64_t num_elements = kUnknownCardinality;
  bool finalized = false;
};

// Replaces the metadata of a folder at once.
Status WriteRun(FileSystem* fs, const std::string& folder, const SavedRun& run);
// NotFound in folders without metadata; DataLoss where they are damaged.
StatusOr<SavedRun> ReadRun(FileSystem* fs, const std::string& folder);
// The name of a new run: a random number of 64 bits.
std::string NewRunId();

// The files of a run that are being written. Not thread-safe.
class ShardWriters {
 public:
  // Makes the folder of the run. The first files bear the number `file`.
  static StatusOr<std::unique_ptr<ShardWriters>> Create(FileSystem* fs,
                                                        std::string run_folder,
                                                        Compression compression,
                                                        int64_t file);
  // InvalidArgument for negative shards.
  Status Write(int64_t shard, const Element& element);
  // Ends all files, so that readers see all that was written; what follows
  // goes into files of the next number.
  Status Checkpoint();
  int64_t file() const { return file_; }

 private:
  struct Shard {
    std::unique_ptr<WritableFile> file;
    std::unique_ptr<RecordWriter> writer;
  };
  ShardWriters(FileSystem* fs, std::string folder, Compression compression,
               int64_t file)
      : fs_(fs),
        folder_(std::move(folder)),
        compression_(compression),
        file_(file) {}
  StatusOr<Shard*> Open(int64_t shard);

  FileSystem* const fs_;
  const std::string folder_;
  const Compression compression_;
  int64_t file_;
  std::map<int64_t, Shard> shards_;
};

// The name of file number `n` of a shard's folder.
std::string ShardFile(const std::string& shard_folder, int64_t n);

// The elements of one shard: SnapshotDatasetReader. The folder's files are read
// in the order of their numbers.
class ShardDataset : public Dataset {
 public:
  ShardDataset(ElementSpec spec, std::string folder, std::string compression)
      : Dataset(std::move(spec)),
        folder_(std::move(folder)),
        compression_(std::move(compression)) {}
  StringView kind() const override { return "SnapshotDatasetReader"; }
  const std::string& folder() const { return folder_; }
  // As upstream names it: "", "GZIP", "SNAPPY".
  const std::string& compression() const { return compression_; }

 protected:
  IteratorPtr NewIterator(std::string prefix) const override;

 private:
  const std::string folder_;
  const std::string compression_;
};

// A dataset of the shards of a run, each a ShardDataset of such elements.
// NotFound when there are none.
StatusOr<DatasetPtr> ShardsOf(const ElementSpec& spec,
                              const std::string& run_folder,
                              const std::string& compression);

}  // namespace headrace
