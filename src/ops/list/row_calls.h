// Kernels on lists that turns of a loop may bind: what a call does with rows.
#pragma once

#include <cstring>

#include "op/passes/binds_rows.h"
#include "op/passes/copy_piece.h"
#include "ops/list/tensor_list.h"

namespace headrace {

// A kernel that is `compute`, and `call` where it is bound.
struct RowCall {
  ComputeFn compute;
  void (*call)(BoundCall& c);
  BindsRows::Element element;
  // What `compute` says where there is no such element of a list of `size`;
  // null: it always is there.
  Status (*refusal)(int64_t index, int64_t size) = nullptr;
  int index_input = -1;  // an int32 scalar; -1: none
  // An input that must be the shape of elements, as it says what those that
  // were never set are; -1: none.
  int shape_input = -1;
};
std::unique_ptr<Kernel> MakeRowKernel(const RowCall& call);

// For bound calls: their list.
inline BoundRows& RowsOf(const BoundCall& c) {
  return *static_cast<BoundRows*>(const_cast<void*>(c.in[0]));
}
// Leave what was wrong: there is no such element, or no memory for one more.
void RefuseRow(BoundCall& c);
void LackMemory(BoundCall& c);

// Copies element i to `out`; zeros where it was never set.
inline void ReadRow(const BoundRows& rows, int64_t i, void* out) {
  if (rows.at[i] == nullptr) [[unlikely]] {
    std::memset(out, 0, rows.bytes);
  } else {
    CopyPiece(out, rows.at[i], rows.bytes);
  }
}
// Sets element i, or the next one behind the last.
inline void WriteRow(BoundCall& c, int64_t i, const void* from) {
  BoundRows& rows = RowsOf(c);
  if (void* to = rows.Own(i)) [[likely]] {
    CopyPiece(to, from, rows.bytes);
  } else {
    LackMemory(c);
  }
}

}  // namespace headrace
