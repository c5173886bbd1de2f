#include "train/checkpoint_tensor.h"

#include "tensor/variant_codec.h"

namespace headrace {

StatusOr<Tensor> ReadCheckpointTensor(const CheckpointReader& reader,
                                      const std::string& key,
                                      const CheckpointTensor& stored,
                                      const std::optional<TensorSlice>& slice) {
  HR_RETURN_IF_ERROR(reader.CheckSize(key, stored));
  TensorSlice part = slice ? *slice : TensorSlice::Whole(stored.dims.size());
  HR_ASSIGN_OR_RETURN(part, part.Resolve(stored.dims));
  HR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(SliceDims(part)));
  if (stored.dtype == tensorflow::DT_STRING) {
    HR_ASSIGN_OR_RETURN(auto strings, slice ? reader.ReadStringsSlice(key, part)
                                            : reader.ReadStrings(key));
    HR_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(DType::kString, shape));
    if (static_cast<int64_t>(strings.size()) != t.num_elements()) {
      return DataLoss("tensor ", key, " has ", strings.size(),
                      " strings, its shape is ", shape);
    }
    std::move(strings.begin(), strings.end(), t.data<std::string>());
    return t;
  }
  if (stored.dtype == tensorflow::DT_VARIANT && !slice) {
    HR_ASSIGN_OR_RETURN(auto values, reader.ReadStrings(key));
    return VariantsFromBytes(values, shape);
  }
  const auto dtype = static_cast<DType>(stored.dtype);
  if (!DTypeIsValid(stored.dtype) || !IsPlain(dtype)) {
    return Unimplemented("tensor ", key, " is of a type, ", stored.dtype,
                         ", that cannot be read");
  }
  HR_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(dtype, shape));
  const auto out = absl::MakeSpan(static_cast<char*>(t.raw()), t.bytes());
  HR_RETURN_IF_ERROR(slice ? reader.ReadSlice(key, part, out)
                           : reader.Read(key, out));
  return t;
}

StatusOr<Tensor> ReadCheckpointTensor(const CheckpointReader& reader,
                                      const std::string& key) {
  HR_ASSIGN_OR_RETURN(const CheckpointTensor stored, reader.Lookup(key));
  return ReadCheckpointTensor(reader, key, stored);
}

}  // namespace headrace
