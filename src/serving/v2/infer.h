// An inference of the Open Inference Protocol, whatever way it came.
#pragma once

#include <string>
#include <vector>

#include "serving/answer/answers.h"

namespace headrace::serving {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

struct InferRequest {
  ModelSpec spec;  // name, version or label, signature
  std::vector<NamedTensor> inputs;
  std::vector<std::string> outputs;  // empty: all
};

struct InferAnswer {
  ModelSpec spec;                    // what was used; never a label
  std::vector<NamedTensor> outputs;  // in the order in which they were asked
};

// The parameter of a request that names a signature.
inline constexpr char kSignatureParameter[] = "signature_name";

// A model by name, and a version: a number, else a label; empty: the latest.
// InvalidArgument for a number that is no version.
StatusOr<ModelSpec> SpecOfModel(StringView name, StringView version);

// The errors of Models::Find; FailedPrecondition "Serving signature key "S" not
// found."; InvalidArgument for inputs and outputs other than the signature's;
// what the run says. `models` outlives the call.
void Infer(Models& models, CallPtr call, InferRequest request,
           Done<InferAnswer> done);

}  // namespace headrace::serving
