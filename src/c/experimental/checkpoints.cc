// c_api_experimental.h: checkpoints.
#include <algorithm>

#include "base/files/files.h"
#include "c/status.h"
#include "c/tensor.h"
#include "tensorflow/c/c_api_experimental.h"
#include "train/checkpoint_tensor.h"

struct TF_CheckpointReader {
  std::unique_ptr<headrace::CheckpointReader> reader;
};

namespace headrace::capi {
namespace {

StatusOr<TF_CheckpointReader*> OpenCheckpoint(const char* name) {
  HR_RETURN_IF_ERROR(NotNull(name, "filename"));
  std::string local;
  HR_ASSIGN_OR_RETURN(FileSystem * fs, FileSystemFor(name, &local));
  auto made = std::make_unique<TF_CheckpointReader>();
  HR_ASSIGN_OR_RETURN(made->reader, CheckpointReader::Open(fs, local));
  return made.release();
}

StatusOr<CheckpointTensor> LookUpTensor(TF_CheckpointReader* r,
                                        const char* name) {
  HR_RETURN_IF_ERROR(NotNull(r, "reader"));
  HR_RETURN_IF_ERROR(NotNull(name, "name"));
  return r->reader->Lookup(name);
}

Status CopySizes(TF_CheckpointReader* r, const char* name, int64_t* dims,
                 int num_dims) {
  HR_ASSIGN_OR_RETURN(CheckpointTensor tensor, LookUpTensor(r, name));
  const int rank = static_cast<int>(tensor.dims.size());
  if (num_dims < rank) {
    return InvalidArgument("Expected rank is ", num_dims,
                           " but actual rank is ", rank);
  }
  if (rank > 0) HR_RETURN_IF_ERROR(NotNull(dims, "dims"));
  std::copy(tensor.dims.begin(), tensor.dims.end(), dims);
  return OkStatus();
}

StatusOr<TF_Tensor*> ReadTensor(TF_CheckpointReader* r, const char* name) {
  HR_ASSIGN_OR_RETURN(CheckpointTensor tensor, LookUpTensor(r, name));
  HR_ASSIGN_OR_RETURN(Tensor t, ReadCheckpointTensor(*r->reader, name, tensor));
  return FromTensor(std::move(t));
}

}  // namespace
}  // namespace headrace::capi

namespace capi = headrace::capi;

TF_CheckpointReader* TF_NewCheckpointReader(const char* filename,
                                            TF_Status* status) {
  return capi::OrNull(status, [&] { return capi::OpenCheckpoint(filename); });
}

void TF_DeleteCheckpointReader(TF_CheckpointReader* reader) { delete reader; }

int TF_CheckpointReaderHasTensor(TF_CheckpointReader* reader,
                                 const char* name) {
  return capi::OrElse(
      0, [&]() -> int { return capi::LookUpTensor(reader, name).ok(); });
}

const char* TF_CheckpointReaderGetVariable(TF_CheckpointReader* reader,
                                           int index) {
  if (index < 0 || index >= TF_CheckpointReaderSize(reader)) return nullptr;
  return reader->reader->keys()[index].c_str();
}

int TF_CheckpointReaderSize(TF_CheckpointReader* reader) {
  return reader ? static_cast<int>(reader->reader->keys().size()) : 0;
}

TF_DataType TF_CheckpointReaderGetVariableDataType(TF_CheckpointReader* reader,
                                                   const char* name) {
  return capi::OrElse(static_cast<TF_DataType>(0), [&] {
    auto tensor = capi::LookUpTensor(reader, name);
    return static_cast<TF_DataType>(
        tensor.ok() ? static_cast<int>(tensor->dtype) : 0);
  });
}

int TF_CheckpointReaderGetVariableNumDims(TF_CheckpointReader* reader,
                                          const char* name) {
  return capi::OrElse(-1, [&] {
    auto tensor = capi::LookUpTensor(reader, name);
    return tensor.ok() ? static_cast<int>(tensor->dims.size()) : -1;
  });
}

void TF_CheckpointReaderGetVariableShape(TF_CheckpointReader* reader,
                                         const char* name, int64_t* dims,
                                         int num_dims, TF_Status* status) {
  capi::Into(status,
             [&] { return capi::CopySizes(reader, name, dims, num_dims); });
}

TF_Tensor* TF_CheckpointReaderGetTensor(TF_CheckpointReader* reader,
                                        const char* name, TF_Status* status) {
  return capi::OrNull(status, [&] { return capi::ReadTensor(reader, name); });
}
