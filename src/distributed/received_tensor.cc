#include "distributed/received_tensor.h"

#include "distributed/messages.h"
#include "tensor/tensor_proto.h"
#include "tensorflow/core/protobuf/worker.pb.h"

namespace headrace::distributed {

StatusOr<SentValue> ReadReceived(const Bytes& bytes) {
  tensorflow::RecvTensorResponse response;
  HR_RETURN_IF_ERROR(ReadMessage(bytes, &response));
  SentValue value;
  value.dead = response.is_dead();
  if (value.dead) return value;
  HR_ASSIGN_OR_RETURN(value.tensor, TensorFromProto(response.tensor()));
  return value;
}

StatusOr<Bytes> WriteReceived(const SentValue& value) {
  tensorflow::RecvTensorResponse response;
  response.set_is_dead(value.dead);
  if (!value.dead) {
    HR_RETURN_IF_ERROR(TensorToProto(value.tensor, response.mutable_tensor()));
  }
  return WriteMessage(response);
}

}  // namespace headrace::distributed
