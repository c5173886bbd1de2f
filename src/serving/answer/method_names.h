// What signatures say that they are for.
#pragma once

#include <initializer_list>

#include "absl/strings/str_join.h"
#include "serving/model/servable.h"

namespace headrace::serving {

inline constexpr char kPredictMethod[] = "tensorflow/serving/predict";
inline constexpr char kClassifyMethod[] = "tensorflow/serving/classify";
inline constexpr char kRegressMethod[] = "tensorflow/serving/regress";

// Internal where the signature's method is none of `expected`; `what` is what
// the request wants.
inline Status CheckMethodName(const Signature& signature, StringView what,
                              std::initializer_list<StringView> expected) {
  const std::string& method = signature.def->method_name();
  for (const StringView one : expected) {
    if (method == one) return OkStatus();
  }
  return Internal("Expected ", what, " signature method_name to be one of {",
                  absl::StrJoin(expected, ", "), "}. Was: ", method);
}

// What Predict takes.
inline Status CheckPredictMethod(const Signature& signature) {
  return CheckMethodName(signature, "prediction",
                         {kPredictMethod, kClassifyMethod, kRegressMethod});
}

}  // namespace headrace::serving
