// A function of one row made to work on all rows at once (tf.vectorized_map).
#pragma once

#include <vector>

#include "graph/builder.h"
#include "graph/function.h"
#include "op/vectorize.h"

namespace headrace {

// What a function of one row is mapped over.
struct MappedRows {
  std::vector<RowValue> args;
  Value count;  // an int32 scalar, a constant where it is known
};
// The rows of `elems`, as many in each; one row alone serves all. (What is
// shared is one row here, without its first dimension.) InvalidArgument for
// scalars, for no tensors, and for different numbers of rows.
StatusOr<MappedRows> RowsOf(absl::Span<const Value> elems);

// Emits, through this thread's emitter, what `body` does for each of `count`
// rows (an int32 scalar); `args` are one an argument. What does not depend on
// the row is emitted once. Ops without a rule are done in a loop where the
// options allow it, the whole of a body that changes something else, row after
// row. Unimplemented, with upstream's text, where they do not. Results that
// are lists are refused; others come back stacked or shared.
StatusOr<std::vector<RowValue>> Vectorize(const FunctionPtr& body,
                                          absl::Span<const RowValue> args,
                                          const Value& count,
                                          const VectorizeOptions& options);
// The same as a function; behind `args` its last argument is the count. Shared
// results are repeated. Where the options allow loops, a body that has no form
// for all rows, as sizes in it differ by row, is done row by row as a whole.
StatusOr<FunctionPtr> FunctionForRows(const FunctionPtr& body,
                                      absl::Span<const RowValue> args,
                                      const Value& count,
                                      const VectorizeOptions& options);

// Emits a loop that calls `f` for each row and stacks the results, which must
// have one shape. Arguments must not be lists.
StatusOr<std::vector<Value>> LoopOverRows(const FunctionPtr& f,
                                          absl::Span<const RowValue> args,
                                          const Value& count);

}  // namespace headrace
