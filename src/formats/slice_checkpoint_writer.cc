#include "formats/slice_checkpoint_writer.h"

#include <algorithm>
#include <cstring>

#include "base/files/files.h"
#include "formats/element_size.h"
#include "formats/table.h"

namespace headrace {
namespace {

using tensorflow::SavedTensorSlices;
using tensorflow::TensorProto;

// Elements of type `From` as a list of values.
template <typename From, typename Values>
void Append(absl::Span<const char> bytes, Values* values) {
  const size_t count = bytes.size() / sizeof(From);
  values->Reserve(static_cast<int>(count));
  for (size_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, bytes.data() + i * sizeof(From), sizeof(From));
    values->Add(value);
  }
}

// False for dtypes that the format does not have.
bool FillProto(tensorflow::DataType dtype, absl::Span<const char> bytes,
               TensorProto* out) {
  switch (dtype) {
    case tensorflow::DT_FLOAT:
      return Append<float>(bytes, out->mutable_float_val()), true;
    case tensorflow::DT_DOUBLE:
      return Append<double>(bytes, out->mutable_double_val()), true;
    case tensorflow::DT_COMPLEX64:
      return Append<float>(bytes, out->mutable_scomplex_val()), true;
    case tensorflow::DT_COMPLEX128:
      return Append<double>(bytes, out->mutable_dcomplex_val()), true;
    case tensorflow::DT_INT64:
      return Append<int64_t>(bytes, out->mutable_int64_val()), true;
    case tensorflow::DT_UINT64:
      return Append<uint64_t>(bytes, out->mutable_uint64_val()), true;
    case tensorflow::DT_UINT32:
      return Append<uint32_t>(bytes, out->mutable_uint32_val()), true;
    case tensorflow::DT_BOOL:
      return Append<bool>(bytes, out->mutable_bool_val()), true;
    case tensorflow::DT_HALF:
    case tensorflow::DT_BFLOAT16:
      return Append<uint16_t>(bytes, out->mutable_half_val()), true;
    case tensorflow::DT_INT32:
    case tensorflow::DT_QINT32:
      return Append<int32_t>(bytes, out->mutable_int_val()), true;
    case tensorflow::DT_INT16:
    case tensorflow::DT_QINT16:
      return Append<int16_t>(bytes, out->mutable_int_val()), true;
    case tensorflow::DT_UINT16:
    case tensorflow::DT_QUINT16:
      return Append<uint16_t>(bytes, out->mutable_int_val()), true;
    case tensorflow::DT_INT8:
    case tensorflow::DT_QINT8:
      return Append<int8_t>(bytes, out->mutable_int_val()), true;
    case tensorflow::DT_UINT8:
    case tensorflow::DT_QUINT8:
      return Append<uint8_t>(bytes, out->mutable_int_val()), true;
    default:
      return false;
  }
}

Status WriteTable(FileSystem* fs, const std::string& path,
                  const std::string& meta,
                  const std::map<std::string, std::string>& slices) {
  HR_ASSIGN_OR_RETURN(auto file, fs->OpenToWrite(path, WriteMode::kCreateNew));
  TableWriter table(file.get());
  HR_RETURN_IF_ERROR(table.Add("", meta));
  for (const auto& [key, bytes] : slices) {
    HR_RETURN_IF_ERROR(table.Add(key, bytes));
  }
  HR_RETURN_IF_ERROR(table.Finish());
  // Before the file gets its name: a crash must not leave the name with half of
  // the contents.
  HR_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

}  // namespace

StatusOr<SliceCheckpointWriter::SliceEntry> SliceCheckpointWriter::Enter(
    const std::string& name, tensorflow::DataType dtype, Dims dims,
    const TensorSlice& slice) {
  HR_ASSIGN_OR_RETURN(const TensorSlice box, slice.Resolve(dims));
  SliceEntry place;
  HR_ASSIGN_OR_RETURN(place.count, CountElements(SliceDims(box)));
  place.key = EncodeSliceKey(name, slice);
  if (slices_.contains(place.key)) {
    return InvalidArgument("tensor ", name, ": slice ", slice.ToString(),
                           " is there twice");
  }
  tensorflow::SavedSliceMeta& meta = tensors_[name];
  if (meta.name().empty() && meta.slice().empty()) {
    meta.set_name(name);
    meta.set_type(dtype);
    meta.mutable_shape();
    for (const int64_t d : dims) meta.mutable_shape()->add_dim()->set_size(d);
  }
  bool same = meta.type() == dtype &&
              meta.shape().dim_size() == static_cast<int>(dims.size());
  for (size_t i = 0; same && i < dims.size(); ++i) {
    same = meta.shape().dim(static_cast<int>(i)).size() == dims[i];
  }
  if (!same) {
    return InvalidArgument("tensor ", name,
                           ": its slices disagree on its dtype or shape");
  }
  slice.ToProto(meta.add_slice());
  return place;
}

Status SliceCheckpointWriter::Keep(const SliceEntry& place,
                                   const std::string& name,
                                   const TensorSlice& slice,
                                   SavedTensorSlices* message) {
  message->mutable_data()->set_name(name);
  slice.ToProto(message->mutable_data()->mutable_slice());
  message->mutable_data()->mutable_data();
  std::string& bytes = slices_[place.key];
  if (message->SerializeToString(&bytes)) return OkStatus();
  return InvalidArgument("tensor ", name,
                         ": the first checkpoint format holds no slices of "
                         "2 GiB");
}

Status SliceCheckpointWriter::Add(const std::string& name,
                                  tensorflow::DataType dtype, Dims dims,
                                  const TensorSlice& slice,
                                  absl::Span<const char> bytes) {
  SavedTensorSlices message;
  HR_ASSIGN_OR_RETURN(const SliceEntry place, Enter(name, dtype, dims, slice));
  const uint64_t size = static_cast<uint64_t>(ElementSize(dtype));
  if (size == 0 || bytes.size() % size != 0 ||
      bytes.size() / size != static_cast<uint64_t>(place.count)) {
    return InvalidArgument("tensor ", name, ": ", bytes.size(),
                           " bytes are no ", place.count, " elements");
  }
  if (!FillProto(dtype, bytes, message.mutable_data()->mutable_data())) {
    return Unimplemented("tensor ", name, " of type ",
                         tensorflow::DataType_Name(dtype),
                         " cannot be saved in the first checkpoint format");
  }
  return Keep(place, name, slice, &message);
}

Status SliceCheckpointWriter::AddStrings(const std::string& name, Dims dims,
                                         const TensorSlice& slice,
                                         absl::Span<const StringView> values) {
  SavedTensorSlices message;
  HR_ASSIGN_OR_RETURN(const SliceEntry place,
                      Enter(name, tensorflow::DT_STRING, dims, slice));
  if (values.size() != static_cast<size_t>(place.count)) {
    return InvalidArgument("tensor ", name, ": ", values.size(),
                           " strings are no ", place.count, " elements");
  }
  for (const StringView v : values) {
    message.mutable_data()->mutable_data()->add_string_val(v.data(), v.size());
  }
  return Keep(place, name, slice, &message);
}

Status SliceCheckpointWriter::Finish(FileSystem* fs,
                                     const std::string& path) const {
  SavedTensorSlices message;
  for (const auto& [name, meta] : tensors_) {
    *message.mutable_meta()->add_tensor() = meta;
  }
  message.mutable_meta()->mutable_versions()->set_producer(1);
  const std::string fresh = TemporaryNameFor(path);
  Status status = WriteTable(fs, fresh, message.SerializeAsString(), slices_);
  if (status.ok()) status = fs->Rename(fresh, path);
  if (!status.ok()) {
    fs->Delete(fresh).IgnoreError();
    return status;
  }
  const StringView folder = DirName(path);
  // A rename is on the disk when its directory is.
  return fs->SyncDirectory(folder.empty() ? "." : std::string(folder));
}

}  // namespace headrace
