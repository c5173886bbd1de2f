// Values on their way between the languages, as the structures that traced
// functions of both take and give (function/signature.h).
#pragma once

#include "bind/python/python.h"
#include "function/signature.h"

namespace headrace::bind {

// Where a value stands, for messages: "args[0]['x']".
struct Place {
  const Place* outer = nullptr;  // null: `name` is the whole
  const char* name = nullptr;
  PyObject* key = nullptr;  // null: `index` in a tuple or list
  Py_ssize_t index = 0;

  std::string Text() const;
};

// Adds a Python value: tensors, arrays, variables, None, numbers, texts, and
// tuples, lists and dicts of strings of these; TensorSpecs too where `specs` is
// set, which have no leaf. False, with a TypeError that names the place, for
// all else.
bool AddCrossing(PyObject* value, const Place& place, bool specs,
                 Signature* out);

// Makes Python values of a structure, part by part.
class CrossedValues {
 public:
  // Where `specs` is set, TensorSpecs stand for the tensors, whose values are
  // not looked at.
  CrossedValues(TokenSpan tokens, absl::Span<const Value> leaves, bool specs)
      : tokens_(tokens), leaves_(leaves), specs_(specs) {}
  // The next one, with all that is in it. Null with an error set.
  Ref Take();

 private:
  Ref TakeItems(int64_t count, bool is_tuple);
  Ref TakeDict(int64_t count);
  Ref TakeTensor(const SignatureItem& item);
  Ref TakeVariable(const SignatureItem& item);

  const TokenSpan tokens_;
  const absl::Span<const Value> leaves_;
  const bool specs_;
  size_t at_ = 0, leaf_ = 0;
};

}  // namespace headrace::bind
