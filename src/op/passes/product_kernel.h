// Kernels of products (of matrices, convolutions) as plans see them: their
// weights may be prepared once for many runs, and rows of the result may be
// worked on while they are in the cache.
#pragma once

#include <memory>

#include "absl/functional/function_ref.h"
#include "op/kernel.h"

namespace headrace {

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
