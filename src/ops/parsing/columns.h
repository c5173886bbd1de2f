// What a parse asks of one feature, and how the features of a batch of
// examples become tensors.
#pragma once

#include <string>
#include <vector>

#include "base/hash_map.h"
#include "op/kernel.h"
#include "ops/parsing/example_wire.h"

namespace headrace {

struct Column {
  enum Kind : uint8_t { kDense, kSparse, kRagged };
  Kind kind = kDense;
  DType dtype = DType::kInvalid;     // kFloat, kInt64 or kString
  DType split_type = DType::kInt64;  // of kRagged
  std::string key;
  // Of kDense: one example's values. The first size may be unknown: each
  // example has as many rows as it likes, short ones are padded.
  Shape shape;
  // Of kDense: what stands for a missing feature, or the one element that
  // pads. Without elements, a feature of known size is required.
  Tensor fallback;
  // Of a list of features: no error when the list is missing.
  bool may_miss = false;

  bool variable() const {
    return kind == kDense && shape.rank() > 0 && shape[0] < 0;
  }
  // Elements of one row, where rows vary, else of all.
  int64_t stride() const {
    return variable() ? shape.Product(1, shape.rank()) : shape.num_elements();
  }
};

// One example's values of a column.
struct Cell {
  FeatureView feature;  // kInvalid: missing
  int64_t count = 0;
};

// Where a column's tensors go: places among a kernel's outputs.
struct ColumnOutputs {
  int values = -1, indices = -1, shape = -1, splits = -1;
};

// Checks shape and fallback of a dense column, number `i`, with upstream's
// texts.
Status CheckDenseColumn(const Column& column, int i);

// Columns by key; of several with one key the last counts.
using ColumnIndex = HashMap<StringView, int>;
ColumnIndex IndexColumns(absl::Span<const Column> columns);

// Makes a column's tensors of its cells, one an example. `batched`: the
// tensors have a first dimension for the examples; else there is one cell.
Status EmitColumn(KernelContext& c, const Column& column,
                  absl::Span<const Cell> cells, bool batched,
                  const ColumnOutputs& out);

// Copies a cell's values to element `at` of a tensor of its dtype with room.
Status CopyCell(const Cell& cell, int64_t at, Tensor& to);
// Copies element `from` of `source` to [begin, end) of `to`.
void FillElements(const Tensor& source, int64_t from, Tensor& to, int64_t begin,
                  int64_t end);

// Splits as the column wants them: begins, one more than there are rows.
Status EmitSplits(KernelContext& c, int output, DType dtype,
                  absl::Span<const int64_t> splits);

}  // namespace headrace
