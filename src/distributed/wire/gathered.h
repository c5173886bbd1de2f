// Tensors of one step that travel together: answers to PullTensors come in
// parts of several tensors each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "distributed/wire/tensor_codec.h"

namespace headrace::distributed {

// One that was asked for.
struct GatheredTensor {
  uint32_t number = 0;    // among those that were asked for
  bool in_parts = false;  // it is to be fetched by itself, by PullTensor
  ReceivedTensor received;
};

// Writes a message around the buffers of the larger tensors.
class GatheredWriter {
 public:
  // As EncodeReceived.
  Status Add(const GatheredTensor& tensor);
  size_t size() const { return text_.size() + message_.size(); }
  Bytes Take();

 private:
  std::string text_;  // behind the message so far
  Bytes message_;
};

// All of a message. InvalidArgument where it is none; as DecodeReceived.
StatusOr<std::vector<GatheredTensor>> ReadGathered(const Bytes& part);

}  // namespace headrace::distributed
