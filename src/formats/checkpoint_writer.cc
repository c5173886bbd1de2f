// The layout is drawn in checkpoint_writer.h.
#include "formats/checkpoint_writer.h"

#include <atomic>
#include <thread>

#include "absl/strings/str_format.h"
#include "base/cancellation.h"
#include "base/coding.h"
#include "base/crc32c.h"
#include "base/files/files.h"
#include "base/guard.h"
#include "base/thread_pool.h"
#include "base/threads.h"
#include "formats/checkpoint_install.h"
#include "formats/element_size.h"
#include "formats/table.h"
#include "tensorflow/core/protobuf/tensor_bundle.pb.h"

namespace headrace {
namespace {

using tensorflow::DataType;

// Tensors from this size on are written from where they lie; smaller ones are
// gathered to as much, so that a checkpoint of thousands of biases takes few
// system calls.
constexpr size_t kLargeBytes = 1 << 20;
// What one thread sums and writes at a time: it stays in the cache between.
constexpr uint64_t kWriteBytes = 1 << 20;
static_assert(kWriteBytes % WritableFile::kBlock == 0);
// An estimate that only decides that writing is shared out.
constexpr double kWriteNanosecondsPerByte = 0.2;
// Threads that keep a disk busy, each waiting for it most of the time.
constexpr int64_t kWaitingThreads = 4;

bool SameDims(const tensorflow::TensorShapeProto& shape,
              absl::Span<const int64_t> dims) {
  if (shape.dim_size() != static_cast<int>(dims.size())) return false;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (shape.dim(d).size() != dims[d]) return false;
  }
  return true;
}

// Calls fn(i) for every i below `n`, on a few threads that are none of the
// pool's: work that others want computed goes on beside. fn must not throw.
void OnWaitingThreads(int64_t n, absl::FunctionRef<void(int64_t)> fn) {
  std::atomic<int64_t> next = 0;
  const auto work = [&] {
    for (int64_t i; (i = next.fetch_add(1)) < n;) fn(i);
  };
  std::vector<std::thread> threads;
  threads.reserve(kWaitingThreads);
  for (int64_t i = 1; i < std::min(n, kWaitingThreads); ++i) {
    StatusOr<std::thread> thread = StartThread(work);
    if (!thread.ok()) break;  // those that run do it all
    threads.push_back(*std::move(thread));
  }
  work();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

std::string CheckpointDataPath(StringView prefix, int shard, int num_shards) {
  return absl::StrFormat("%s.data-%05d-of-%05d", prefix, shard, num_shards);
}

std::string CheckpointIndexPath(StringView prefix) {
  return absl::StrCat(prefix, ".index");
}

CheckpointWriter::CheckpointWriter(FileSystem* fs, std::string prefix,
                                   const Options& options)
    : fs_(fs),
      prefix_(std::move(prefix)),
      options_(options),
      data_path_(TemporaryNameFor(CheckpointDataPath(prefix_, 0, 1))) {}

StatusOr<std::unique_ptr<CheckpointWriter>> CheckpointWriter::Create(
    FileSystem* fs, const std::string& prefix, const Options& options) {
  if (options.alignment < 1) {
    return InvalidArgument("checkpoint alignment of ", options.alignment);
  }
  std::unique_ptr<CheckpointWriter> writer(
      new CheckpointWriter(fs, prefix, options));
  // The temporary name is this writer's alone.
  HR_ASSIGN_OR_RETURN(writer->data_, fs->OpenToWrite(writer->data_path_,
                                                     WriteMode::kCreateNew));
  return writer;
}

CheckpointWriter::~CheckpointWriter() {
  // A writer that goes away before its end leaves nothing behind.
  if (finished_ || data_ == nullptr) return;
  Guarded("leaving a checkpoint", [this] {
    // Closed before it is deleted.
    data_ = nullptr;
    return fs_->Delete(data_path_);
  }).IgnoreError();
}

Status CheckpointWriter::Guard(absl::FunctionRef<Status()> add) {
  if (status_.ok() && finished_) {
    return FailedPrecondition("checkpoint ", prefix_, " is finished");
  }
  // The first error stays: what comes after it would only hide it.
  if (status_.ok()) status_ = add();
  return status_;
}

StatusOr<tensorflow::BundleEntryProto*> CheckpointWriter::NewEntry(
    StringView key, DataType dtype, Dims dims) {
  if (key.empty()) return InvalidArgument("a tensor without a name");
  // Before the entry, so that its offset is the aligned one.
  HR_RETURN_IF_ERROR(Align());
  const auto [at, added] = entries_.try_emplace(std::string(key));
  if (!added) return InvalidArgument("Adding duplicate key: ", key);
  Entry& entry = at->second;
  entry.set_dtype(dtype);
  auto* shape = entry.mutable_shape();
  for (const int64_t d : dims) shape->add_dim()->set_size(d);
  entry.set_offset(written_ + buffer_.size());
  return &entry;
}

Status CheckpointWriter::Align() {
  const uint64_t at = written_ + buffer_.size();
  const uint64_t over = at % options_.alignment;
  if (over > 0) buffer_.resize(buffer_.size() + options_.alignment - over);
  return buffer_.size() >= kLargeBytes ? Flush() : OkStatus();
}

Status CheckpointWriter::Append(StringView bytes) {
  buffer_.append(bytes.data(), bytes.size());
  return buffer_.size() >= kLargeBytes ? Flush() : OkStatus();
}

Status CheckpointWriter::Flush() {
  if (buffer_.empty()) return OkStatus();
  if (reserves_) data_->Reserve(written_, buffer_.size());
  HR_RETURN_IF_ERROR(data_->WriteAt(written_, buffer_));
  written_ += buffer_.size();
  buffer_.clear();
  return OkStatus();
}

Status CheckpointWriter::AppendLarge(absl::Span<const char> bytes,
                                     uint32_t* crc) {
  // What was gathered comes before the large tensor in the file.
  HR_RETURN_IF_ERROR(Flush());
  reserves_ = true;
  data_->Reserve(written_, bytes.size());
  // Pieces end at round places of the file.
  const uint64_t begin = written_, end = begin + bytes.size();
  const int64_t first = begin / kWriteBytes;
  const int64_t pieces = (end + kWriteBytes - 1) / kWriteBytes - first;
  const auto piece = [&](int64_t i) {
    // Writes past the page cache take whole blocks of the file, not of the
    // tensor.
    const uint64_t from = std::max(begin, (first + i) * kWriteBytes);
    const uint64_t to = std::min(end, (first + i + 1) * kWriteBytes);
    return StringView(bytes.data() + (from - begin), to - from);
  };
  std::vector<uint32_t> crcs(pieces);
  std::vector<Status> statuses(pieces);
  const auto write = [&](int64_t i) {
    statuses[i] = Guarded("writing", [&]() -> Status {
      HR_RETURN_IF_ERROR(CheckStop());
      const StringView part = piece(i);
      crcs[i] = Crc32c(part);
      const uint64_t at = begin + (part.data() - bytes.data());
      // Where the disk is waited for anyhow, going past the page cache saves a
      // copy and leaves the cache to others; without sync the cache is the
      // faster one.
      return options_.sync ? data_->WriteThrough(at, part)
                           : data_->WriteAt(at, part);
    });
  };
  if (options_.sync) {
    OnWaitingThreads(pieces, write);
  } else {
    ParallelBlocks(pieces, 1, kWriteBytes * kWriteNanosecondsPerByte,
                   [&](int64_t i, int64_t, int64_t) { write(i); });
  }
  *crc = 0;
  for (int64_t i = 0; i < pieces; ++i) {
    HR_RETURN_IF_ERROR(statuses[i]);
    *crc = Crc32cCombine(*crc, crcs[i], piece(i).size());
  }
  written_ = end;
  return OkStatus();
}

Status CheckpointWriter::Add(StringView key, DataType dtype, Dims dims,
                             absl::Span<const char> bytes) {
  return Guard([&] { return AddNow(key, dtype, dims, bytes); });
}

Status CheckpointWriter::AddNow(StringView key, DataType dtype, Dims dims,
                                absl::Span<const char> bytes) {
  const int element = ElementSize(dtype);
  if (element == 0) {
    return Unimplemented("checkpoint: tensor ", key, " is of type ",
                         tensorflow::DataType_Name(dtype),
                         ", which cannot be saved as numbers");
  }
  HR_ASSIGN_OR_RETURN(const int64_t count, CountElements(dims));
  if (count != static_cast<int64_t>(bytes.size() / element) ||
      bytes.size() % element != 0) {
    return InvalidArgument("checkpoint: tensor ", key, " has ", count,
                           " elements of ", element, " bytes, but ",
                           bytes.size(), " bytes are given");
  }
  HR_RETURN_IF_ERROR(CheckStop());
  HR_ASSIGN_OR_RETURN(Entry* const entry, NewEntry(key, dtype, dims));
  entry->set_size(bytes.size());
  uint32_t crc;
  if (bytes.size() >= kLargeBytes) {
    HR_RETURN_IF_ERROR(AppendLarge(bytes, &crc));
  } else {
    const StringView view(bytes.data(), bytes.size());
    crc = Crc32c(view);
    HR_RETURN_IF_ERROR(Append(view));
  }
  // Masked, as checksums of bytes that hold checksums are weak; upstream's
  // format.
  entry->set_crc32c(MaskCrc(crc));
  return OkStatus();
}

Status CheckpointWriter::AddStrings(StringView key, Dims dims,
                                    absl::Span<const StringView> values) {
  return Guard([&] { return AddStringsNow(key, dims, values); });
}

Status CheckpointWriter::AddStringsNow(StringView key, Dims dims,
                                       absl::Span<const StringView> values) {
  HR_ASSIGN_OR_RETURN(const int64_t count, CountElements(dims));
  if (count != static_cast<int64_t>(values.size())) {
    return InvalidArgument("checkpoint: tensor ", key, " has ", count,
                           " elements, but ", values.size(),
                           " strings are given");
  }
  HR_ASSIGN_OR_RETURN(Entry* const entry,
                      NewEntry(key, tensorflow::DT_STRING, dims));
  // Two forms of the lengths: varints go into the file, fixed numbers into the
  // checksum (upstream's format).
  std::string lengths, fixed;
  for (const StringView value : values) {
    PutVarint64(&lengths, value.size());
    if (value.size() <= UINT32_MAX) {
      PutFixed32(&fixed, static_cast<uint32_t>(value.size()));
    } else {
      PutFixed64(&fixed, value.size());
    }
  }
  uint32_t crc = Crc32c(fixed);
  const size_t crc_at = lengths.size();
  PutFixed32(&lengths, MaskCrc(crc));
  crc = Crc32cExtend(crc, &lengths[crc_at], 4);
  uint64_t size = lengths.size();
  HR_RETURN_IF_ERROR(Append(lengths));
  for (const StringView value : values) {
    crc = Crc32cExtend(crc, value.data(), value.size());
    size += value.size();
    HR_RETURN_IF_ERROR(Append(value));
  }
  entry->set_size(size);
  entry->set_crc32c(MaskCrc(crc));
  return OkStatus();
}

Status CheckpointWriter::AddVariants(StringView key, Dims dims,
                                     absl::Span<const std::string> values) {
  return Guard([&] { return AddVariantsNow(key, dims, values); });
}

Status CheckpointWriter::AddVariantsNow(StringView key, Dims dims,
                                        absl::Span<const std::string> values) {
  HR_ASSIGN_OR_RETURN(const int64_t count, CountElements(dims));
  if (count != static_cast<int64_t>(values.size())) {
    return InvalidArgument("checkpoint: tensor ", key, " has ", count,
                           " elements, but ", values.size(),
                           " variants are given");
  }
  HR_ASSIGN_OR_RETURN(Entry* const entry,
                      NewEntry(key, tensorflow::DT_VARIANT, dims));
  uint32_t crc = 0;
  uint64_t size = 0;
  for (const std::string& value : values) {
    std::string fixed, piece;
    PutFixed64(&fixed, value.size());
    crc = Crc32cExtend(crc, fixed.data(), fixed.size());
    crc = Crc32cExtend(crc, value.data(), value.size());
    PutVarint64(&piece, value.size());
    piece += value;
    PutFixed32(&piece, MaskCrc(crc));
    crc = Crc32cExtend(crc, &piece[piece.size() - 4], 4);
    size += piece.size();
    HR_RETURN_IF_ERROR(Append(piece));
  }
  entry->set_size(size);
  entry->set_crc32c(MaskCrc(crc));
  return OkStatus();
}

StatusOr<std::string> CheckpointWriter::RegisterSlice(
    StringView key, DataType dtype, Dims dims, const TensorSlice& slice) {
  if (key.empty()) return InvalidArgument("a tensor without a name");
  Entry& entry = entries_[std::string(key)];
  if (entry.dtype() == tensorflow::DT_INVALID) {
    entry.set_dtype(dtype);
    auto* shape = entry.mutable_shape();
    for (const int64_t d : dims) shape->add_dim()->set_size(d);
  } else if (entry.slices().empty()) {
    return InvalidArgument("Adding duplicate key: ", key);
  } else if (entry.dtype() != dtype || !SameDims(entry.shape(), dims)) {
    return InvalidArgument("checkpoint: slices of tensor ", key,
                           " do not agree on dtype and shape");
  }
  slice.ToProto(entry.add_slices());
  return EncodeSliceKey(key, slice);
}

Status CheckpointWriter::AddSlice(StringView key, DataType dtype, Dims dims,
                                  const TensorSlice& slice,
                                  absl::Span<const char> bytes) {
  return Guard([&]() -> Status {
    HR_ASSIGN_OR_RETURN(const TensorSlice box, slice.Resolve(dims));
    HR_ASSIGN_OR_RETURN(const std::string slice_key,
                        RegisterSlice(key, dtype, dims, slice));
    return AddNow(slice_key, dtype, SliceDims(box), bytes);
  });
}

Status CheckpointWriter::AddStringsSlice(StringView key, Dims dims,
                                         const TensorSlice& slice,
                                         absl::Span<const StringView> values) {
  return Guard([&]() -> Status {
    HR_ASSIGN_OR_RETURN(const TensorSlice box, slice.Resolve(dims));
    HR_ASSIGN_OR_RETURN(const std::string slice_key,
                        RegisterSlice(key, tensorflow::DT_STRING, dims, slice));
    return AddStringsNow(slice_key, SliceDims(box), values);
  });
}

Status CheckpointWriter::WriteIndex(const std::string& path, int shard,
                                    int num_shards) {
  HR_ASSIGN_OR_RETURN(auto file, fs_->OpenToWrite(path, WriteMode::kCreateNew));
  TableWriter table(file.get());
  tensorflow::BundleHeaderProto header;
  header.set_num_shards(num_shards);
  // Upstream's version of bundles.
  header.mutable_version()->set_producer(1);
  HR_RETURN_IF_ERROR(table.Add("", header.SerializeAsString()));
  std::string bytes;
  for (auto& [key, entry] : entries_) {
    // An entry of slices is no piece of a file itself.
    if (shard != 0 && entry.slices().empty()) {
      Entry moved = entry;
      moved.set_shard_id(shard);
      moved.SerializeToString(&bytes);
    } else {
      entry.SerializeToString(&bytes);
    }
    HR_RETURN_IF_ERROR(table.Add(key, bytes));
  }
  HR_RETURN_IF_ERROR(table.Finish());
  if (options_.sync) HR_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

Status CheckpointWriter::FinishNow() {
  // The data must be on the disk before an index names them.
  HR_RETURN_IF_ERROR(Flush());
  if (options_.sync) HR_RETURN_IF_ERROR(data_->Sync());
  HR_RETURN_IF_ERROR(data_->Close());
  return InstallCheckpoint(
      fs_, prefix_, {data_path_},
      [&](const std::string& path, int first, int num_shards) {
        return WriteIndex(path, first, num_shards);
      },
      options_.sync);
}

Status CheckpointWriter::Finish() {
  const Status status = Guard([&] { return FinishNow(); });
  if (status.ok()) finished_ = true;
  return status;
}

}  // namespace headrace
