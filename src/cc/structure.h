// What the public header's Reader reads from.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "cc/access.h"
#include "function/signature.h"
#include "headrace/structure.h"

namespace headrace::tf::internal {

// Tokens, and the values of the tensors and variables among them.
struct Reader::Source {
  TokenSpan tokens;
  absl::Span<const Value> values;
  // For messages: whether these are the arguments of a call, or its results.
  bool is_call = false;
  absl::Span<const std::string> names = {};
};

// What a Reader throws: who asked it adds whose arguments or results they are.
class Misread : public Error {
 public:
  explicit Misread(const std::string& text)
      : Error(ErrorCode::kInvalidArgument, text) {}
};

// A structure, taken apart.
inline Signature TakenApart(Given given) {
  Signature signature;
  Parts parts(&signature);
  given.take_apart(parts, given.value);
  return signature;
}

}  // namespace headrace::tf::internal
