#include "data/saved_run.h"

#include <chrono>
#include <random>

#include "absl/strings/str_format.h"
#include "base/files/files.h"
#include "tensor/tensor_proto.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/protobuf/snapshot.pb.h"

namespace headrace {
namespace {

using tensorflow::data::experimental::SnapshotMetadataRecord;

// Of upstream's layout: 2 is that of elements in TFRecord files.
constexpr int64_t kVersion = 2;

std::string MetadataOf(const std::string& folder) {
  return JoinPath(folder, "snapshot.metadata");
}

}  // namespace

Status WriteRun(FileSystem* fs, const std::string& folder,
                const SavedRun& run) {
  SnapshotMetadataRecord record;
  record.set_graph_hash(run.graph_hash);
  record.set_run_id(run.run_id);
  record.set_creation_timestamp(
      std::chrono::duration_cast<std::chrono::microseconds>(
          std::chrono::system_clock::now().time_since_epoch())
          .count());
  record.set_version(kVersion);
  for (const DType t : run.types) {
    record.add_dtype(static_cast<tensorflow::DataType>(static_cast<int>(t)));
  }
  if (run.num_elements >= 0) record.set_num_elements(run.num_elements);
  record.set_finalized(run.finalized);
  // Readers see the old record or the new one, never a part of it.
  return WriteFileAtomically(fs, MetadataOf(folder),
                             record.SerializeAsString());
}

StatusOr<SavedRun> ReadRun(FileSystem* fs, const std::string& folder) {
  HR_ASSIGN_OR_RETURN(const std::string bytes,
                      ReadWholeFile(fs, MetadataOf(folder)));
  SnapshotMetadataRecord record;
  const bool read = record.ParseFromString(bytes);
  // The name of a run is the name of a folder, and of none elsewhere.
  const std::string& id = record.run_id();
  if (!read || id.empty() || id.find('/') != std::string::npos || id == "..") {
    return DataLoss(MetadataOf(folder), " is damaged");
  }
  if (record.version() < 0 || record.version() > kVersion) {
    return Unimplemented(MetadataOf(folder), " is of version ",
                         record.version());
  }
  SavedRun run;
  run.graph_hash = record.graph_hash();
  run.run_id = id;
  for (const int t : record.dtype()) {
    if (!DTypeIsValid(t)) return DataLoss(MetadataOf(folder), " is damaged");
    run.types.push_back(static_cast<DType>(t));
  }
  // A forged count below -2 would mean nothing.
  run.num_elements =
      std::max<int64_t>(record.num_elements(), kUnknownCardinality);
  run.finalized = record.finalized();
  return run;
}

std::string NewRunId() {
  // Random, as several processes may write beside one another.
  std::random_device device;
  return absl::StrCat(uint64_t{device()} << 32 | device());
}

std::string ShardFile(const std::string& shard_folder, int64_t n) {
  return JoinPath(shard_folder, absl::StrFormat("%08d.snapshot", n));
}

StatusOr<std::unique_ptr<ShardWriters>> ShardWriters::Create(
    FileSystem* fs, std::string run_folder, Compression compression,
    int64_t file) {
  HR_RETURN_IF_ERROR(CreateDirectories(fs, run_folder));
  return std::unique_ptr<ShardWriters>(
      new ShardWriters(fs, std::move(run_folder), compression, file));
}

StatusOr<ShardWriters::Shard*> ShardWriters::Open(int64_t shard) {
  if (const auto at = shards_.find(shard); at != shards_.end()) {
    return &at->second;
  }
  if (shard < 0) {
    return InvalidArgument("`shard_func` gave the shard ", shard,
                           ", which is negative");
  }
  const std::string folder =
      JoinPath(folder_, absl::StrFormat("%08d.shard", shard));
  HR_RETURN_IF_ERROR(CreateDirectories(fs_, folder));
  Shard made;
  HR_ASSIGN_OR_RETURN(made.file, fs_->OpenToWrite(ShardFile(folder, file_),
                                                  WriteMode::kTruncate));
  HR_ASSIGN_OR_RETURN(made.writer,
                      RecordWriter::Create(made.file.get(), compression_));
  return &(shards_[shard] = std::move(made));
}

Status ShardWriters::Write(int64_t shard, const Element& element) {
  HR_ASSIGN_OR_RETURN(Shard * to, Open(shard));
  for (const Tensor& t : element) {
    tensorflow::TensorProto proto;
    HR_RETURN_IF_ERROR(TensorToProto(t, &proto));
    HR_RETURN_IF_ERROR(to->writer->Write(proto.SerializeAsString()));
  }
  return OkStatus();
}

Status ShardWriters::Checkpoint() {
  for (auto& [number, shard] : shards_) {
    // In this order: the writer's buffer, the file to the disk, then its end.
    HR_RETURN_IF_ERROR(shard.writer->Finish());
    HR_RETURN_IF_ERROR(shard.file->Sync());
    HR_RETURN_IF_ERROR(shard.file->Close());
  }
  // The next elements go into new files, so that those of a checkpoint stay as
  // they are.
  shards_.clear();
  ++file_;
  return OkStatus();
}

}  // namespace headrace
