// Calls on lists of equal tensors, for turns of a loop (runtime/bound_turns.h):
// within the turns a list is rows of memory that calls read and write in place.
#pragma once

#include <memory>

#include "op/passes/binds_calls.h"

namespace headrace {

// A list as bound calls see it.
struct BoundRows {
  // Where element i lies, in the list that came in or in memory of the turns;
  // null: it was never set.
  const void** at = nullptr;
  int64_t size = 0;
  int64_t bytes = 0;  // of an element
  // Memory to write element i to, which `at` says then. Null where memory ends.
  void* Own(int64_t i) {
    if (i >= room && !grow(*this, i + 1)) return nullptr;
    char* to = own + i * bytes;
    at[i] = to;
    return to;
  }

  char* own = nullptr;
  int64_t room = 0;  // elements
  void* owner = nullptr;
  // Makes `own` and `at` large enough for `n` elements.
  bool (*grow)(BoundRows& r, int64_t n) = nullptr;
};

// One list, while turns work on it.
class ListOfRows {
 public:
  virtual ~ListOfRows() = default;
  // The list that it has become. Once.
  virtual StatusOr<Tensor> Close() = 0;
};

// An interface of kernels whose input 0 is a list and whose other operands are
// plain; output 0, where it is a variant, is the list as the call leaves it.
// Bound calls have a BoundRows in place of lists, as in[0].
// BindTo's `output` is the elements' shape.
class BindsRows : public BindsCalls {
 public:
  // The operand that is an element: an input, an output, or none.
  struct Element {
    int input = -1, output = -1;
  };
  virtual Element element() const = 0;
  // Whether `list` is one whose elements that were set are all of this type and
  // shape, and that takes others of them. kInvalid: of any.
  virtual bool Fits(const Tensor& list, DType dtype,
                    const Shape& shape) const = 0;
  // Of a list that fits; `rows` must outlive the result. `writes`: whether any
  // call sets elements.
  virtual StatusOr<std::unique_ptr<ListOfRows>> Open(const Tensor& list,
                                                     const Shape& shape,
                                                     bool writes,
                                                     BoundRows* rows) const = 0;
};

}  // namespace headrace
