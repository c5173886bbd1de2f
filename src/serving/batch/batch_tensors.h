// Tensors of several tasks made one, and the results cut up again.
#pragma once

#include "absl/types/span.h"
#include "serving/batch/batch_queue.h"

namespace headrace::serving {

// Errors of a request that cannot be batched, INVALID_ARGUMENT with the stock
// server's text. The rows of the request otherwise.
StatusOr<int64_t> RowsOf(const Tensors& inputs, bool padded);

// The next allowed size; the rows themselves where there are none.
int64_t ExecutionSize(const BatchingOptions& options, int64_t rows);

// The inputs of all tasks behind one another, filled up to `size` rows with the
// first row of the last task that has one. Tensors that are shorter than the
// longest are padded with their own first element. One task of that size keeps
// its tensors. ResourceExhausted when memory ends.
StatusOr<Tensors> JoinInputs(absl::Span<BatchTask> tasks, int64_t size);

// FailedPrecondition, with the stock server's text, unless each output has so
// many rows.
Status CheckOutputs(const Tensors& outputs, int64_t size);

// Rows [begin, begin + rows) of each.
Tensors RowsOfAll(const Tensors& outputs, int64_t begin, int64_t rows);

// Pieces of one output, in their order. FailedPrecondition where they do not
// fit together.
StatusOr<Tensor> JoinOutputPieces(absl::Span<const Tensor> pieces);

}  // namespace headrace::serving
