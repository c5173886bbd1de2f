// Reads tensor bundles; the layout is drawn in checkpoint_writer.h.
#include <algorithm>

#include "base/cancellation.h"
#include "base/coding.h"
#include "base/crc32c.h"
#include "base/files/files.h"
#include "base/mutex.h"
#include "base/thread_pool.h"
#include "formats/checkpoint_reader.h"
#include "formats/checkpoint_writer.h"
#include "formats/element_size.h"
#include "formats/table.h"
#include "formats/version_check.h"
#include "tensorflow/core/protobuf/tensor_bundle.pb.h"

namespace headrace {
namespace {

using Entry = tensorflow::BundleEntryProto;

constexpr int kBundleVersion = 1;
// What one thread reads and sums at a time: a megabyte stays in its cache from
// the one to the other. The estimate only decides that reading is shared out.
constexpr int64_t kReadBytes = 1 << 20;
constexpr double kReadNanosecondsPerByte = 0.1;

std::vector<int64_t> DimsOf(const Entry& entry) {
  std::vector<int64_t> dims;
  for (const auto& d : entry.shape().dim()) dims.push_back(d.size());
  return dims;
}

class BundleReader : public CheckpointReader {
 public:
  BundleReader(FileSystem* fs, std::string prefix)
      : fs_(fs), prefix_(std::move(prefix)) {}

  Status ReadIndex();
  int format() const override { return 2; }
  const std::vector<std::string>& keys() const override { return keys_; }
  StatusOr<CheckpointTensor> Lookup(StringView key) const override;
  void CloseFiles() override {
    MutexLock lock(mutex_);
    for (auto& shard : shards_) shard.reset();
  }

 protected:
  Status ReadPart(StringView key, const CheckpointTensor& tensor, int part,
                  absl::Span<char> out) const override;
  StatusOr<std::vector<std::string>> ReadStringsPart(
      StringView key, const CheckpointTensor& tensor, int part) const override;
  uint64_t MostBytes() const override;
  Status CheckFiles() const override;

 private:
  Status ReadHeader(StringView value);
  StatusOr<Entry> FindEntry(StringView key) const;
  // The entry of a stored piece, checked against what `tensor` says.
  StatusOr<Entry> FindPart(StringView key, const CheckpointTensor& tensor,
                           int part) const;
  StatusOr<const RandomAccessFile*> Shard(int shard) const;
  Status ReadBytes(StringView key, const Entry& entry, absl::Span<char> out,
                   uint32_t* crc) const;
  Status Damaged(StringView key, StringView what) const {
    return DataLoss("TensorBundle at ", prefix_, ": tensor ", key, ": ", what);
  }

  FileSystem* const fs_;
  const std::string prefix_;
  int num_shards_ = 0;
  // All entries in the order of their keys, as serialised, and the names of
  // tensors among them (keys of slices begin with a zero byte).
  std::vector<std::pair<std::string, std::string>> entries_;
  std::vector<std::string> keys_;
  mutable Mutex mutex_;
  mutable std::vector<std::unique_ptr<RandomAccessFile>> shards_
      ABSL_GUARDED_BY(mutex_);
};

Status BundleReader::ReadHeader(StringView value) {
  tensorflow::BundleHeaderProto header;
  if (!header.ParseFromArray(value.data(), static_cast<int>(value.size()))) {
    return DataLoss(prefix_, ".index: the header cannot be parsed");
  }
  HR_RETURN_IF_ERROR(CheckVersions(header.version(), kBundleVersion,
                                   kMinCheckpointProducer, "Checkpoint",
                                   "checkpoint"));
  // Elements are read where they are to lie, and nobody swaps them.
  if (header.endianness() != tensorflow::BundleHeaderProto::LITTLE) {
    return Unimplemented("TensorBundle at ", prefix_,
                         ": written on a big endian machine");
  }
  num_shards_ = header.num_shards();
  // A number from the file, for which places are made.
  if (num_shards_ < 0 || num_shards_ > kMostShards) {
    return DataLoss(prefix_, ".index: a checkpoint of ", num_shards_,
                    " shards");
  }
  return OkStatus();
}

Status BundleReader::ReadIndex() {
  HR_ASSIGN_OR_RETURN(auto file, fs_->OpenToRead(CheckpointIndexPath(prefix_)));
  HR_ASSIGN_OR_RETURN(auto table, TableReader::Open(std::move(file)));
  bool first = true;
  HR_RETURN_IF_ERROR(table->Scan([&](StringView key, StringView value) {
    if (first) {
      first = false;
      if (!key.empty()) return DataLoss(table->path(), ": no header");
      return ReadHeader(value);
    }
    // Entries stay as bytes: a checkpoint has thousands, of which a restore may
    // want few.
    entries_.emplace_back(key, value);
    // Keys of slices begin with a zero byte: they are pieces of tensors, no
    // tensors.
    if (key[0] != '\0') keys_.emplace_back(key);
    return OkStatus();
  }));
  if (first) return DataLoss(table->path(), ": no header");
  MutexLock lock(mutex_);
  shards_.resize(num_shards_);
  return OkStatus();
}

StatusOr<Entry> BundleReader::FindEntry(StringView key) const {
  const auto at = std::lower_bound(
      entries_.begin(), entries_.end(), key,
      [](const auto& entry, StringView k) { return entry.first < k; });
  if (at == entries_.end() || at->first != key) {
    return NotFound("Key ", key, " not found in checkpoint");
  }
  Entry entry;
  if (!entry.ParseFromString(at->second)) {
    return Damaged(key, "its entry cannot be parsed");
  }
  const auto count = CountElements(DimsOf(entry));
  // Checked here once, so that nobody behind computes with such sizes.
  if (!count.ok() || entry.shape().unknown_rank()) {
    return Damaged(key, "its shape is no shape");
  }
  return entry;
}

StatusOr<CheckpointTensor> BundleReader::Lookup(StringView key) const {
  if (key.empty() || key[0] == '\0') {
    return NotFound("Key ", key, " not found in checkpoint");
  }
  HR_ASSIGN_OR_RETURN(const Entry entry, FindEntry(key));
  CheckpointTensor tensor;
  tensor.dtype = entry.dtype();
  tensor.dims = DimsOf(entry);
  for (const auto& proto : entry.slices()) {
    const auto slice = TensorSlice::FromProto(proto);
    if (!slice.ok() || !slice->Resolve(tensor.dims).ok()) {
      return Damaged(key, "a slice is not inside its shape");
    }
    tensor.slices.push_back(*slice);
  }
  return tensor;
}

StatusOr<Entry> BundleReader::FindPart(StringView key,
                                       const CheckpointTensor& tensor,
                                       int part) const {
  // -1: the tensor is stored in one piece, under its own name.
  if (part < 0) return FindEntry(key);
  const TensorSlice& slice = tensor.slices[part];
  const auto entry = FindEntry(EncodeSliceKey(key, slice));
  if (absl::IsNotFound(entry.status())) {
    return Damaged(
        key, absl::StrCat("slice ", slice.ToString(), " is not in the index"));
  }
  HR_RETURN_IF_ERROR(entry.status());
  HR_ASSIGN_OR_RETURN(const TensorSlice box, slice.Resolve(tensor.dims));
  // Two entries of one file that say different things: the piece would be laid
  // where it does not belong.
  if (entry->dtype() != tensor.dtype || DimsOf(*entry) != SliceDims(box)) {
    return Damaged(key, absl::StrCat("slice ", slice.ToString(),
                                     " has another dtype or shape"));
  }
  return *entry;
}

StatusOr<const RandomAccessFile*> BundleReader::Shard(int shard) const {
  if (shard < 0 || shard >= num_shards_) {
    return DataLoss("TensorBundle at ", prefix_, ": no shard ", shard, " of ",
                    num_shards_);
  }
  MutexLock lock(mutex_);
  // Opened when first read: a restore of a few tensors needs few of many
  // shards.
  if (shards_[shard] == nullptr) {
    HR_ASSIGN_OR_RETURN(shards_[shard], fs_->OpenToRead(CheckpointDataPath(
                                            prefix_, shard, num_shards_)));
  }
  return shards_[shard].get();
}

uint64_t BundleReader::MostBytes() const {
  uint64_t total = 0;
  for (int i = 0; i < num_shards_; ++i) {
    const auto file = Shard(i);
    // A shard that cannot be opened counts as empty: CheckFiles tells what is
    // wrong with it.
    if (file.ok()) total += (*file)->size();
  }
  return total;
}

Status BundleReader::CheckFiles() const {
  for (int i = 0; i < num_shards_; ++i) {
    HR_RETURN_IF_ERROR(Shard(i).status());
  }
  return OkStatus();
}

// Reads the entry's bytes; *crc is their checksum.
Status BundleReader::ReadBytes(StringView key, const Entry& entry,
                               absl::Span<char> out, uint32_t* crc) const {
  HR_ASSIGN_OR_RETURN(const RandomAccessFile* const file,
                      Shard(entry.shard_id()));
  const int64_t size = out.size();
  // In this order nothing overflows: an offset from the file may be any number.
  if (entry.offset() < 0 || size > static_cast<int64_t>(file->size()) ||
      entry.offset() > static_cast<int64_t>(file->size()) - size) {
    return Damaged(key, absl::StrCat(file->path(), " is too short for it"));
  }
  const int64_t pieces = (size + kReadBytes - 1) / kReadBytes;
  // Each piece has its own places, so threads need no lock.
  std::vector<uint32_t> crcs(pieces);
  std::vector<Status> statuses(pieces);
  const auto read = [&](int64_t piece, int64_t begin, int64_t end) {
    statuses[piece] = CheckStop();
    if (!statuses[piece].ok()) return;
    const absl::Span<char> part = out.subspan(begin, end - begin);
    statuses[piece] = file->Read(entry.offset() + begin, part);
    if (statuses[piece].ok()) {
      crcs[piece] = Crc32cExtend(0, part.data(), part.size());
    }
  };
  // On the caller alone: most tensors are small, and handing them on would take
  // longer.
  if (pieces == 1) {
    read(0, 0, size);
  } else {
    ParallelBlocks(size, kReadBytes, kReadNanosecondsPerByte, read);
  }
  *crc = 0;
  for (int64_t i = 0; i < pieces; ++i) {
    HR_RETURN_IF_ERROR(statuses[i]);
    *crc = Crc32cCombine(*crc, crcs[i],
                         std::min(kReadBytes, size - i * kReadBytes));
  }
  return OkStatus();
}

Status BundleReader::ReadPart(StringView key, const CheckpointTensor& tensor,
                              int part, absl::Span<char> out) const {
  HR_ASSIGN_OR_RETURN(const Entry entry, FindPart(key, tensor, part));
  if (entry.size() != static_cast<int64_t>(out.size())) {
    return Damaged(key, absl::StrCat("stored in ", entry.size(), " bytes, of ",
                                     out.size()));
  }
  uint32_t crc;
  HR_RETURN_IF_ERROR(ReadBytes(key, entry, out, &crc));
  // The checksum of all, made of those of the pieces.
  if (UnmaskCrc(entry.crc32c()) == crc) return OkStatus();
  return Damaged(key,
                 absl::StrCat("Checksum does not match: stored ",
                              UnmaskCrc(entry.crc32c()),
                              " vs. calculated on the restored bytes ", crc));
}

// Takes `count` lengths from the front of *in, with their checksum; *crc is
// the checksum of all that.
bool GetLengths(StringView* in, uint64_t count, std::vector<uint64_t>* lengths,
                uint32_t* crc) {
  // Each length takes a byte at least: seen before room for them is taken.
  if (count > in->size()) return false;
  std::string fixed;
  lengths->reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t length;
    if (!GetVarint64(in, &length)) return false;
    // The checksum is not of the stored varints but of the lengths as fixed
    // numbers: upstream's format.
    if (length <= UINT32_MAX) {
      PutFixed32(&fixed, static_cast<uint32_t>(length));
    } else {
      PutFixed64(&fixed, length);
    }
    lengths->push_back(length);
  }
  const char* const stored_bytes = in->data();
  uint32_t stored;
  *crc = Crc32c(fixed);
  if (!GetFixed32(in, &stored) || UnmaskCrc(stored) != *crc) return false;
  // The stored checksum is part of the whole one, in its masked form.
  *crc = Crc32cExtend(*crc, stored_bytes, 4);
  return true;
}

// Takes `count` variants: each its length, its bytes and the masked checksum of
// all so far, lengths counted as eight bytes. Damage gives false.
bool GetVariants(StringView in, uint64_t count,
                 std::vector<std::string>* values, uint32_t* crc) {
  *crc = 0;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t length;
    StringView value;
    if (!GetVarint64(&in, &length) || !GetBytes(&in, length, &value)) {
      return false;
    }
    std::string fixed;
    PutFixed64(&fixed, length);
    *crc = Crc32cExtend(*crc, fixed.data(), fixed.size());
    *crc = Crc32cExtend(*crc, value.data(), value.size());
    const char* const stored_bytes = in.data();
    uint32_t stored;
    if (!GetFixed32(&in, &stored) || UnmaskCrc(stored) != *crc) return false;
    *crc = Crc32cExtend(*crc, stored_bytes, 4);
    values->emplace_back(value);
  }
  return in.empty();
}

StatusOr<std::vector<std::string>> BundleReader::ReadStringsPart(
    StringView key, const CheckpointTensor& tensor, int part) const {
  HR_ASSIGN_OR_RETURN(const Entry entry, FindPart(key, tensor, part));
  HR_ASSIGN_OR_RETURN(const int64_t count, CountElements(DimsOf(entry)));
  HR_ASSIGN_OR_RETURN(const RandomAccessFile* const file,
                      Shard(entry.shard_id()));
  // Before a buffer of that size is made.
  if (entry.size() < 0 || entry.size() > static_cast<int64_t>(file->size())) {
    return Damaged(key, absl::StrCat(file->path(), " is too short for it"));
  }
  std::string bytes(entry.size(), '\0');
  uint32_t crc;
  HR_RETURN_IF_ERROR(ReadBytes(key, entry, absl::MakeSpan(bytes), &crc));
  std::vector<std::string> values;
  if (entry.dtype() == tensorflow::DT_VARIANT) {
    if (!GetVariants(bytes, count, &values, &crc) ||
        UnmaskCrc(entry.crc32c()) != crc) {
      return Damaged(key, "its variants are damaged");
    }
    return values;
  }
  StringView rest = bytes, value;
  std::vector<uint64_t> lengths;
  if (!GetLengths(&rest, count, &lengths, &crc)) {
    return Damaged(key, "the lengths of its strings are damaged");
  }
  crc = Crc32cExtend(crc, rest.data(), rest.size());
  if (UnmaskCrc(entry.crc32c()) != crc) {
    return Damaged(key,
                   absl::StrCat("Checksum does not match: stored ",
                                UnmaskCrc(entry.crc32c()),
                                " vs. calculated on the restored bytes ", crc));
  }
  values.reserve(count);
  for (const uint64_t length : lengths) {
    if (!GetBytes(&rest, length, &value)) {
      return Damaged(key, "its strings are longer than their bytes");
    }
    values.emplace_back(value);
  }
  if (!rest.empty()) return Damaged(key, "bytes are left behind its strings");
  return values;
}

}  // namespace

StatusOr<std::unique_ptr<CheckpointReader>> OpenBundle(
    FileSystem* fs, const std::string& prefix) {
  auto reader = std::make_unique<BundleReader>(fs, prefix);
  HR_RETURN_IF_ERROR(reader->ReadIndex());
  return reader;
}

}  // namespace headrace
