// The signature of a call of a traced function: what decides whether a trace
// fits, taken from the arguments in one pass.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "bind/python.h"
#include "op/value.h"

namespace headrace::bind {

// Tokens tell structure, dtypes and shapes; literals are the Python values
// between, compared by equality. Tensors, arrays and variables are leaves: the
// traced function's arguments, in order.
class CallKey {
 public:
  // Adds one argument. False with a Python error set.
  bool Add(PyObject* o);
  void AddToken(uint64_t token) { tokens_.push_back(token); }

  absl::Span<const uint64_t> tokens() const { return tokens_; }
  absl::Span<PyObject* const> literals() const { return literals_; }
  absl::Span<const Value> leaves() const { return leaves_; }

 private:
  bool AddTensor(const Value& v);
  bool AddVariable(PyObject* o);
  bool AddItems(uint64_t tag, PyObject* sequence);
  bool AddDict(PyObject* dict);
  bool AddOther(PyObject* o);
  void AddLiteral(PyObject* o, uint64_t tag);
  void AddShape(uint64_t tag, DType dtype, const Shape& shape);

  absl::InlinedVector<uint64_t, 64> tokens_;
  absl::InlinedVector<PyObject*, 8> literals_;  // borrowed, but for held_
  absl::InlinedVector<Value, 24> leaves_;
  absl::InlinedVector<uint64_t, 4> variables_;  // ids of handles met
  std::vector<Ref> held_;
};

// A key that was kept: literals by value, other objects weakly where they can
// be, so that a trace does not keep its arguments alive.
class KeptKey {
 public:
  explicit KeptKey(const CallKey& key);
  bool Matches(const CallKey& key) const;

 private:
  struct Literal {
    Ref object;
    bool weak;
  };
  std::vector<uint64_t> tokens_;
  std::vector<Literal> literals_;
};

}  // namespace headrace::bind
