// What decides which trace of a function fits a call.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "op/value.h"

namespace headrace {

// Tokens tell the dtypes and shapes of a call's arguments, their structure and
// the values among them; leaves are the tensors, the traced function's
// arguments, in order. Made anew for each call.
class Signature {
 public:
  // The first byte of a token tells its kind. Those up to kFirstOwn are every
  // language's; a front end has its own from there on, which only it can read.
  enum Tag : uint64_t {
    kTensor = 1,  // dtype and rank (255: unknown), then the sizes
    kHandle,      // the same of what is behind the tensor before it
    kVariable,    // as kTensor, then which variable of the call it is
    kNone,
    kBool,   // 0 or 1
    kInt,    // then the number
    kFloat,  // then the bits of a double
    kText,   // the length, then the bytes, eight a token
    kTuple,  // the count, then the items
    kList,   // as kTuple
    kDict,   // the count, then by rising keys: kText of the key, value
    kFirstOwn
  };
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
  // A tensor to come, which has no leaf.
  void AddSpec(DType dtype, const Shape& shape) {
    AddShape(kTensor, dtype, shape);
  }
  void AddNone() { AddToken(Token(kNone, 0)); }
  void AddBool(bool v) { AddToken(Token(kBool, v)); }
  void AddInt(int64_t v);
  void AddFloat(double v);
  void AddText(StringView text);
  // kTuple, kList or kDict of so many items, which follow.
  void AddStructure(Tag tag, size_t count) { AddToken(Token(tag, count)); }

  absl::Span<const uint64_t> tokens() const { return tokens_; }
  absl::Span<const Value> leaves() const { return leaves_; }

 private:
  void AddShape(Tag tag, DType dtype, const Shape& shape);

  absl::InlinedVector<uint64_t, 64> tokens_;
  absl::InlinedVector<Value, 24> leaves_;
  absl::InlinedVector<uint64_t, 4> variables_;  // ids of handles met
};

using Tokens = std::vector<uint64_t>;
using TokenSpan = absl::Span<const uint64_t>;

// One item of tokens that all languages have.
struct SignatureItem {
  Signature::Tag tag;
  // Of tensors and variables; what is behind a handle, where it is told.
  DType dtype = DType::kInvalid;
  Shape shape;
  std::shared_ptr<const HandleData> behind;
  bool trainable = false;
  int64_t number = 0;  // kBool, kInt; the count of a structure; a variable's
  double real = 0;     // kFloat
  std::string text;    // kText
};
// Reads the item at *at and moves behind it (not behind a structure's items).
SignatureItem ReadItem(TokenSpan tokens, size_t* at);
inline Signature::Tag TagAt(TokenSpan tokens, size_t at) {
  return static_cast<Signature::Tag>(tokens[at] >> 56);
}
// The place behind the item at `at`, what is behind a handle included.
size_t BehindItem(TokenSpan tokens, size_t at);

// True when a trace for `general` serves calls of `special`: they are the same
// but for sizes and ranks that `general` leaves open.
bool Serves(TokenSpan general, TokenSpan special);
// The most special tokens that serve both; none where they differ in more than
// shapes.
std::optional<Tokens> Join(TokenSpan a, TokenSpan b);

// A tensor, variable or value of a signature, where it stands and what it is:
// "args[0]['x']", "TensorSpec(shape=(2,), dtype=tf.float32, name=None)".
struct SignaturePart {
  std::string path, text;
  size_t at;  // its token
};
// Of the arguments of a call; `names` are those of the first ones.
std::vector<SignaturePart> PartsOfCall(TokenSpan tokens,
                                       absl::Span<const std::string> names);
// Of the results of one.
std::vector<SignaturePart> PartsOfResults(TokenSpan tokens);
// What is wrong with calling a trace for `takes` with `call`: the first
// argument that does not fit, what was expected and what came.
Status Misfit(TokenSpan takes, TokenSpan call,
              absl::Span<const std::string> names);
// "TensorSpec(shape=(2,), dtype=tf.float32, name=None)", "3", "'text'".
std::string TextOf(const SignatureItem& item);

}  // namespace headrace
