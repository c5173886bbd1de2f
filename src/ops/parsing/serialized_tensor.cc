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

Status Serialize(KernelContext& c) {
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
