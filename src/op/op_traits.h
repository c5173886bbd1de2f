// What the engine knows of an op. Passes, graphs and gradients of functions ask
// for an op's role and traits, never for its name; both are set where the op is
// defined.
#pragma once

#include <cstdint>

namespace headrace {

// What a graph or a pass does with an op that is like no other. At most one an
// op; ops that differ only in what the definition says (references, versions)
// share a role.
enum class OpRole : uint8_t {
  kNone,
  // --- Graphs and functions
  kConstant,     // output 0 is the attribute "value"
  kPlaceholder,  // stands for what a caller gives; without an input, it must be
                 // given
  kCall,         // runs the function "f"
  kBranch,  // input 0 chooses "then_branch" or "else_branch", or of "branches"
  kLoop,    // runs the function "body" while "cond" gives true
  kReadVariable,
  // --- Control flow by frames, as graphs of TensorFlow 1 have it
  kSwitch,
  kMerge,
  kEnter,
  kExit,
  kNextIteration,
  kLoopCondition,
  kControlTrigger,
  // --- What passes look for
  kMatMul,       // of two matrices, "transpose_a", "transpose_b"
  kBatchMatMul,  // of two batches of one dtype "T", "adj_x", "adj_y"
  kTranspose,    // input 0 in the order of input 1
  kBroadcastTo,  // input 0 in the shape of input 1
  kUnpack,       // input 0 along "axis"
  kSplit,        // input "value" along input "split_dim"
  kSlice,        // input 0 from input 1 on, of the sizes in input 2
  kAdd,          // the sum of two tensors, element by element, broadcast
  kMultiply,     // the product of two tensors, likewise
  kRelu,         // the larger of an element and 0
  kRelu6,        // the same, but no more than 6
  kAddN,         // the sum of tensors of one shape
  kSum,          // over the dimensions in input 1, "keep_dims"
  kPopBack,      // takes the last tensor, output 1, from a list
};

// Any number of these an op.
enum class OpTrait : uint8_t {
  // Stateful, but what it does is seen in its outputs alone: a call of which
  // nobody
  // reads an output need not run.
  kNoEffect,
  // Writes state, but reads its tensors only while it runs: their memory may be
  // used
  // again behind it.
  kKeepsNoInput,
  // Its state has a name of its own only where "shared_name" gives it one.
  kUnnamedState,
  // Hands a reference on, and does not write what is behind it.
  kHandsReferenceOn,
  // Output 0 is input 0, whatever it is.
  kIdentity,
  // Checks something, and has no other effect.
  kAssertion,
  // Never waits, and never runs Python, though it takes a resource or a
  // variant.
  kNeverWaits,
  // Hands numbers on and makes none: no NaN or infinity begins in it.
  kMovesNumbers,
  // Element by element of two inputs, which it broadcasts itself.
  kBroadcasts,
  // The elements of input 0 in another shape.
  kReshapes,
  // A product whose kernel may run element-wise steps on each tile that it has
  // made.
  kTakesTail,
  // Reduces input 0 over the dimensions in input 1, in rows that may come from
  // an
  // element-wise chain.
  kRowReduction,
  // Takes so long that what is beside it does not count.
  kHeavy,
  // Takes less time than reading its result from memory.
  kCheap,
  // Makes something that each row of tf.vectorized_map has of its own, though
  // nothing that it takes differs by row.
  kOnePerRow,
  // Tells the length of a tensor list alone: a way back that asks for it need
  // not keep the list, which could be changed in place no more.
  kMeasuresList,
  // Its rule for tf.vectorized_map also knows tensor lists where it takes
  // tensors of any dtype.
  kTakesLists,
};

// A set of traits.
class OpTraits {
 public:
  void Add(OpTrait t) { bits_ |= Bit(t); }
  bool Has(OpTrait t) const { return (bits_ & Bit(t)) != 0; }

 private:
  static uint32_t Bit(OpTrait t) { return uint32_t{1} << static_cast<int>(t); }
  uint32_t bits_ = 0;
};

}  // namespace headrace
