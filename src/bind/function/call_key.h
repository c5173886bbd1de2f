// The signature of a call of a traced function: what decides whether a trace
// fits, taken from the arguments in one pass.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "bind/python/python.h"
#include "function/signature.h"

namespace headrace::bind {

// The signature tells structure, dtypes and shapes, and holds tensors, arrays
// and variables; literals are the Python values between, compared by equality.
class CallKey {
 public:
  // Adds one argument. False with a Python error set.
  bool Add(PyObject* o);
  void AddToken(uint64_t token) { signature_.AddToken(token); }

  absl::Span<const uint64_t> tokens() const { return signature_.tokens(); }
  absl::Span<PyObject* const> literals() const { return literals_; }
  absl::Span<const Value> leaves() const { return signature_.leaves(); }
  // Whether a literal was made for the call, so that nobody else keeps it.
  bool Made(PyObject* literal) const {
    return std::find(made_.begin(), made_.end(), literal) != made_.end();
  }

 private:
  bool AddVariable(PyObject* o);
  bool AddItems(uint64_t tag, PyObject* sequence);
  bool AddDict(PyObject* dict);
  bool AddOther(PyObject* o);
  void AddLiteral(PyObject* o, uint64_t tag);

  Signature signature_;
  absl::InlinedVector<PyObject*, 8> literals_;  // borrowed, but for held_
  std::vector<Ref> held_;
  std::vector<PyObject*> made_;  // of the literals; in held_
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
