// Variants as protos: how checkpoints and graphs carry them.
#pragma once

#include "tensor/tensor.h"
#include "tensor/variant.h"

namespace tensorflow {
class VariantTensorDataProto;
}  // namespace tensorflow

namespace headrace {

// How values of one type are written and read. `decode` checks what it reads.
struct VariantCodec {
  Status (*encode)(const VariantValue& value,
                   tensorflow::VariantTensorDataProto* proto);
  StatusOr<std::shared_ptr<const VariantValue>> (*decode)(
      const tensorflow::VariantTensorDataProto& proto);
};

// Adds the codec of the type with this name on the wire. At start-up only.
bool RegisterVariantCodec(StringView type_name, VariantCodec codec);

// Unimplemented, naming the type, for types without a codec. An empty variant
// is a proto without a type's name.
Status VariantToProto(const Variant& v,
                      tensorflow::VariantTensorDataProto* proto);
StatusOr<Variant> VariantFromProto(
    const tensorflow::VariantTensorDataProto& proto);

// The elements of a tensor of variants, each as a serialised proto, and back.
// DataLoss when a value is no proto or their number is not the shape's.
StatusOr<std::vector<std::string>> VariantsToBytes(const Tensor& t);
StatusOr<Tensor> VariantsFromBytes(absl::Span<const std::string> values,
                                   const Shape& shape);

}  // namespace headrace
