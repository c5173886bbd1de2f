// What ops do for many rows at once (tf.vectorized_map), written once against
// the Emitter. A value of a row's computation is one of all rows here: stacked
// along a new dimension 0, or the same for all.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "op/emitter.h"

namespace headrace {

class FunctionLibrary;  // graph/function.h

enum class Stacking : uint8_t {
  kShared,   // every row has this value
  kStacked,  // row r's is [r] of it
  kInList,   // a tensor list: row r's elements are [r] of its elements
};

struct RowValue {
  Value value;
  Stacking rows = Stacking::kShared;
  bool shared() const { return rows == Stacking::kShared; }
  // Of one row; of unknown rank where that is.
  Shape row_shape() const;
};

struct VectorizeOptions {
  // What has no rule is done row by row; else it is Unimplemented.
  bool loops = true;
  // Told of each op that has none and is.
  std::function<void(const std::string& text)> warn;
  // Where calls find their functions; may be null.
  const FunctionLibrary* library = nullptr;
  int depth = 0;  // of calls within calls
};

// One call whose form for all rows is asked for. Emitting goes through the
// inherited OpScope. A rule sets every output. Unimplemented: it has no form
// for these operands, and nothing was emitted that has an effect.
class VectorizeContext : public OpScope {
 public:
  // `count`: the number of rows, an int32 scalar.
  VectorizeContext(const ResolvedOpPtr& op, absl::Span<const RowValue> inputs,
                   Value count, const VectorizeOptions& options)
      : op_(op),
        inputs_(inputs),
        count_(std::move(count)),
        options_(options),
        results_(op->num_outputs()) {}

  const ResolvedOp& op() const { return *op_; }
  const ResolvedOpPtr& op_ptr() const { return op_; }
  const VectorizeOptions& options() const { return options_; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  absl::Span<const RowValue> inputs() const { return inputs_; }
  // As it is: stacked or not. A null value behind the last input.
  const Value& input(int i) const;
  bool stacked(int i) const;
  bool in_list(int i) const;
  // Of one row's input i; -1: unknown.
  int row_rank(int i) const;
  // Of one row's input i; of unknown rank where that is.
  Shape row_shape(int i) const;
  const Value& count() const { return count_; }
  int64_t known_count() const;  // -1: not known

  // Unimplemented, with upstream's text, where input i is not the same for all
  // rows.
  Status WantShared(int i) const;
  Status WantSharedFrom(int first) const;
  // Unimplemented where the rank of a row's input i is not known.
  Status WantRank(int i) const;
  // Unimplemented: `why` it has no form.
  Status Refuse(StringView why) const;

  // Input i with a row for each row, repeated where it is shared.
  Value Stacked(int i) { return stacked(i) ? input(i) : Repeat(input(i)); }
  // Input i, a tensor list, with elements that have a row for each row.
  // Repeated elements where it is shared: they must have one shape then.
  Value Listed(int i);
  // Input i, the shape of a list's elements, with the count in front; as it is
  // where it is a scalar, which says that the rank is not known.
  Value ElementSizes(int i);
  // `v` once a row.
  Value Repeat(const Value& v);
  // Rows of rank `from` as rows of rank `to`, sizes of 1 in front.
  Value PadRank(const Value& stacked, int from, int to);
  // Sizes [begin, end) of v, an int32 vector: a constant where they are known.
  // `end` -1: to the last.
  Value Sizes(const Value& v, int begin, int end = -1);
  // int32 vectors one behind the other; constant where they are.
  Value Join(absl::Span<const Value> sizes);
  Value Join(std::initializer_list<Value> sizes) {
    return Join(absl::MakeConstSpan(sizes.begin(), sizes.size()));
  }
  // The count as a vector of one.
  Value CountSizes();
  // An integer vector with the count, or a number, in front.
  Value WithCount(const Value& sizes);
  Value WithFirst(const Value& numbers, int64_t first);
  // Indices in the last dimension, [count, ..., k], with the row's in front.
  Value WithRowNumbers(const Value& indices);
  // The product of int32 sizes, a vector of one.
  Value Product(const Value& sizes);
  Value Reshape(const Value& v, const Value& sizes);
  // Dimension 0 and `dims` - 1 behind it as one.
  Value Fold(const Value& v, int dims = 2);
  // Dimension 0 of v as [count, dimension 1 of like].
  Value Unfold(const Value& v, const Value& like);
  // Dimension `from` moved to `to`; the rank must be known.
  Value Move(const Value& v, int from, int to);
  // Rows of images as channels, row after row: [count, b, ..., c] as
  // [b, ..., count * c], and back, where a row has `channels`, a vector of one.
  Value RowsAsChannels(const Value& x);
  Value ChannelsAsRows(const Value& y, const Value& channels);
  // 0, 1, ..., count - 1.
  Value RowNumbers(DType dtype);
  // An integer that counts dimensions from the front, or from behind where it
  // is negative, for a tensor with one more dimension in front. Tensors of any
  // shape.
  Value ShiftAxes(const Value& axes);

  // The op itself of other inputs, with its own attributes or others.
  ValueList Again(absl::Span<const Value> inputs);
  ValueList Again(std::initializer_list<Value> inputs) {
    return Again(absl::MakeConstSpan(inputs.begin(), inputs.size()));
  }
  ValueList AgainWith(absl::Span<const Value> inputs, const AttrMap& changed);

  void set(int i, Value v, Stacking rows = Stacking::kStacked) {
    results_[i] = {std::move(v), rows};
  }
  Status SetAll(const ValueList& outputs, Stacking rows = Stacking::kStacked);
  // For ops of one output: sets it, and returns what came of all.
  Status Set(Value v, Stacking rows = Stacking::kStacked);
  std::vector<RowValue>& results() { return results_; }
  // The op is done row by row, whatever the options say.
  void SetInLoop() { in_loop_ = true; }
  bool in_loop() const { return in_loop_; }

 private:
  bool in_loop_ = false;
  ResolvedOpPtr op_;
  absl::Span<const RowValue> inputs_;
  Value count_;
  const VectorizeOptions& options_;
  std::vector<RowValue> results_;
};

// --- Rules that many ops share.

// One row after another, as upstream does it for this op: no loop that a user
// is told of, or could refuse.
Status VectorizeInLoop(VectorizeContext& c);
// Element by element, inputs broadcast.
Status VectorizeBroadcast(VectorizeContext& c);
// The op of stacked inputs is the stack of its results: it works on last
// dimensions, or element by element on inputs of one shape.
Status VectorizeBatched(VectorizeContext& c);
// The same, but of input 0 alone (the others must be shared).
Status VectorizeFirst(VectorizeContext& c);
// Outputs are the inputs.
Status VectorizeForward(VectorizeContext& c);
// Dimension 0 of input 0, of which the op treats each part alone, is all rows'.
// Other inputs must be shared.
Status VectorizeFolded(VectorizeContext& c);
// The same for an op of several inputs that all have such a dimension.
Status VectorizeFoldedAll(VectorizeContext& c);
// Input 0 by the axes in input 1, which count its dimensions.
Status VectorizeOverAxes(VectorizeContext& c);
// Draws numbers in the shape in input 0: new ones for each row.
Status VectorizeRandom(VectorizeContext& c);

}  // namespace headrace
