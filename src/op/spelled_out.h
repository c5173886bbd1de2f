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

// An input: a value, or a constant or a call of an op that is named after it.
struct Operand {
  Operand(Value v) : value(std::move(v)) {}  // NOLINT
  Operand(StringView n, Tensor c) : name(n), constant(std::move(c)) {}
  Operand(StringView n, StringView o, ValueList i)
      : name(n), op(o), inputs(std::move(i)) {}
  Value value;
  StringView name;
  Tensor constant;
  StringView op;  // of the call
  ValueList inputs;
};
// Output 0 of a call named `name` where gradients are spelled out; constants
// among its inputs are named below it ("Sum", "Sum/reduction_indices").
Value Named(OpScope& s, StringView name, StringView op,
            std::initializer_list<Operand> inputs, const AttrMap& attrs = {});
// The same for inputs that are values, and all outputs of such a call.
ValueList NamedAll(OpScope& s, StringView name, StringView op,
                   absl::Span<const Value> inputs, const AttrMap& attrs = {});
Value NamedOf(OpScope& s, StringView name, StringView op,
              absl::Span<const Value> inputs, const AttrMap& attrs = {});
// A constant, likewise.
Value NamedConst(OpScope& s, StringView name, Tensor t);
// Zeros and ones like `x` as upstream's tf.zeros_like and tf.ones_like make
// them: constants where the shape is known, filled ones where there are many.
Value NamedZerosLike(OpScope& s, StringView name, const Value& x);
Value NamedOnesLike(OpScope& s, StringView name, const Value& x);
// The rank of `x`: a constant where it is known.
Value SpelledRankOf(OpScope& s, const Value& x);
// SetBroadcast in that form. Where shapes are known to be equal upstream has no
// nodes for some ops, and shapes that nobody reads for others (`always`).
void SetSpelledBroadcast(GradientContext& g, const Value& ga, const Value& gb,
                         bool always = false);
// `v`, which is shaped like `like`, summed to the shape of `x`, in that form.
Value SpelledReduceTo(GradientContext& g, const Value& v, const Value& like,
                      const Value& x);
// The gradient of rows that were looked up by `indices` in a tensor of that
// `shape`, in that form.
Gradient SpelledRowSlices(GradientContext& g, const Value& shape,
                          const Value& indices);
// g.SetBroadcast for an op whose shapes upstream's graphs always have.
void SetBroadcastAlways(GradientContext& g, const Value& ga, const Value& gb);

}  // namespace headrace
