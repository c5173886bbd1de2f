// ParseTensor and SerializeTensor: a tensor as the bytes of a TensorProto.
#include "absl/strings/escaping.h"
#include "op/op.h"
#include "tensor/tensor_proto.h"
#include "tensorflow/core/framework/tensor.pb.h"

namespace headrace {
namespace {

Status Parse(KernelContext& c) {
  const Tensor& serialized = c.input(0);
  if (serialized.rank() != 0) {
    return InvalidArgument("Expected `serialized` to be a scalar, got shape: ",
                           serialized.shape());
  }
  tensorflow::TensorProto proto;
  if (!proto.ParseFromString(serialized.scalar<std::string>())) {
    return InvalidArgument(
        "Could not parse `serialized` as TensorProto, base64: ",
        absl::Base64Escape(serialized.scalar<std::string>().substr(0, 200)));
  }
  HR_ASSIGN_OR_RETURN(Tensor t, TensorFromProto(proto));
  const DType wanted = c.op().type_attr("out_type");
  if (t.dtype() != wanted) {
    return InvalidArgument("Type mismatch between parsed tensor (",
                           DTypeName(t.dtype()), ") and dtype (",
                           DTypeName(wanted), ")");
  }
  c.set_output(0, std::move(t));
  return OkStatus();
}

HR_OP(ParseTensor)
    .Input("serialized: string")
    .Output("output: out_type")
    .Attr("out_type: type")
    .Doc("The tensor that a serialised TensorProto holds.")
    .Shape(UnknownShape)
    .NoGradient()
    .Cpu(ComputeOwn<Parse>);

// What TensorToProto writes as tensor_content, put behind the other fields
// without a copy in between.
Status SerializeContent(const Tensor& t, std::string* out) {
  tensorflow::TensorProto proto;
  HR_RETURN_IF_ERROR(TensorToProto(Tensor(t.dtype(), t.shape()), &proto));
  if (t.bytes() > static_cast<size_t>(INT32_MAX) - 4096) {
    return InvalidArgument("a tensor of over 2 GiB cannot be serialised: ",
                           t.Describe());
  }
  std::string head = proto.SerializeAsString();
  head += static_cast<char>(proto.kTensorContentFieldNumber << 3 | 2);
  for (size_t left = t.bytes();; left >>= 7) {
    head += static_cast<char>(left < 128 ? left : left % 128 | 128);
    if (left < 128) break;
  }
  out->reserve(head.size() + t.bytes());
  out->append(head);
  out->append(static_cast<const char*>(t.raw()), t.bytes());
  return OkStatus();
}

Status Serialize(KernelContext& c) {
  if (IsPlain(c.input(0).dtype()) && c.input(0).num_elements() > 1) {
    return SerializeContent(c.input(0), c.out<std::string>(0));
  }
  tensorflow::TensorProto proto;
  HR_RETURN_IF_ERROR(TensorToProto(c.input(0), &proto));
  if (!proto.SerializeToString(c.out<std::string>(0))) {
    return InvalidArgument("a tensor of over 2 GiB cannot be serialised: ",
                           c.input(0).Describe());
  }
  return OkStatus();
}

HR_OP(SerializeTensor)
    .Input("tensor: T")
    .Output("serialized: string")
    .Attr("T: type")
    .Doc("A tensor as a serialised TensorProto.")
    .Shape(ScalarShape)
    .NoGradient()
    .Cpu(Compute<Serialize>);

}  // namespace
}  // namespace headrace
