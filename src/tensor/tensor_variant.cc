#include "tensor/tensor_variant.h"

#include "tensor/tensor_proto.h"
#include "tensor/variant_codec.h"
#include "tensorflow/core/framework/tensor.pb.h"

namespace headrace {
namespace {

using tensorflow::VariantTensorDataProto;

Status Encode(const VariantValue& value, VariantTensorDataProto* proto) {
  return TensorToProto(static_cast<const TensorVariant&>(value).tensor,
                       proto->add_tensors());
}

StatusOr<std::shared_ptr<const VariantValue>> Decode(
    const VariantTensorDataProto& proto) {
  if (proto.tensors_size() != 1) {
    return DataLoss("a variant of a tensor holds ", proto.tensors_size());
  }
  HR_ASSIGN_OR_RETURN(Tensor t, TensorFromProto(proto.tensors(0)));
  return std::shared_ptr<const VariantValue>(
      std::make_shared<const TensorVariant>(std::move(t)));
}

[[maybe_unused]] const bool registered =
    RegisterVariantCodec("tensorflow::Tensor", {Encode, Decode});

}  // namespace
}  // namespace headrace
