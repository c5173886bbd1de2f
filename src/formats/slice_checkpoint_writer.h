// Writes checkpoints of the first format (slice_checkpoint_reader.cc): one
// file, a sorted table of meta data and slices, as TensorFlow's Saver does with
// SaverDef.V1. All is gathered in memory first.
#pragma once

#include <map>
#include <string>

#include "absl/types/span.h"
#include "base/files/file_system.h"
#include "formats/tensor_slice.h"
#include "tensorflow/core/framework/types.pb.h"
#include "tensorflow/core/util/saved_tensor_slice.pb.h"

namespace headrace {

// Not thread-safe.
class SliceCheckpointWriter {
 public:
  using Dims = absl::Span<const int64_t>;

  // Adds a slice (TensorSlice::Whole for all) of a tensor of size `dims`; the
  // bytes are its elements. InvalidArgument for slices that are there already,
  // that disagree on dtype and dims, are no part of the tensor, or have another
  // number of elements; Unimplemented for dtypes that the format does not have.
  Status Add(const std::string& name, tensorflow::DataType dtype, Dims dims,
             const TensorSlice& slice, absl::Span<const char> bytes);
  Status AddStrings(const std::string& name, Dims dims,
                    const TensorSlice& slice,
                    absl::Span<const StringView> values);

  // Replaces the file at once: written beside, synced, renamed.
  Status Finish(FileSystem* fs, const std::string& path) const;

 private:
  // Enters the slice in the meta data; its number of elements and its key.
  struct SliceEntry {
    int64_t count;
    std::string key;
  };
  StatusOr<SliceEntry> Enter(const std::string& name,
                             tensorflow::DataType dtype, Dims dims,
                             const TensorSlice& slice);
  Status Keep(const SliceEntry& place, const std::string& name,
              const TensorSlice& slice, tensorflow::SavedTensorSlices* message);

  std::map<std::string, tensorflow::SavedSliceMeta> tensors_;
  std::map<std::string, std::string> slices_;  // by key
};

}  // namespace headrace
