// Ragged tensors in variants as protos: the splits, then the values.
#include "tensor/variant_codec.h"

#include "ops/ragged/variant.h"
#include "tensor/tensor_proto.h"
#include "tensorflow/core/framework/tensor.pb.h"

namespace headrace {
namespace {

using tensorflow::VariantTensorDataProto;

Status Encode(const VariantValue& value, VariantTensorDataProto* proto) {
  const auto& ragged = static_cast<const RaggedVariant&>(value);
  for (const std::vector<int64_t>& splits : ragged.splits) {
    HR_RETURN_IF_ERROR(
        TensorToProto(Tensor::Vector<int64_t>(splits), proto->add_tensors()));
  }
  return TensorToProto(ragged.values, proto->add_tensors());
}

Status Damaged() { return DataLoss("a saved ragged tensor is damaged"); }

// What the splits divide must be there.
Status CheckSplits(const std::vector<int64_t>& splits, int64_t count) {
  if (splits.empty() || splits[0] != 0 || splits.back() != count) {
    return Damaged();
  }
  for (size_t i = 1; i < splits.size(); ++i) {
    if (splits[i] < splits[i - 1]) return Damaged();
  }
  return OkStatus();
}

StatusOr<std::shared_ptr<const VariantValue>> Decode(
    const VariantTensorDataProto& proto) {
  const int n = proto.tensors_size();
  if (n < 1) return Damaged();
  auto ragged = std::make_shared<RaggedVariant>();
  HR_ASSIGN_OR_RETURN(ragged->values, TensorFromProto(proto.tensors(n - 1)));
  if (n > 1 && ragged->values.rank() < 1) return Damaged();
  for (int i = 0; i + 1 < n; ++i) {
    HR_ASSIGN_OR_RETURN(const Tensor t, TensorFromProto(proto.tensors(i)));
    const bool integers =
        t.dtype() == DType::kInt64 || t.dtype() == DType::kInt32;
    if (!integers || t.rank() != 1) return Damaged();
    std::vector<int64_t>& splits = ragged->splits.emplace_back();
    for (int64_t k = 0; k < t.num_elements(); ++k) {
      splits.push_back(t.IntAt(k));
    }
  }
  for (size_t i = 0; i < ragged->splits.size(); ++i) {
    const int64_t count =
        i + 1 < ragged->splits.size()
            ? static_cast<int64_t>(ragged->splits[i + 1].size()) - 1
            : ragged->values.dim(0);
    HR_RETURN_IF_ERROR(CheckSplits(ragged->splits[i], count));
  }
  return std::shared_ptr<const VariantValue>(std::move(ragged));
}

[[maybe_unused]] const bool codec_registered =
    RegisterVariantCodec("RaggedTensorVariant", {Encode, Decode});

}  // namespace
}  // namespace headrace
