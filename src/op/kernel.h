// Kernels: an op bound to its types and attributes, run many times.
#pragma once

#include <memory>
#include <string>

#include "absl/types/span.h"
#include "base/status.h"
#include "op/resolved_op.h"
#include "tensor/tensor.h"

namespace headrace {

class FunctionCaller;     // op/function_caller.h
class ResourceManager;    // op/resource.h
class CancellationToken;  // base/cancellation.h

// What a run brings along, the same for all its steps. Pointers may be null
// but for `resources` and `functions`.
struct RunServices {
  ResourceManager* resources = nullptr;
  FunctionCaller* functions = nullptr;
  const CancellationToken* cancellation = nullptr;
  int64_t step_id = 0;
};

// One run of a kernel: its inputs and outputs. Lives for the call.
class KernelContext {
 public:
  KernelContext(const ResolvedOp& op, Tensor* const* inputs,
                Tensor* const* outputs, const RunServices& services)
      : op_(&op), inputs_(inputs), outputs_(outputs), services_(&services) {}

  const ResolvedOp& op() const { return *op_; }
  int num_inputs() const { return op_->num_inputs(); }
  int num_outputs() const { return op_->num_outputs(); }
  const Tensor& input(int i) const { return *inputs_[i]; }
  template <typename T>
  const T* in(int i) const {
    return inputs_[i]->data<T>();
  }
  // Output i. Already allocated when the shape rule told its shape, unless
  // the kernel's own_outputs(); else the kernel makes it by Allocate or
  // set_output.
  Tensor& output(int i) const { return *outputs_[i]; }
  template <typename T>
  T* out(int i) const {
    return outputs_[i]->data<T>();
  }
  // Makes output i (again) with that shape; its dtype is the op's.
  Status Allocate(int i, const Shape& shape) const;
  void set_output(int i, Tensor t) const { *outputs_[i] = std::move(t); }
  // Memory for the length of the call.
  StatusOr<Tensor> Temporary(DType dtype, const Shape& shape) const {
    return Tensor::Allocate(dtype, shape);
  }
  const RunServices& services() const { return *services_; }
  // Cancelled or DeadlineExceeded when the run should stop; long kernels ask
  // between tiles.
  Status CheckCancelled() const;

 private:
  const ResolvedOp* op_;
  Tensor* const* inputs_;
  Tensor* const* outputs_;
  const RunServices* services_;
};

// An element-wise kernel as the fusing pass sees it: output 0 is, element by
// element, a function of the inputs (same shape or scalars).
struct ElementwiseLoop {
  enum Kind : uint8_t { kUnary, kBinary } kind = kUnary;
  // kUnary: void(const void* x, void* y, int64_t n)
  // kBinary: void(const void* a, const void* b, void* y, int64_t n, int mode),
  // mode 1 (2): a (b) is one scalar.
  const void* fn = nullptr;
  // Nanoseconds an element, roughly.
  float cost = 0.3f;
};

// Thread-safe unless `stateful`: the same kernel may run at the same time for
// several calls.
class Kernel {
 public:
  virtual ~Kernel() = default;
  // Computes the outputs. Shapes were checked by the shape rule; values were
  // not.
  virtual Status Run(KernelContext& c) = 0;
  // True when Run makes outputs itself even where their shapes are known
  // (views of inputs, values handed through).
  virtual bool own_outputs() const { return false; }
  // Not null for kernels that the fusing pass may take in.
  virtual const ElementwiseLoop* elementwise() const { return nullptr; }
};

// A kernel that is one function of the context.
using ComputeFn = Status (*)(KernelContext& c);
std::unique_ptr<Kernel> MakeKernel(ComputeFn fn, bool own_outputs = false);

// KernelFactory from functions: Cpu(Compute<F>) for all types;
// Cpu(ComputeFor<Pick>) where `ComputeFn Pick(const ResolvedOp&)` chooses by
// type, or null.
template <ComputeFn F>
StatusOr<std::unique_ptr<Kernel>> Compute(const ResolvedOp&) {
  return MakeKernel(F);
}
template <ComputeFn F>
StatusOr<std::unique_ptr<Kernel>> ComputeOwn(const ResolvedOp&) {
  return MakeKernel(F, /*own_outputs=*/true);
}
template <ComputeFn (*Pick)(const ResolvedOp&)>
StatusOr<std::unique_ptr<Kernel>> ComputeFor(const ResolvedOp& op) {
  ComputeFn fn = Pick(op);
  return fn ? MakeKernel(fn) : nullptr;
}
// Cpu(Bind<K>): a K, whose constructor takes the op.
template <typename K>
StatusOr<std::unique_ptr<Kernel>> Bind(const ResolvedOp& op) {
  return std::unique_ptr<Kernel>(std::make_unique<K>(op));
}

// The kernel of `op` on a device of that type ("CPU"), bound; NotFound with
// upstream's text when there is none for the types.
StatusOr<std::unique_ptr<Kernel>> BindKernel(const ResolvedOp& op,
                                             StringView device_type = "CPU");

}  // namespace headrace
