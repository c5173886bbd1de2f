// Reads checkpoints of the first format. Each file is a sorted table:
//   ""         SavedTensorSlices with meta: every tensor's name, shape, dtype
//              and the slices that this file has
//   slice key  (tensor_slice.h) SavedTensorSlices with data: one slice as a
//              TensorProto
#include <algorithm>
#include <cstring>
#include <map>

#include "formats/checkpoint_reader.h"
#include "formats/element_size.h"
#include "formats/table.h"
#include "formats/version_check.h"
#include "tensorflow/core/util/saved_tensor_slice.pb.h"

namespace headrace {
namespace {

using tensorflow::SavedTensorSlices;
using tensorflow::TensorProto;

constexpr int kVersion = 1;

// Copies a list of values of type `From` to elements of type `To`.
template <typename To, typename Values>
bool CopyValues(const Values& values, absl::Span<char> out) {
  // A list of other length than the shape says: elements would stay unset.
  if (values.size() * sizeof(To) != out.size()) return false;
  char* to = out.data();
  for (const auto& value : values) {
    const To narrow = static_cast<To>(value);
    std::memcpy(to, &narrow, sizeof(To));
    to += sizeof(To);
  }
  return true;
}

// The elements of a proto; false when their number is not that of `out`.
bool CopyElements(const TensorProto& proto, tensorflow::DataType dtype,
                  absl::Span<char> out) {
  if (!proto.tensor_content().empty()) {
    return CopyValues<char>(proto.tensor_content(), out);
  }
  switch (dtype) {
    case tensorflow::DT_FLOAT:
      return CopyValues<float>(proto.float_val(), out);
    case tensorflow::DT_DOUBLE:
      return CopyValues<double>(proto.double_val(), out);
    case tensorflow::DT_COMPLEX64:
      return CopyValues<float>(proto.scomplex_val(), out);
    case tensorflow::DT_COMPLEX128:
      return CopyValues<double>(proto.dcomplex_val(), out);
    case tensorflow::DT_INT64:
      return CopyValues<int64_t>(proto.int64_val(), out);
    case tensorflow::DT_UINT64:
      return CopyValues<uint64_t>(proto.uint64_val(), out);
    case tensorflow::DT_UINT32:
      return CopyValues<uint32_t>(proto.uint32_val(), out);
    case tensorflow::DT_BOOL:
      return CopyValues<bool>(proto.bool_val(), out);
    case tensorflow::DT_HALF:
    case tensorflow::DT_BFLOAT16:
      return CopyValues<uint16_t>(proto.half_val(), out);
    default:
      break;
  }
  switch (ElementSize(dtype)) {
    case 4:
      return CopyValues<int32_t>(proto.int_val(), out);
    case 2:
      return CopyValues<int16_t>(proto.int_val(), out);
    case 1:
      return CopyValues<int8_t>(proto.int_val(), out);
    default:
      return false;
  }
}

class SliceCheckpointReader : public CheckpointReader {
 public:
  Status AddFile(FileSystem* fs, const std::string& path);
  int format() const override { return 1; }
  const std::vector<std::string>& keys() const override { return keys_; }

  StatusOr<CheckpointTensor> Lookup(StringView key) const override {
    const auto found = tensors_.find(key);
    if (found == tensors_.end()) {
      return NotFound("Key ", key, " not found in checkpoint");
    }
    return found->second.tensor;
  }

 protected:
  Status ReadPart(StringView key, const CheckpointTensor& tensor, int part,
                  absl::Span<char> out) const override;
  StatusOr<std::vector<std::string>> ReadStringsPart(
      StringView key, const CheckpointTensor& tensor, int part) const override;
  // A zero takes one byte where its element may have eight, and a packed block
  // is at most 22 times as long as its bytes.
  uint64_t MostBytes() const override { return 8 * 22 * file_bytes_; }

 private:
  struct Stored {
    CheckpointTensor tensor;
    std::vector<int> files;  // of each slice
  };

  Status AddTensor(const tensorflow::SavedSliceMeta& meta, int file);
  // The message that holds a slice's data.
  StatusOr<SavedTensorSlices> Find(StringView key, int part) const;

  std::vector<std::unique_ptr<TableReader>> tables_;
  uint64_t file_bytes_ = 0;
  std::map<std::string, Stored, std::less<>> tensors_;
  std::vector<std::string> keys_;
};

Status SliceCheckpointReader::AddTensor(const tensorflow::SavedSliceMeta& meta,
                                        int file) {
  const auto bad = [&](StringView what) {
    return DataLoss(tables_[file]->path(), ": tensor ", meta.name(), ": ",
                    what);
  };
  std::vector<int64_t> dims;
  for (const auto& d : meta.shape().dim()) dims.push_back(d.size());
  if (!CountElements(dims).ok()) return bad("its shape is no shape");
  Stored& stored = tensors_[meta.name()];
  if (stored.files.empty()) {
    stored.tensor.dtype = meta.type();
    stored.tensor.dims = dims;
  } else if (stored.tensor.dtype != meta.type() || stored.tensor.dims != dims) {
    return bad("another file has another dtype or shape");
  }
  for (const auto& proto : meta.slice()) {
    const auto slice = TensorSlice::FromProto(proto);
    if (!slice.ok() || !slice->Resolve(dims).ok()) {
      return bad("a slice is not inside its shape");
    }
    stored.tensor.slices.push_back(*slice);
    stored.files.push_back(file);
  }
  // Nothing would ever be read for it.
  if (stored.files.empty()) return bad("it has no slice");
  return OkStatus();
}

Status SliceCheckpointReader::AddFile(FileSystem* fs, const std::string& path) {
  HR_ASSIGN_OR_RETURN(auto file, fs->OpenToRead(path));
  file_bytes_ += file->size();
  HR_ASSIGN_OR_RETURN(auto table, TableReader::Open(std::move(file)));
  const auto bytes = table->Get("");
  if (absl::IsNotFound(bytes.status())) return DataLoss(path, ": no meta data");
  HR_RETURN_IF_ERROR(bytes.status());
  SavedTensorSlices slices;
  if (!slices.ParseFromString(*bytes)) {
    return DataLoss(path, ": the meta data cannot be parsed");
  }
  HR_RETURN_IF_ERROR(CheckVersions(slices.meta().versions(), kVersion,
                                   kMinCheckpointProducer, "Checkpoint",
                                   "checkpoint"));
  tables_.push_back(std::move(table));
  for (const auto& meta : slices.meta().tensor()) {
    HR_RETURN_IF_ERROR(AddTensor(meta, static_cast<int>(tables_.size()) - 1));
  }
  keys_.clear();
  for (const auto& [key, stored] : tensors_) keys_.push_back(key);
  return OkStatus();
}

StatusOr<SavedTensorSlices> SliceCheckpointReader::Find(StringView key,
                                                        int part) const {
  const Stored& stored = tensors_.find(key)->second;
  const TableReader& table = *tables_[stored.files[part]];
  const auto bytes = table.Get(EncodeSliceKey(key, stored.tensor.slices[part]));
  SavedTensorSlices slices;
  if (absl::IsNotFound(bytes.status())) {
    return DataLoss(table.path(), ": tensor ", key, ": slice ",
                    stored.tensor.slices[part].ToString(), " is missing");
  }
  HR_RETURN_IF_ERROR(bytes.status());
  if (!slices.ParseFromString(*bytes)) {
    return DataLoss(table.path(), ": tensor ", key, " cannot be parsed");
  }
  return slices;
}

Status SliceCheckpointReader::ReadPart(StringView key,
                                       const CheckpointTensor& tensor, int part,
                                       absl::Span<char> out) const {
  HR_ASSIGN_OR_RETURN(const SavedTensorSlices slices, Find(key, part));
  if (CopyElements(slices.data().data(), tensor.dtype, out)) return OkStatus();
  return DataLoss("Tensor ", key,
                  ": the number of stored values is not that of its shape");
}

StatusOr<std::vector<std::string>> SliceCheckpointReader::ReadStringsPart(
    StringView key, const CheckpointTensor& tensor, int part) const {
  HR_ASSIGN_OR_RETURN(const SavedTensorSlices slices, Find(key, part));
  HR_ASSIGN_OR_RETURN(const TensorSlice box,
                      tensor.slices[part].Resolve(tensor.dims));
  HR_ASSIGN_OR_RETURN(const int64_t count, CountElements(SliceDims(box)));
  const auto& values = slices.data().data().string_val();
  if (values.size() != count) {
    return DataLoss("Tensor ", key,
                    ": the number of stored values is not that of its shape");
  }
  return std::vector<std::string>(values.begin(), values.end());
}

}  // namespace

StatusOr<std::unique_ptr<CheckpointReader>> OpenSliceCheckpoint(
    FileSystem* fs, absl::Span<const std::string> files) {
  auto reader = std::make_unique<SliceCheckpointReader>();
  for (const std::string& file : files) {
    HR_RETURN_IF_ERROR(reader->AddFile(fs, file));
  }
  return reader;
}

}  // namespace headrace
