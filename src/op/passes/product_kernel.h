// Kernels of products (of matrices, convolutions) as plans see them: their
// weights may be prepared once for many runs, and rows of the result may be
// worked on while they are in the cache.
#pragma once

#include <memory>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "op/kernel.h"

namespace headrace {

// A step behind a product of floats that its kernel may do itself, while sums
// are in registers.
struct FinishStep {
  enum Kind : uint8_t {
    kTimesRow,    // times one number a column
    kPlusRow,     // plus one number a column
    kPlusOutput,  // plus what output 0 holds before
    kRelu,        // the larger of it and 0; 0 for NaN, as TensorFlow's
    kRelu6,
  } kind = kRelu;
  int input = -1;  // for rows: which
  // Of kTimesRow: its row is the same from run to run, as the weights are, or
  // changes seldom. Weights may take it in.
  bool steady = false;
};
using FinishSteps = absl::InlinedVector<FinishStep, 4>;
// The row of each step, or null.
using FinishRows = absl::Span<const float* const>;

// A product with such steps. Thread-safe.
class FinishedProduct {
 public:
  virtual ~FinishedProduct() = default;
  // As ProductKernel::Prepare and Fits.
  virtual StatusOr<std::shared_ptr<const void>> Prepare(
      const KernelContext& c, FinishRows rows) const = 0;
  virtual bool Fits(const void* prepared, FinishRows rows) const = 0;
  // Inputs and output 0 as the product's own. False, with output 0 as it was,
  // where it cannot be done so.
  virtual StatusOr<bool> Run(KernelContext& c, const void* prepared,
                             FinishRows rows) const = 0;
};

// Thread-safe. Output 0 counts as a matrix whose rows are its last dimension.
class ProductKernel : public Kernel {
 public:
  // Told of rows [begin, end) of output 0 once they are complete, perhaps by
  // several threads at once. `rows`: the first of them.
  struct Tail {
    absl::FunctionRef<void(int64_t begin, int64_t end, const void* rows)> done;
    // Output 0 has no memory: rows are handed where the product likes, and
    // may be overwritten as soon as `done` returns. Only for hands_rows().
    bool hands = false;
  };

  // Which input holds the weights.
  virtual int weights() const { return 1; }
  // True when RunPrepared calls a Tail.
  virtual bool tells_rows() const = 0;
  // True when a Tail may ask for rows without output 0.
  virtual bool hands_rows() const { return false; }
  // True when Prepare may make something.
  virtual bool prepares() const = 0;
  // The weights of such a run in the layout that the product wants, immutable
  // and apart from the inputs; null where preparing does not pay.
  virtual StatusOr<std::shared_ptr<const void>> Prepare(
      const KernelContext& c) const = 0;
  // The kernel that prepares for this one: itself, or one that it is made of.
  virtual const ProductKernel& preparer() const { return *this; }
  // Of two preparers: whether what `other` makes of the same weights serves
  // this one.
  virtual bool PreparesAs(const ProductKernel& other) const {
    return this == &other;
  }
  // Whether what Prepare made of these weights is good for this run: not where
  // other inputs that it took in have changed.
  virtual bool Fits(const KernelContext& c, const void* prepared) const {
    return true;
  }
  // The product with these steps, null where the kernel cannot do them. Bits
  // may differ from those of the steps one by one by what rounding the sum
  // first does.
  virtual std::unique_ptr<FinishedProduct> Finished(const FinishSteps&) const {
    return nullptr;
  }
  // As Run and with the same bits, with what Prepare made of these very weights
  // (or null) and a tail (or null). Inputs of other sizes than Prepare saw are
  // welcome.
  virtual Status RunPrepared(KernelContext& c, const void* prepared,
                             const Tail* tail) const = 0;

  Status Run(KernelContext& c) override {
    return RunPrepared(c, nullptr, nullptr);
  }
};

}  // namespace headrace
