// One kernel for a product (of matrices, a convolution) and the chain of
// element-wise ops behind it, which works on rows of the product while they
// are in the cache.
#pragma once

#include <memory>
#include <vector>

#include "op/passes/product_kernel.h"
#include "runtime/fused_kernel.h"

namespace headrace {

// The steps of a chain that does nothing but what a product may do itself, in
// that order; empty for others. `product`: the chain's register of the product.
// Inputs of steps are registers of the chain; that of kPlusOutput is what is
// added. `steady`: whether a register's value is, and the product's weights.
FinishSteps FinishOf(const FusedKernel& chain, int product,
                     absl::FunctionRef<bool(int)> steady);

// Built by the fusing pass. Inputs: the product's, then the chain's own. All
// shapes are known.
class ProductChain : public ProductKernel, public KnowsWork {
 public:
  struct Parts {
    ResolvedOpPtr op;  // the product's
    std::shared_ptr<ProductKernel> product;
    std::unique_ptr<FusedKernel> chain;
    // Per register that the chain loads: its input here, or -1: the product.
    std::vector<int> chain_inputs;
    Shape shape;  // of the product; float
    // The output whose memory holds the product meanwhile.
    int host = -1;
    // The product with the chain as its finish, where its kernel can do that;
    // steps read inputs of the chain, as FinishOf has them.
    std::unique_ptr<FinishedProduct> finished;
    FinishSteps steps;
    // No memory holds the product: its rows are handed on, and output 0 may
    // take over a chain's input.
    bool hands = false;
  };
  explicit ProductChain(Parts parts) : p_(std::move(parts)) {}

  int weights() const override { return p_.product->weights(); }
  bool tells_rows() const override { return false; }
  bool prepares() const override { return p_.product->prepares(); }
  // Inputs whose memory output 0 may take over, as OpDef::in_place_inputs.
  uint32_t in_place_inputs() const;
  const ProductKernel& preparer() const override {
    return p_.finished ? *this : p_.product->preparer();
  }
  CallWork WorkOf(absl::Span<const Shape* const> inputs,
                  absl::Span<const Shape* const> outputs) const override;
  StatusOr<std::shared_ptr<const void>> Prepare(
      const KernelContext& c) const override;
  bool Fits(const KernelContext& c, const void* prepared) const override;
  Status RunPrepared(KernelContext& c, const void* prepared,
                     const Tail* tail) const override;

 private:
  // Of the steps of `finished`.
  absl::InlinedVector<const float*, 4> RowsOf(const KernelContext& c) const;
  // False, with nothing lost, where it is to be done step by step.
  StatusOr<bool> RunFinished(KernelContext& c, const void* prepared) const;
  const Parts p_;
};

}  // namespace headrace
