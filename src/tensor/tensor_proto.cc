#include "tensor/tensor_proto.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/numbers/bools.h"
#include "tensor/variant_codec.h"
#include "tensorflow/core/framework/resource_handle.pb.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"
#include "tensorflow/core/framework/types.pb.h"

namespace headrace {
namespace {

using tensorflow::ResourceHandleProto;
using tensorflow::TensorProto;

// Copies values[0..] to the elements, the last one into all that remain.
// Narrower element types take the low bits, as the wire format means them.
template <typename T, typename List>
void FillFrom(const List& values, Tensor& t) {
  T* out = t.data<T>();
  int64_t n = t.num_elements();
  int64_t given = std::min<int64_t>(n, values.size());
  for (int64_t i = 0; i < given; ++i) {
    out[i] = static_cast<T>(values[static_cast<int>(i)]);
  }
  T last = given > 0 ? out[given - 1] : T{};
  for (int64_t i = given; i < n; ++i) out[i] = last;
}

template <typename Real, typename List>
void FillComplex(const List& values, Tensor& t) {
  auto* out = t.data<std::complex<Real>>();
  int64_t n = t.num_elements();
  int64_t given = std::min<int64_t>(n, values.size() / 2);
  for (int64_t i = 0; i < given; ++i) {
    int at = static_cast<int>(i) * 2;
    out[i] = {values[at], values[at + 1]};
  }
  std::complex<Real> last = given > 0 ? out[given - 1] : 0;
  for (int64_t i = given; i < n; ++i) out[i] = last;
}

void FillStrings(const TensorProto& proto, Tensor& t) {
  auto* out = t.data<std::string>();
  int64_t n = t.num_elements();
  int64_t given = std::min<int64_t>(n, proto.string_val_size());
  for (int64_t i = 0; i < given; ++i) {
    out[i] = proto.string_val(static_cast<int>(i));
  }
  if (given == 0) return;
  for (int64_t i = given; i < n; ++i) out[i] = out[given - 1];
}

ResourceHandle HandleFromProto(const ResourceHandleProto& p) {
  ResourceHandle h;
  h.device = p.device();
  h.container = p.container();
  h.name = p.name();
  auto data = std::make_shared<HandleData>();
  for (const auto& part : p.dtypes_and_shapes()) {
    StatusOr<Shape> shape = ShapeFromProto(part.shape());
    data->push_back({static_cast<DType>(part.dtype()),
                     shape.ok() ? *shape : Shape::UnknownRank()});
  }
  if (!data->empty()) h.data = std::move(data);
  return h;
}

void FillHandles(const TensorProto& proto, Tensor& t) {
  auto* out = t.data<ResourceHandle>();
  int64_t n = t.num_elements();
  int64_t given = std::min<int64_t>(n, proto.resource_handle_val_size());
  for (int64_t i = 0; i < given; ++i) {
    out[i] = HandleFromProto(proto.resource_handle_val(static_cast<int>(i)));
  }
}

// Fills by the typed list of the dtype; false where it has none.
bool FillTyped(const TensorProto& p, Tensor& t) {
  switch (t.dtype()) {
    case DType::kFloat:
      return FillFrom<float>(p.float_val(), t), true;
    case DType::kDouble:
      return FillFrom<double>(p.double_val(), t), true;
    case DType::kInt32:
    case DType::kQint32:
      return FillFrom<int32_t>(p.int_val(), t), true;
    case DType::kInt16:
    case DType::kUint16:
    case DType::kQint16:
    case DType::kQuint16:
      return FillFrom<uint16_t>(p.int_val(), t), true;
    case DType::kInt8:
    case DType::kUint8:
    case DType::kQint8:
    case DType::kQuint8:
    case DType::kInt4:
    case DType::kUint4:
    case DType::kInt2:
    case DType::kUint2:
      return FillFrom<uint8_t>(p.int_val(), t), true;
    case DType::kHalf:
    case DType::kBfloat16:
      return FillFrom<uint16_t>(p.half_val(), t), true;
    case DType::kFloat8E5m2:
    case DType::kFloat8E4m3fn:
    case DType::kFloat8E4m3fnuz:
    case DType::kFloat8E4m3b11fnuz:
    case DType::kFloat8E5m2fnuz:
      return FillFrom<uint8_t>(p.float8_val(), t), true;
    case DType::kInt64:
      return FillFrom<int64_t>(p.int64_val(), t), true;
    case DType::kUint32:
      return FillFrom<uint32_t>(p.uint32_val(), t), true;
    case DType::kUint64:
      return FillFrom<uint64_t>(p.uint64_val(), t), true;
    case DType::kBool:
      return FillFrom<bool>(p.bool_val(), t), true;
    case DType::kComplex64:
      return FillComplex<float>(p.scomplex_val(), t), true;
    case DType::kComplex128:
      return FillComplex<double>(p.dcomplex_val(), t), true;
    case DType::kString:
      return FillStrings(p, t), true;
    case DType::kResource:
      return FillHandles(p, t), true;
    default:
      return t.dtype() == DType::kVariant;  // empty ones
  }
}

// tensor_content of strings and variants: the lengths as varints, then the
// bytes.
bool SplitStrings(const std::string& content, absl::Span<std::string> out) {
  size_t at = 0;
  std::vector<uint64_t> lengths(out.size());
  for (uint64_t& length : lengths) {
    length = 0;
    int shift = 0;
    while (true) {
      // Nine bytes of seven bits: no string is longer than 2^63.
      if (at >= content.size() || shift > 56) return false;
      uint8_t byte = content[at++];
      length |= uint64_t{byte & 0x7fu} << shift;
      if (!(byte & 0x80)) break;
      shift += 7;
    }
  }
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] > content.size() - at) return false;
    out[i] = content.substr(at, lengths[i]);
    at += lengths[i];
  }
  return at == content.size();
}

Status Unparsable(const TensorProto& proto) {
  // Upstream shows the proto; a large one would drown the message.
  std::string text = proto.ByteSizeLong() < 1000
                         ? proto.DebugString()
                         : absl::StrCat(proto.ByteSizeLong(), " bytes");
  return InvalidArgument("Cannot parse tensor from proto: ", text);
}

Status ReadVariants(const TensorProto& proto, Tensor& t) {
  if (proto.variant_val_size() != t.num_elements()) return Unparsable(proto);
  for (int i = 0; i < proto.variant_val_size(); ++i) {
    HR_ASSIGN_OR_RETURN(t.data<Variant>()[i],
                        VariantFromProto(proto.variant_val(i)));
  }
  return OkStatus();
}

template <typename T, typename List>
void AddAll(const Tensor& t, List* list) {
  const absl::Span<const T> values = t.span<T>();
  list->Add(values.begin(), values.end());
}

void HandleToProto(const ResourceHandle& h, ResourceHandleProto* p) {
  p->set_device(h.device);
  p->set_container(h.container);
  p->set_name(h.name);
  if (!h.data) return;
  for (const HandlePart& part : *h.data) {
    auto* out = p->add_dtypes_and_shapes();
    out->set_dtype(
        static_cast<tensorflow::DataType>(static_cast<int>(part.dtype)));
    ShapeToProto(part.shape, out->mutable_shape());
  }
}

// Puts the elements in the typed list of their dtype; false where it has none.
bool AddTyped(const Tensor& t, TensorProto* p) {
  switch (t.dtype()) {
    case DType::kFloat:
      return AddAll<float>(t, p->mutable_float_val()), true;
    case DType::kDouble:
      return AddAll<double>(t, p->mutable_double_val()), true;
    case DType::kInt32:
      return AddAll<int32_t>(t, p->mutable_int_val()), true;
    case DType::kUint8:
      return AddAll<uint8_t>(t, p->mutable_int_val()), true;
    case DType::kInt16:
      return AddAll<int16_t>(t, p->mutable_int_val()), true;
    case DType::kInt8:
      return AddAll<int8_t>(t, p->mutable_int_val()), true;
    case DType::kUint16:
      return AddAll<uint16_t>(t, p->mutable_int_val()), true;
    case DType::kInt64:
      return AddAll<int64_t>(t, p->mutable_int64_val()), true;
    case DType::kBool:
      return AddAll<bool>(t, p->mutable_bool_val()), true;
    case DType::kHalf:
    case DType::kBfloat16:
      return AddAll<uint16_t>(t, p->mutable_half_val()), true;
    case DType::kUint32:
      return AddAll<uint32_t>(t, p->mutable_uint32_val()), true;
    case DType::kUint64:
      return AddAll<uint64_t>(t, p->mutable_uint64_val()), true;
    default:
      return false;
  }
}

Status ReadVariantContent(const TensorProto& proto, Tensor& t) {
  std::vector<std::string> values(t.num_elements());
  if (!SplitStrings(proto.tensor_content(), absl::MakeSpan(values))) {
    return Unparsable(proto);
  }
  for (size_t i = 0; i < values.size(); ++i) {
    tensorflow::VariantTensorDataProto data;
    if (!data.ParseFromString(values[i])) return Unparsable(proto);
    HR_ASSIGN_OR_RETURN(t.data<Variant>()[i], VariantFromProto(data));
  }
  return OkStatus();
}

}  // namespace

StatusOr<Shape> ShapeFromProto(const tensorflow::TensorShapeProto& proto) {
  if (proto.unknown_rank()) {
    if (proto.dim_size() > 0) {
      return InvalidArgument("An unknown shape must not have any dimensions.");
    }
    return Shape::UnknownRank();
  }
  absl::InlinedVector<int64_t, 8> dims;
  for (const auto& d : proto.dim()) dims.push_back(d.size());
  return Shape::Make(dims, /*allow_unknown=*/true);
}

void ShapeToProto(const Shape& s, tensorflow::TensorShapeProto* proto) {
  if (!s.known_rank()) return proto->set_unknown_rank(true);
  for (int64_t d : s.dims()) proto->add_dim()->set_size(d);
}

StatusOr<Tensor> TensorFromProto(const TensorProto& proto) {
  if (!DTypeIsValid(proto.dtype()) || proto.dtype() >= kRefOffset) {
    return Unparsable(proto);
  }
  DType dtype = static_cast<DType>(proto.dtype());
  HR_ASSIGN_OR_RETURN(Shape shape, ShapeFromProto(proto.tensor_shape()));
  if (!shape.fully_known()) return Unparsable(proto);
  int64_t bytes;
  if (!MultiplyChecked(shape.num_elements(),
                       static_cast<int64_t>(DTypeSize(dtype)), &bytes)) {
    return Unparsable(proto);
  }
  const std::string& content = proto.tensor_content();
  bool plain = IsPlain(dtype);
  if (!content.empty() && plain &&
      static_cast<int64_t>(content.size()) != bytes) {
    return Unparsable(proto);
  }
  if (!content.empty() && !plain &&
      // Each string takes at least a byte, for its length: more elements than
      // bytes is damage, seen before memory is taken.
      shape.num_elements() > static_cast<int64_t>(content.size())) {
    return Unparsable(proto);
  }
  if (bytes > kMostRepeatedBytes &&
      // A proto may say one value for all elements; from a file, a few bytes
      // must not take gigabytes.
      bytes / 16 > static_cast<int64_t>(proto.ByteSizeLong())) {
    return ResourceExhausted("a tensor of shape ", shape,
                             " written in few bytes is too large to hold");
  }
  HR_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(dtype, shape));
  if (dtype == DType::kVariant && proto.variant_val_size() > 0) {
    HR_RETURN_IF_ERROR(ReadVariants(proto, t));
  } else if (content.empty()) {
    if (!FillTyped(proto, t)) {
      return Unimplemented("tensors of ", DTypeName(dtype),
                           " that hold something cannot be read from a proto");
    }
  } else if (plain) {
    std::memcpy(t.raw(), content.data(), content.size());
    // Bytes from outside other than 0 and 1 are no bools in C++.
    if (dtype == DType::kBool) MakeBools(t.raw(), bytes);
  } else if (dtype == DType::kVariant) {
    HR_RETURN_IF_ERROR(ReadVariantContent(proto, t));
  } else if (dtype != DType::kString ||
             !SplitStrings(content, absl::MakeSpan(t.data<std::string>(),
                                                   t.num_elements()))) {
    return Unparsable(proto);
  }
  return t;
}

namespace {

Status Write(const Tensor& t, bool typed, TensorProto* proto) {
  proto->set_dtype(
      static_cast<tensorflow::DataType>(static_cast<int>(t.dtype())));
  ShapeToProto(t.shape(), proto->mutable_tensor_shape());
  if (!t.has_buffer() || t.num_elements() == 0) return OkStatus();
  if (t.dtype() == DType::kString) {
    for (const std::string& s : t.span<std::string>()) proto->add_string_val(s);
  } else if (t.dtype() == DType::kResource) {
    for (const ResourceHandle& h : t.span<ResourceHandle>()) {
      HandleToProto(h, proto->add_resource_handle_val());
    }
  } else if (t.dtype() == DType::kVariant) {
    for (const Variant& v : t.span<Variant>()) {
      HR_RETURN_IF_ERROR(VariantToProto(v, proto->add_variant_val()));
    }
  } else if (!IsPlain(t.dtype())) {
    return Unimplemented("tensors of ", DTypeName(t.dtype()),
                         " cannot be written to a proto");
    // Scalars and the like go to their typed list, as upstream writes them: so
    // equal graphs are equal bytes.
  } else if ((t.num_elements() > 1 && !typed) || !AddTyped(t, proto)) {
    proto->set_tensor_content(t.raw(), t.bytes());
  }
  return OkStatus();
}

}  // namespace

Status TensorToProto(const Tensor& t, TensorProto* proto) {
  return Write(t, false, proto);
}

Status TensorToTypedProto(const Tensor& t, TensorProto* proto) {
  return Write(t, true, proto);
}

}  // namespace headrace
