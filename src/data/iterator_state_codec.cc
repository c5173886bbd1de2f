// Iterators' states in checkpoints, as upstream writes them: one variant of
// type "tensorflow::Iterator" a prefix, its metadata the prefix and the keys
// joined by "@@", its tensors one compressed element with all values.
#include <limits>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/coding.h"
#include "data/state.h"
#include "formats/snappy.h"
#include "tensor/tensor_proto.h"
#include "tensor/variant_codec.h"
#include "tensorflow/core/framework/dataset.pb.h"
#include "tensorflow/core/framework/tensor.pb.h"

namespace headrace {
namespace {

using tensorflow::CompressedElement;
using tensorflow::VariantTensorDataProto;

constexpr char kJoin[] = "@@";
constexpr char kCompressed[] = "tensorflow.data.CompressedElement";
// Protos cannot be larger than 2 GiB, and hold the bytes packed.
constexpr size_t kMostStateBytes = size_t{1} << 31;

// Bytes of one component behind the others in *data, its sizes in *about.
Status PackComponent(const Tensor& t, std::string* data,
                     tensorflow::CompressedComponentMetadata* about) {
  about->set_dtype(
      static_cast<tensorflow::DataType>(static_cast<int>(t.dtype())));
  ShapeToProto(t.shape(), about->mutable_tensor_shape());
  if (t.dtype() == DType::kString) {
    for (const std::string& s : t.span<std::string>()) {
      about->add_uncompressed_bytes(s.size());
      data->append(s);
    }
  } else if (IsPlain(t.dtype())) {
    about->add_uncompressed_bytes(t.bytes());
    // An empty tensor may have no memory to point at.
    if (t.num_elements() > 0) {
      data->append(static_cast<const char*>(t.raw()), t.bytes());
    }
  } else {
    // Other types (variants, handles) go as protos, whose length is their only
    // size.
    tensorflow::TensorProto proto;
    HR_RETURN_IF_ERROR(TensorToProto(t, &proto));
    const std::string bytes = proto.SerializeAsString();
    about->add_uncompressed_bytes(bytes.size());
    data->append(bytes);
  }
  return OkStatus();
}

Status Encode(const VariantValue& value, VariantTensorDataProto* proto) {
  const auto& state = static_cast<const IteratorState&>(value);
  CompressedElement element;
  std::string data, metadata = state.prefix;
  for (const auto& [key, tensor] : state.entries) {
    absl::StrAppend(&metadata, kJoin, key);
    HR_RETURN_IF_ERROR(
        PackComponent(tensor, &data, element.add_component_metadata()));
  }
  if (data.size() > kMostStateBytes) {
    return ResourceExhausted("the state of ", state.prefix, " has ",
                             data.size(), " bytes, too many to save");
  }
  SnappyPack(data, element.mutable_data());
  proto->set_metadata(std::move(metadata));
  tensorflow::TensorProto* tensor = proto->add_tensors();
  tensor->set_dtype(tensorflow::DT_VARIANT);
  tensor->mutable_tensor_shape();
  VariantTensorDataProto* held = tensor->add_variant_val();
  held->set_type_name(kCompressed);
  held->set_metadata(element.SerializeAsString());
  return OkStatus();
}

Status Damaged(StringView prefix) {
  return DataLoss("the saved state of iterator ", prefix, " is damaged");
}

// One component from the front of *data.
StatusOr<Tensor> UnpackComponent(
    StringView prefix, const tensorflow::CompressedComponentMetadata& about,
    StringView* data) {
  HR_ASSIGN_OR_RETURN(Shape shape, ShapeFromProto(about.tensor_shape()));
  const auto dtype = static_cast<DType>(about.dtype());
  if (!DTypeIsValid(about.dtype()) || !shape.fully_known()) {
    return Damaged(prefix);
  }
  auto take = [&](uint64_t bytes, StringView* out) {
    return GetBytes(data, bytes, out);
  };
  StringView bytes;
  const auto& sizes = about.uncompressed_bytes();
  if (dtype == DType::kString) {
    // Before memory is taken: a damaged shape may name any number.
    if (sizes.size() != shape.num_elements()) return Damaged(prefix);
    HR_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(dtype, shape));
    for (int i = 0; i < sizes.size(); ++i) {
      if (!take(sizes[i], &bytes)) return Damaged(prefix);
      t.data<std::string>()[i] = std::string(bytes);
    }
    return t;
  }
  if (sizes.size() != 1 || !take(sizes[0], &bytes)) return Damaged(prefix);
  if (!IsPlain(dtype)) {
    tensorflow::TensorProto proto;
    if (bytes.size() > std::numeric_limits<int>::max() ||
        !proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      return Damaged(prefix);
    }
    return TensorFromProto(proto);
  }
  // The shape and the bytes must agree before memory is taken.
  int64_t needed;
  if (!MultiplyChecked(shape.num_elements(),
                       static_cast<int64_t>(DTypeSize(dtype)), &needed) ||
      needed != static_cast<int64_t>(bytes.size())) {
    return Damaged(prefix);
  }
  HR_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(dtype, shape));
  if (needed > 0) std::memcpy(t.raw(), bytes.data(), bytes.size());
  return t;
}

StatusOr<std::vector<Tensor>> Uncompress(StringView prefix,
                                         const std::string& serialized) {
  CompressedElement element;
  std::string unpacked;
  if (!element.ParseFromString(serialized) || element.version() != 0 ||
      !SnappyUnpack(element.data(), &unpacked)) {
    return Damaged(prefix);
  }
  StringView rest = unpacked;
  std::vector<Tensor> values;
  for (const auto& about : element.component_metadata()) {
    HR_ASSIGN_OR_RETURN(Tensor t, UnpackComponent(prefix, about, &rest));
    values.push_back(std::move(t));
  }
  if (!rest.empty()) return Damaged(prefix);
  return values;
}

StatusOr<std::shared_ptr<const VariantValue>> Decode(
    const VariantTensorDataProto& proto) {
  const std::vector<std::string> parts =
      absl::StrSplit(proto.metadata(), kJoin);
  auto state = std::make_shared<IteratorState>();
  state->prefix = parts[0];
  if (state->prefix.empty()) return Damaged(parts[0]);
  std::vector<Tensor> values;
  // States may hold their tensors as they are, too, not compressed.
  const bool one = proto.tensors_size() == 1 &&
                   proto.tensors(0).variant_val_size() == 1 &&
                   proto.tensors(0).variant_val(0).type_name() == kCompressed;
  if (one) {
    HR_ASSIGN_OR_RETURN(
        values,
        Uncompress(parts[0], proto.tensors(0).variant_val(0).metadata()));
  } else {
    for (const tensorflow::TensorProto& t : proto.tensors()) {
      HR_ASSIGN_OR_RETURN(Tensor value, TensorFromProto(t));
      values.push_back(std::move(value));
    }
  }
  if (values.size() + 1 != parts.size()) return Damaged(parts[0]);
  for (size_t i = 0; i < values.size(); ++i) {
    state->entries.emplace_back(parts[i + 1], std::move(values[i]));
  }
  return std::shared_ptr<const VariantValue>(std::move(state));
}

[[maybe_unused]] const bool registered =
    RegisterVariantCodec("tensorflow::Iterator", {Encode, Decode});

}  // namespace
}  // namespace headrace
