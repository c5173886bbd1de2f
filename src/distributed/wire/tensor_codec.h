// RecvTensorResponse, TensorFlow's message of a tensor under way, written
// around the tensor's own buffer and read from pieces.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/status.h"
#include "distributed/wire/bytes.h"
#include "tensor/tensor.h"

namespace headrace::distributed {

struct ReceivedTensor {
  Tensor tensor;  // none where it is dead
  bool is_dead = false;
  int64_t send_start_micros = 0;
  bool require_ack = false;
};

// The message: a piece of head, and the buffer of a tensor of more than a
// kilobyte as it is, which is kept alive. Elements that are no plain bytes are
// in TensorProto's lists. As TensorToProto where it fails.
StatusOr<Bytes> EncodeReceived(const ReceivedTensor& received);

// Of bytes in one piece at the right place the tensor takes them as they are;
// others are copied once. InvalidArgument where they are no such message, name
// no dtype or no whole shape, or are not as long as both say; else as
// TensorFromProto. No memory is taken before that is known.
StatusOr<ReceivedTensor> DecodeReceived(const Bytes& bytes);

// The same in parts, of a method of ours: the first is a RecvTensorResponse, of
// a plain tensor without its content, whose bytes follow, at most `size` a
// part.
StatusOr<std::vector<Bytes>> EncodeInParts(const ReceivedTensor& received,
                                           size_t size);

// Puts the parts together as they come, for one thread at a time.
class TensorParts {
 public:
  // `longest`: the most bytes that a first part may announce: memory is taken
  // for them at once. ResourceExhausted beyond.
  explicit TensorParts(size_t longest = SIZE_MAX) : longest_(longest) {}

  // InvalidArgument where it cannot be such a part, or is one too many.
  Status Add(const Bytes& part);
  // InvalidArgument where parts are missing.
  StatusOr<ReceivedTensor> Finish();

 private:
  Status AddFirst(const Bytes& part);

  const size_t longest_;
  std::optional<ReceivedTensor> received_;
  size_t there_ = 0, wanted_ = 0;
};

}  // namespace headrace::distributed
