// Reads checkpoints: tensor bundles (checkpoint_writer.h) and files of the
// first format (slice_checkpoint_reader.cc). Nothing of the files is believed:
// damage of any kind is DataLoss, and every checksum is checked.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/files/file_system.h"
#include "formats/tensor_slice.h"
#include "tensorflow/core/framework/types.pb.h"

namespace headrace {

// Readers take files of producers from this version on.
inline constexpr int kMinCheckpointProducer = 0;
// Files are numbered with five digits.
inline constexpr int kMostShards = 99999;

// What a checkpoint says of one tensor.
struct CheckpointTensor {
  tensorflow::DataType dtype = tensorflow::DT_INVALID;
  std::vector<int64_t> dims;
  // How it is stored; empty: in one piece.
  std::vector<TensorSlice> slices;
};

// Thread-safe. Large tensors are read and summed on several threads of the
// pool. A key that is not there is NotFound, "Key K not found in checkpoint".
class CheckpointReader {
 public:
  // Opens PREFIX.index, or (first format) the file PREFIX or its parts
  // PREFIX-00000-of-NNNNN etc. NotFound when there is neither. `fs` is borrowed
  // for the reader's life.
  static StatusOr<std::unique_ptr<CheckpointReader>> Open(
      FileSystem* fs, const std::string& prefix);

  virtual ~CheckpointReader() = default;

  // 1 for the first format, 2 for bundles.
  virtual int format() const = 0;
  // The tensors' names, sorted.
  virtual const std::vector<std::string>& keys() const = 0;
  bool Contains(StringView key) const;
  virtual StatusOr<CheckpointTensor> Lookup(StringView key) const = 0;

  // DataLoss when the tensor says to have more elements than the files can
  // hold: to be asked before memory is taken for it.
  Status CheckSize(StringView key, const CheckpointTensor& tensor) const;

  // Fills `out`, whose size must be that of the tensor (InvalidArgument), with
  // its elements. InvalidArgument for strings, Unimplemented for other dtypes
  // that are not numbers.
  Status Read(StringView key, absl::Span<char> out) const;
  // The elements of a tensor of strings, or those of a tensor of variants as
  // serialised VariantTensorDataProtos.
  StatusOr<std::vector<std::string>> ReadStrings(StringView key) const;

  // The same for a part of the tensor, which may be cut otherwise than it is
  // stored. NotFound when stored slices do not cover it.
  Status ReadSlice(StringView key, const TensorSlice& slice,
                   absl::Span<char> out) const;
  StatusOr<std::vector<std::string>> ReadStringsSlice(
      StringView key, const TensorSlice& slice) const;

  // Closes the files; what is read later opens them again. Not while another
  // thread reads.
  virtual void CloseFiles() {}

 protected:
  // One stored piece of `tensor`: number `part` of its slices, or (part < 0)
  // the whole. `out` has the piece's size.
  virtual Status ReadPart(StringView key, const CheckpointTensor& tensor,
                          int part, absl::Span<char> out) const = 0;
  virtual StatusOr<std::vector<std::string>> ReadStringsPart(
      StringView key, const CheckpointTensor& tensor, int part) const = 0;
  // No tensor of this checkpoint can have more bytes, or more strings: a bound
  // from the sizes of its files, asked before memory is taken.
  virtual uint64_t MostBytes() const = 0;
  // Why less may be held than was written: the error of a file that is gone.
  virtual Status CheckFiles() const { return OkStatus(); }

 private:
  Status ReadBox(StringView key, const CheckpointTensor& tensor,
                 const TensorSlice& target, absl::Span<char> out) const;
  StatusOr<std::vector<std::string>> ReadStringsBox(
      StringView key, const CheckpointTensor& tensor,
      const TensorSlice& target) const;
};

// The two kinds; Open picks. `files` are the parts of a first-format
// checkpoint.
StatusOr<std::unique_ptr<CheckpointReader>> OpenBundle(
    FileSystem* fs, const std::string& prefix);
StatusOr<std::unique_ptr<CheckpointReader>> OpenSliceCheckpoint(
    FileSystem* fs, absl::Span<const std::string> files);

}  // namespace headrace
