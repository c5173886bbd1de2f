// The inner loops of element-wise ops: functions over contiguous spans, one
// per op and element type, compiled for several instruction sets and chosen
// once for the machine. Broadcasting, strides and threads are the business of
// who calls them.
//
// A loop may write over its inputs: `y` may equal an input span (or start
// where one starts, for a result no wider than the input), but must not
// overlap one otherwise. What is written for an element depends on that
// element alone, so a span may be cut anywhere without changing a bit. Loops
// are pure and thread-safe.
//
// Types are told by upstream's DataType numbers (DT_FLOAT is 1), ops by
// upstream's names.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "op/passes/bound_call.h"

namespace headrace {

// y[i] = f(x[i]) for i < n.
using UnaryLoop = void (*)(const void* x, void* y, int64_t n);

// y[i] = f(a[i], b[i]). `kind`: 0, both are spans; 1, a is one scalar; 2, b is
// one scalar.
using BinaryLoop = void (*)(const void* a, const void* b, void* y, int64_t n,
                            int kind);

// The same where an element can be in error: a LoopError, or 0. Elements in
// error are written as 0; the others are right all the same.
using CheckedLoop = uint32_t (*)(const void* a, const void* b, void* y,
                                 int64_t n, int kind);
enum LoopError : uint32_t {
  kIntegerDivisionByZero = 1,
  kNegativeIntegerPower = 2,
};

// The same on fixed memory, of one element, of four and of one block, whose
// operands have as many; null where the loop itself is as good.
struct SmallLoops {
  void (*one)(BoundCall& c) = nullptr;
  void (*four)(BoundCall& c) = nullptr;
  void (*block)(BoundCall& c) = nullptr;
};

struct LoopEntry {
  const char* op;
  uint8_t in;   // type of the operands
  uint8_t out;  // type of the result
  UnaryLoop unary = nullptr;
  BinaryLoop binary = nullptr;
  CheckedLoop checked = nullptr;  // instead of `binary`
  float ns = 0.3f;                // an element's cost, roughly
  SmallLoops small = {};
};

// The loop of a one-operand op, or nullptr if there is none for the type.
const LoopEntry* FindUnaryLoop(absl::string_view op, int dtype);
// The loop of a two-operand op, whose operands have the same type.
const LoopEntry* FindBinaryLoop(absl::string_view op, int dtype);

// Converts elements as upstream's Cast does: floats to integers truncate,
// complex to real drops the imaginary part, anything but 0 is true. Values
// out of an integer's range give what x86 gives. nullptr for types that have
// no numbers.
UnaryLoop FindCastLoop(int from, int to);

// y[i] = condition[i] ? a[i] : b[i], for elements of `size` bytes (1, 2, 4, 8,
// 16). `kind`'s bits: 1, a is one scalar; 2, b is one scalar.
using SelectLoop = void (*)(const bool* condition, const void* a, const void* b,
                            void* y, int64_t n, int kind);
SelectLoop FindSelectLoop(int size);

// y[i] = max(min(x[i], high), low); low and high are one scalar each. NaNs of
// x stay.
using ClipLoop = void (*)(const void* x, const void* low, const void* high,
                          void* y, int64_t n);
ClipLoop FindClipLoop(int dtype);

// Ops with one number as attribute. "LeakyRelu" (x, alpha).
using ParameterLoop = void (*)(const void* x, void* y, int64_t n,
                               double parameter);
ParameterLoop FindParameterLoop(absl::string_view op, int dtype);
// "LeakyReluGrad" (gradients, features, alpha); both are spans.
using ParameterLoop2 = void (*)(const void* a, const void* b, void* y,
                                int64_t n, double parameter);
ParameterLoop2 FindParameterLoop2(absl::string_view op, int dtype);

}  // namespace headrace
