// Inferences as messages of gRPC.
#pragma once

#include "inference/grpc_service.pb.h"
#include "serving/v2/infer.h"

namespace headrace::serving {

// Takes the raw contents out of `message`. InvalidArgument for what does not
// fit together, and for parameters that are not supported.
StatusOr<InferRequest> ReadInferMessage(inference::ModelInferRequest* message);

// `raw`: as raw_output_contents; so also where an output's type has no field of
// its own. Unimplemented for types that the protocol has no name of.
StatusOr<inference::ModelInferResponse> WriteInferMessage(
    const std::string& id, bool raw, const InferAnswer& answer);

}  // namespace headrace::serving
