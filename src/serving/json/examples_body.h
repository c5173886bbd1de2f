// The body of a classify or regress request over REST.
#pragma once

#include <string>

#include "base/status.h"
#include "tensorflow_serving/apis/input.pb.h"

namespace headrace::serving {

struct ExamplesBody {
  std::string signature_name;  // empty: none was given
  // Example protos: those of "examples", beside that of "context" where there
  // is one.
  tensorflow::serving::Input input;
};
// InvalidArgument with the stock server's texts.
StatusOr<ExamplesBody> ReadExamplesBody(StringView text);

}  // namespace headrace::serving
