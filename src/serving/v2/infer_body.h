// Inferences as bodies of HTTP: JSON, with tensors in it or in bytes after it.
#pragma once

#include <vector>

#include "serving/v2/infer.h"

namespace headrace::serving {

// How a client wants to be answered.
struct InferReply {
  std::string id;
  bool binary = false;              // all outputs, where none is named
  std::vector<bool> binary_output;  // of each that is named
};

struct InferBody {
  InferRequest request;  // but for the model and its version
  InferReply reply;
};

// `header_length`: what the header Inference-Header-Content-Length says: how
// many bytes of the body are JSON; empty: all. InvalidArgument for all that
// does not fit together, and for parameters that are not supported.
StatusOr<InferBody> ReadInferBody(StringView body, StringView header_length);

struct InferAnswerBody {
  std::string bytes;
  size_t json_bytes = 0;
  bool binary = false;  // whether json_bytes is to be told
};
// InvalidArgument where an output cannot be JSON; Unimplemented for types that
// the protocol has no name of.
StatusOr<InferAnswerBody> WriteInferBody(const InferReply& reply,
                                         const InferAnswer& answer);

}  // namespace headrace::serving
