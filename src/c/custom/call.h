// One call of a user's kernel.
#pragma once

#include <memory>
#include <vector>

#include "base/mutex.h"
#include "c/tensor.h"
#include "op/kernel.h"
#include "tensorflow/c/kernels.h"

// Functions of kernels.h may come from several threads of the kernel's own.
struct TF_OpKernelContext {
 public:
  explicit TF_OpKernelContext(headrace::KernelContext& c)
      : c(c), outputs_(c.num_outputs()) {}

  headrace::KernelContext& c;

  // OutOfRange "i < 0 || i >= ..." for an index that is none.
  headrace::Status CheckInput(int i) const;
  headrace::Status CheckOutput(int i) const;

  headrace::Status SetOutput(int i, const TF_Tensor* t);
  // Memory for output i, as the caller's tensor.
  headrace::StatusOr<std::unique_ptr<TF_Tensor>> Allocate(
      int i, const headrace::Shape& shape);
  headrace::StatusOr<std::unique_ptr<TF_Tensor>> MutableOutput(int i);

  // The first failure counts.
  void Fail(headrace::Status failure);

  void AddDeferred(int count);
  // Waits for work that was deferred; then gives the outputs to the engine. The
  // call's failure, or InvalidArgument where an output is missing or has
  // another shape than the op's shape function says.
  headrace::Status Finish();

 private:
  headrace::Status GiveOutputs();

  headrace::Mutex mutex_;
  headrace::CondVar deferred_changed_;
  int deferred_ ABSL_GUARDED_BY(mutex_) = 0;
  headrace::Status failure_ ABSL_GUARDED_BY(mutex_);
  // Shares its memory with the tensors that the kernel has of it; strings
  // become the engine's at the end alone.
  std::vector<std::unique_ptr<TF_Tensor>> outputs_ ABSL_GUARDED_BY(mutex_);
};

struct TF_OpKernelConstruction {
  const headrace::ResolvedOp& op;
  headrace::Status failure;
};
