#include "c/tensor.h"

#include <cstring>

#include "base/numbers/bools.h"
#include "c/buffer.h"
#include "c/status.h"
#include "c/strings.h"
#include "c/tstring.h"
#include "tensor/variant.h"
#include "tensorflow/core/framework/resource_handle.pb.h"

namespace headrace::capi {

namespace {

// The memory itself, unless callers wrote other bytes than 0 and 1 where bools
// are: it is theirs, and another thread may read it, so it stays as it is.
StatusOr<Tensor> NumbersOf(const TF_Tensor& t) {
  if (t.dtype != DType::kBool || AreBools(t.tensor.raw(), t.tensor.bytes())) {
    return t.tensor;
  }
  HR_ASSIGN_OR_RETURN(Tensor bools,
                      Tensor::Allocate(DType::kBool, t.tensor.shape()));
  std::memcpy(bools.raw(), t.tensor.raw(), bools.bytes());
  MakeBools(bools.raw(), bools.bytes());
  return bools;
}

StatusOr<Tensor> TensorOfStrings(const TF_Tensor& t) {
  HR_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(DType::kString, t.shape));
  for (int64_t i = 0; i < out.num_elements(); ++i) {
    out.data<std::string>()[i] = std::string(TextOf(t.strings->at(i)));
  }
  return out;
}

Status SetStrings(TF_Tensor* out, const Tensor& t) {
  const int64_t count = t.num_elements();
  auto strings = std::make_shared<Strings>(count);
  if (strings->data() == nullptr) {
    return ResourceExhausted("no memory for ", count, " strings");
  }
  for (int64_t i = 0; i < count; ++i) {
    HR_RETURN_IF_ERROR(InitString(&strings->at(i), t.data<std::string>()[i]));
  }
  out->data = strings->data();
  out->bytes = count * sizeof(TF_TString);
  out->strings = std::move(strings);
  return OkStatus();
}

// Handles cross as bytes; the tensor goes along, as they name what it owns.
Status SetHandle(TF_Tensor* out, const Tensor& t) {
  if (t.rank() != 0) {
    return InvalidArgument(
        "Unexpected non-scalar DT_RESOURCE tensor seen "
        "(shape: ",
        t.shape(), ")");
  }
  const ResourceHandle& h = t.scalar<ResourceHandle>();
  tensorflow::ResourceHandleProto proto;
  proto.set_device(h.device);
  proto.set_container(h.container);
  proto.set_name(h.name);
  out->handle = std::make_shared<std::string>(proto.SerializeAsString());
  out->data = out->handle->data();
  out->bytes = out->handle->size();
  out->tensor = t;
  return OkStatus();
}

}  // namespace

StatusOr<Tensor> HandleFromBytes(StringView bytes) {
  tensorflow::ResourceHandleProto proto;
  HR_RETURN_IF_ERROR(
      ReadProto(bytes.data(), bytes.size(), "ResourceHandle", &proto));
  ResourceHandle h;
  h.device = proto.device();
  h.container = proto.container();
  h.name = proto.name();
  return Tensor::Scalar(std::move(h));
}

StatusOr<Tensor> ToTensor(const TF_Tensor* t) {
  HR_RETURN_IF_ERROR(NotNull(t, "a tensor"));
  if (t->dtype == DType::kString) return TensorOfStrings(*t);
  if (t->tensor.has_buffer()) return NumbersOf(*t);
  if (t->handle) return HandleFromBytes(*t->handle);
  return InvalidArgument("a tensor of type ", DTypeName(t->dtype),
                         " has no value");
}

Status SetTensor(TF_Tensor* out, Tensor t) {
  if (!t.has_buffer()) return Internal("a result has no value");
  TF_Tensor made;
  made.dtype = t.dtype();
  made.shape = t.shape();
  if (t.dtype() == DType::kString) {
    HR_RETURN_IF_ERROR(SetStrings(&made, t));
  } else if (t.dtype() == DType::kResource) {
    HR_RETURN_IF_ERROR(SetHandle(&made, t));
  } else {
    made.data = t.raw();
    made.bytes = t.bytes();
    made.tensor = std::move(t);
  }
  *out = std::move(made);
  return OkStatus();
}

StatusOr<TF_Tensor*> FromTensor(Tensor t) {
  auto out = std::make_unique<TF_Tensor>();
  // The common way, without the copy that SetTensor makes to change all or
  // nothing.
  if (IsPlain(t.dtype()) && t.has_buffer()) [[likely]] {
    out->dtype = t.dtype();
    out->shape = t.shape();
    out->data = t.raw();
    out->bytes = t.bytes();
    out->tensor = std::move(t);
    return out.release();
  }
  HR_RETURN_IF_ERROR(SetTensor(out.get(), std::move(t)));
  return out.release();
}

StatusOr<DType> ToDType(int type) {
  if (!DTypeIsValid(type)) {
    return InvalidArgument("Invalid data type number ", type);
  }
  return static_cast<DType>(type);
}

StatusOr<Shape> ToShape(const int64_t* dims, int num_dims, bool allow_unknown) {
  if (num_dims < 0 && allow_unknown) return Shape::UnknownRank();
  if (num_dims < 0) {
    return InvalidArgument("a number of dimensions is ", num_dims);
  }
  if (num_dims > 0) HR_RETURN_IF_ERROR(NotNull(dims, "a list of dimensions"));
  if (num_dims > Shape::kMaxRank) {
    return InvalidArgument("a shape has ", num_dims, " dimensions, at most ",
                           Shape::kMaxRank, " are supported");
  }
  absl::InlinedVector<int64_t, 6> sizes(dims, dims + num_dims);
  // Any negative number means a size that is not known.
  for (int64_t& d : sizes) {
    if (allow_unknown && d < 0) d = Shape::kUnknown;
  }
  return Shape::Make(sizes, allow_unknown);
}

}  // namespace headrace::capi
