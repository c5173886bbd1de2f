// Gradients of graphs whose nodes programs know by name (tf.gradients): they
// are to be the nodes of upstream's graphs, with shapes and axes by nodes of
// their own, which plans fold, where elsewhere constants are emitted at once.
#pragma once

#include <initializer_list>
#include <string>

#include "op/gradient.h"

namespace headrace {

// While it lives, gradient functions on this thread spell out what they emit.
class SpelledOut {
 public:
  // `take`: a scope of that name and of nobody else's: "outer/base_1/".
  using TakeScope = std::string (*)(Emitter* graph, StringView base);
  SpelledOut(TakeScope take, Emitter* graph);
  ~SpelledOut();
  SpelledOut(const SpelledOut&) = delete;

  // Whether what the current emitter emits is spelled out: that graph's own
  // nodes are, and not those of a function that is traced meanwhile.
  static bool Now();
  // "" where nothing is spelled out.
  static std::string Scope(StringView base);

 private:
  const TakeScope take_;
  Emitter* const graph_;
  const SpelledOut* const around_;
};

// An input: a value, or a constant that is named after it.
struct Operand {
  Operand(Value v) : value(std::move(v)) {}  // NOLINT
  Operand(StringView n, Tensor c) : name(n), constant(std::move(c)) {}
  Value value;
  StringView name;
  Tensor constant;
};
// Output 0 of a call named `name` where gradients are spelled out; constants
// among its inputs are named below it ("Sum", "Sum/reduction_indices").
Value Named(OpScope& s, StringView name, StringView op,
            std::initializer_list<Operand> inputs, const AttrMap& attrs = {});
// A constant, likewise.
Value NamedConst(OpScope& s, StringView name, Tensor t);
// SetBroadcast in that form. Where shapes are known to be equal upstream has no
// nodes for some ops, and shapes that nobody reads for others (`always`).
void SetSpelledBroadcast(GradientContext& g, const Value& ga, const Value& gb,
                         bool always = false);

}  // namespace headrace
