// Writes checkpoints (tensor bundles, the second format):
//
//   PREFIX.data-00000-of-00001   the tensors' bytes, one behind the other
//     numbers := the elements, little endian, row-major
//     strings := length:varint of each, then fixed32: masked crc32c of the
//                lengths (each as fixed32, or fixed64 from 2^32 on), then the
//                bytes of each
//   PREFIX.index                 a sorted table (table.h)
//     ""            BundleHeaderProto: how many data files, versions
//     tensor name   BundleEntryProto: dtype, shape, file, offset, size, masked
//                   crc32c of the bytes (of strings: of the lengths as above,
//                   the fixed32 and the bytes); a tensor stored in slices has
//                   only dtype, shape and its slices here
//     slice key     (tensor_slice.h) BundleEntryProto of a slice
//
// Both are written under temporary names beside and put in place by Finish
// (checkpoint_install.h): a reader, or a crash, sees the checkpoint that was
// there or the new one, whole.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/files/file_system.h"
#include "formats/tensor_slice.h"
#include "tensorflow/core/framework/types.pb.h"

namespace tensorflow {
class BundleEntryProto;
}

namespace headrace {

// Not thread-safe; large tensors are summed and written on several threads of
// the pool. After an error, every later call returns it.
class CheckpointWriter {
 public:
  struct Options {
    // Tensors begin at multiples of this many bytes.
    int64_t alignment = 1;
    // Finish returns when all has reached the disk.
    bool sync = true;
  };

  using Dims = absl::Span<const int64_t>;

  // The folder must exist. `fs` is borrowed for the writer's life.
  static StatusOr<std::unique_ptr<CheckpointWriter>> Create(
      FileSystem* fs, const std::string& prefix, const Options& options);
  static StatusOr<std::unique_ptr<CheckpointWriter>> Create(
      FileSystem* fs, const std::string& prefix) {
    return Create(fs, prefix, Options());
  }

  // Without Finish, deletes what was written.
  ~CheckpointWriter();

  // Adds a tensor; `bytes` are its elements, needed during the call only.
  // InvalidArgument when the key is there already or the sizes do not agree;
  // Unimplemented for a dtype without fixed size (strings have AddStrings).
  Status Add(StringView key, tensorflow::DataType dtype, Dims dims,
             absl::Span<const char> bytes);
  Status AddStrings(StringView key, Dims dims,
                    absl::Span<const StringView> values);

  // Variants, each as a serialised VariantTensorDataProto.
  Status AddVariants(StringView key, Dims dims,
                     absl::Span<const std::string> values);

  // Adds one slice of a tensor whose full size is `dims`; all slices of a key
  // must agree on dtype and dims. `bytes` or `values` are the slice's own.
  Status AddSlice(StringView key, tensorflow::DataType dtype, Dims dims,
                  const TensorSlice& slice, absl::Span<const char> bytes);
  Status AddStringsSlice(StringView key, Dims dims, const TensorSlice& slice,
                         absl::Span<const StringView> values);

  // Writes the index and puts both files in place. No other call may follow.
  Status Finish();

 private:
  using Entry = tensorflow::BundleEntryProto;

  CheckpointWriter(FileSystem* fs, std::string prefix, const Options& options);
  // Runs `add` unless an error came before, and keeps its error.
  Status Guard(absl::FunctionRef<Status()> add);
  // A new entry for `key`, its place in the file given.
  StatusOr<Entry*> NewEntry(StringView key, tensorflow::DataType dtype,
                            Dims dims);
  // Enters a slice in the entry of its tensor; the key of its own entry.
  StatusOr<std::string> RegisterSlice(StringView key,
                                      tensorflow::DataType dtype, Dims dims,
                                      const TensorSlice& slice);
  Status AddNow(StringView key, tensorflow::DataType dtype, Dims dims,
                absl::Span<const char> bytes);
  Status AddStringsNow(StringView key, Dims dims,
                       absl::Span<const StringView> values);
  Status AddVariantsNow(StringView key, Dims dims,
                        absl::Span<const std::string> values);
  Status Align();
  Status Append(StringView bytes);
  Status Flush();
  // Writes a large block directly, on several threads; *crc is its checksum.
  Status AppendLarge(absl::Span<const char> bytes, uint32_t* crc);
  // As a new file, the data file being number `shard` of `num_shards`.
  Status WriteIndex(const std::string& path, int shard, int num_shards);
  Status FinishNow();

  FileSystem* const fs_;
  const std::string prefix_;
  const Options options_;
  const std::string data_path_;  // a temporary name
  std::unique_ptr<WritableFile> data_;
  std::string buffer_;     // small tensors, gathered
  uint64_t written_ = 0;   // bytes of the data file before buffer_
  bool reserves_ = false;  // large tensors are in the file
  std::map<std::string, Entry, std::less<>> entries_;
  Status status_;
  bool finished_ = false;
};

// "PREFIX.data-00003-of-00008", "PREFIX.index".
std::string CheckpointDataPath(StringView prefix, int shard, int num_shards);
std::string CheckpointIndexPath(StringView prefix);

// Makes one checkpoint, `merged`, of several: their data files are renamed to
// be its shards in the order given, and slices of one tensor come together.
// InvalidArgument when they hold the same key, or slices that do not agree.
// Sources that do not exist are passed over when `allow_missing`. `sync` as in
// CheckpointWriter::Options.
Status MergeCheckpoints(FileSystem* fs, absl::Span<const std::string> prefixes,
                        const std::string& merged, bool allow_missing = false,
                        bool sync = true);

}  // namespace headrace
