// DecodeJSONExample: Examples written as JSON, by protobuf's rules for it.
#include <google/protobuf/util/json_util.h>

#include "op/op.h"
#include "tensorflow/core/example/example.pb.h"

namespace headrace {
namespace {

namespace pb = google::protobuf;

Status DecodeJson(KernelContext& c) {
  const std::string* texts = c.in<std::string>(0);
  std::string* examples = c.out<std::string>(0);
  for (int64_t i = 0; i < c.input(0).num_elements(); ++i) {
    HR_RETURN_IF_ERROR(c.CheckCancelled());
    tensorflow::Example example;
    const auto status = pb::util::JsonStringToMessage(texts[i], &example);
    if (!status.ok()) {
      return InvalidArgument("Error while parsing JSON: ",
                             status.message().as_string());
    }
    if (!example.SerializeToString(&examples[i])) {
      return InvalidArgument("Error while parsing JSON: over 2 GiB");
    }
  }
  return OkStatus();
}

HR_OP(DecodeJSONExample)
    .Input("json_examples: string")
    .Output("binary_examples: string")
    .Doc("Serialised Examples of such as are written in JSON.")
    .Shape(UnchangedShape)
    .NoGradient()
    .Cpu(Compute<DecodeJson>);

}  // namespace
}  // namespace headrace
