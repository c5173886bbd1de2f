// What signatures say that they are for.
#pragma once

#include <initializer_list>

#include "absl/strings/str_join.h"
#include "serving/model/servable.h"

namespace headrace::serving {

inline constexpr char kPredictMethod[] = "tensorflow/serving/predict";
inline constexpr char kClassifyMethod[] = "tensorflow/serving/classify";
inline constexpr char kRegressMethod[] = "tensorflow/serving/regress";

// Internal where the signature's method is none of `expected`.
inline Status CheckMethodName(const Signature& signature,
                              std::initializer_list<StringView> expected) {
  const std::string& method = signature.def->method_name();
  for (const StringView one : expected) {
    if (method == one) return OkStatus();
  }
  return Internal("Expected the method of signature ", signature.key,
                  " to be one of {", absl::StrJoin(expected, ", "),
                  "}. Was: ", method);
}

}  // namespace headrace::serving
