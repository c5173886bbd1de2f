// The body of a predict request over REST.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "serving/json/json_text.h"
#include "serving/model/servable.h"

namespace headrace::serving {

enum class PredictFormat { kRows, kColumns };  // "instances", "inputs"

class PredictBody {
 public:
  // InvalidArgument where `text` does not begin with a JSON object. Points into
  // `text`.
  static StatusOr<PredictBody> Parse(StringView text);

  // What "signature_name" says; empty where it is not there, InvalidArgument
  // where it is no string.
  StatusOr<std::string> SignatureName() const;

  struct Inputs {
    PredictFormat format;
    Tensors tensors;  // in the order of the arguments
  };
  // Of the arguments that the signature has defaults for (`may_lack`, by place;
  // empty: none) those that the body lacks come without a dtype; rows lack all
  // the same. InvalidArgument with the stock server's texts; Unimplemented for
  // types that JSON has no values of.
  StatusOr<Inputs> Read(absl::Span<const Argument> arguments,
                        const std::vector<bool>& may_lack = {}) const;

 private:
  StringView value_;
  JsonMember signature_name_, instances_, inputs_;
};

// "JSON Value: V Is not object" where it is none.
Status CheckIsObject(const JsonBody& body);
// The string that a request's member "signature_name" is; empty without one.
StatusOr<std::string> SignatureNameOf(const JsonMember& member);

}  // namespace headrace::serving
