// What decides which trace of a function fits a call.
#pragma once

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "op/value.h"

namespace headrace {

// Tokens tell the dtypes and shapes of a call's arguments, and what else its
// front end adds (their structure, say); leaves are the tensors among them, the
// traced function's arguments, in order. Made anew for each call.
class Signature {
 public:
  // The first byte of a token tells its kind; front ends have their own from
  // kFirstOwn on.
  enum Tag : uint64_t { kTensor = 1, kHandle, kVariable, kFirstOwn };
  static constexpr uint64_t Token(uint64_t tag, uint64_t low) {
    return tag << 56 | low;
  }

  void AddToken(uint64_t token) { tokens_.push_back(token); }
  // A tensor: its dtype and shape, and those of what is behind a handle.
  void AddTensor(const Value& v);
  // A variable of that dtype and shape behind `handle`. The same variable given
  // twice is another signature than two variables.
  void AddVariable(const Value& handle, DType dtype, const Shape& shape,
                   bool trainable);

  absl::Span<const uint64_t> tokens() const { return tokens_; }
  absl::Span<const Value> leaves() const { return leaves_; }

 private:
  void AddShape(Tag tag, DType dtype, const Shape& shape);

  absl::InlinedVector<uint64_t, 64> tokens_;
  absl::InlinedVector<Value, 24> leaves_;
  absl::InlinedVector<uint64_t, 4> variables_;  // ids of handles met
};

}  // namespace headrace
