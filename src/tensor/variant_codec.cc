#include "tensor/variant_codec.h"

#include <map>
#include <string>

#include "base/stack_room.h"
#include "tensorflow/core/framework/tensor.pb.h"

namespace headrace {
namespace {

using Codecs = std::map<std::string, VariantCodec, std::less<>>;

Codecs& AllCodecs() {
  static auto* codecs = new Codecs;
  return *codecs;
}

StatusOr<VariantCodec> FindCodec(StringView type_name) {
  const auto at = AllCodecs().find(type_name);
  if (at == AllCodecs().end()) {
    return Unimplemented("variants of type '", type_name,
                         "' cannot be saved or read");
  }
  return at->second;
}

}  // namespace

bool RegisterVariantCodec(StringView type_name, VariantCodec codec) {
  return AllCodecs().emplace(std::string(type_name), codec).second;
}

Status VariantToProto(const Variant& v,
                      tensorflow::VariantTensorDataProto* proto) {
  proto->Clear();
  if (v.empty()) return OkStatus();
  HR_RETURN_IF_ERROR(CheckStackRoom("a variant to be saved"));
  const StringView name = v.value()->type_name();
  HR_ASSIGN_OR_RETURN(const VariantCodec codec, FindCodec(name));
  proto->set_type_name(std::string(name));
  return codec.encode(*v.value(), proto);
}

StatusOr<Variant> VariantFromProto(
    const tensorflow::VariantTensorDataProto& proto) {
  if (proto.type_name().empty()) return Variant();
  HR_RETURN_IF_ERROR(CheckStackRoom("a saved variant"));
  HR_ASSIGN_OR_RETURN(const VariantCodec codec, FindCodec(proto.type_name()));
  HR_ASSIGN_OR_RETURN(auto value, codec.decode(proto));
  return Variant(std::move(value));
}

StatusOr<std::vector<std::string>> VariantsToBytes(const Tensor& t) {
  std::vector<std::string> values;
  for (const Variant& v : t.span<Variant>()) {
    tensorflow::VariantTensorDataProto proto;
    HR_RETURN_IF_ERROR(VariantToProto(v, &proto));
    values.push_back(proto.SerializeAsString());
  }
  return values;
}

StatusOr<Tensor> VariantsFromBytes(absl::Span<const std::string> values,
                                   const Shape& shape) {
  HR_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(DType::kVariant, shape));
  if (static_cast<int64_t>(values.size()) != t.num_elements()) {
    return DataLoss(values.size(), " variants do not make a shape ", shape);
  }
  for (size_t i = 0; i < values.size(); ++i) {
    tensorflow::VariantTensorDataProto proto;
    if (!proto.ParseFromString(values[i])) {
      return DataLoss("element ", i, " is no variant");
    }
    HR_ASSIGN_OR_RETURN(t.data<Variant>()[i], VariantFromProto(proto));
  }
  return t;
}

}  // namespace headrace
