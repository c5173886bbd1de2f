// A box of a tensor of known shape that begins where indices say, as turns of a
// loop read it: what slices and gathers of one row bind.
#pragma once

#include "op/passes/binds_indexed.h"
#include "op/resolved_op.h"

namespace headrace {

// `in` is the tensor and the integers that hold the indices; `out` gets the box
// row after row. Ops derive from it, to say what is wrong with an index.
class BoxCall : public IndexedCall {
 public:
  struct Index {
    int64_t place;  // among the integers
    int64_t limit;  // the least number that is too large
    int64_t step;   // bytes
  };
  struct Dim {
    int64_t size;
    int64_t step;  // bytes, of the tensor
  };

  // Sets the call up, when all below is said. `index`: the integers' type.
  void BindAs(DType index, BoundCall* call);
  bool may_fail() const override { return !indices.empty(); }
  Status Failure(const BoundCall& call) const override;

  absl::InlinedVector<Index, 2> indices;
  bool from_end = false;            // negative indices count from the limit
  int64_t first = 0;                // bytes, where all indices are 0
  absl::InlinedVector<Dim, 4> box;  // the last one steps fastest
  int64_t run = 1;                  // bytes of what lies at each place

 protected:
  // What the op says of these integers.
  virtual Status Refusal(const Tensor& indices) const = 0;
  // Of the tensor of integers, for Refusal.
  Shape indices_shape_;

 private:
  DType index_type_ = DType::kInvalid;
};

}  // namespace headrace
