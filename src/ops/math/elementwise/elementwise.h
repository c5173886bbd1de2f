// The engine of element-wise ops: kernels made of the loops in loops.h, with
// broadcasting, tiling, threads and work in place; and what the files that
// register such ops share.
#pragma once

#include <memory>

#include "op/op.h"
#include "op/passes/binds_calls.h"
#include "ops/math/loops/loops.h"

namespace headrace {

// --- Kernels. All are thread-safe; tensors of a few elements go straight
// --- through the loop.

// y = f(x) by the loop of the op's name and first input's type; null when
// there is none.
StatusOr<std::unique_ptr<Kernel>> UnaryKernel(const ResolvedOp& op);
// z = f(x, y), broadcast, likewise. Inputs may be given fewer elements than
// the output only as BroadcastShape allows.
StatusOr<std::unique_ptr<Kernel>> BinaryKernel(const ResolvedOp& op);

// The same from a given loop; `ns` is an element's cost.
std::unique_ptr<Kernel> MakeUnaryKernel(const ResolvedOp& op, UnaryLoop loop,
                                        float ns, SmallLoops small = {});
std::unique_ptr<Kernel> MakeBinaryKernel(const ResolvedOp& op, BinaryLoop loop,
                                         float ns, SmallLoops small = {});
std::unique_ptr<Kernel> MakeCheckedKernel(CheckedLoop loop, float ns);

// A call of `loop` on fixed memory; false where the operands are not all as
// large as the output or single elements.
bool BindUnaryLoop(UnaryLoop loop, SmallLoops small,
                   absl::Span<const BoundInput> inputs, const Shape& output,
                   BoundCall* call);
bool BindBinaryLoop(BinaryLoop loop, SmallLoops small,
                    absl::Span<const BoundInput> inputs, const Shape& output,
                    BoundCall* call);

// Computes one broadcast op, threads included, into an output that is
// allocated with the broadcast shape.
void ComputeBinary(BinaryLoop loop, float ns, const Tensor& a, const Tensor& b,
                   const Tensor& out);

// --- Scalar functions as kernels, for ops that loops.h has no loop for:
// --- Cpu(UnaryOf<kFunction, Types...>), where kFunction is a constexpr lambda
// --- of float or double (small floats compute in float) or complex.

template <auto F, typename T>
void ScalarUnaryLoop(const void* x, void* y, int64_t n) {
  using W = ComputeType<T>;
  using R = decltype(F(W{}));
  // A function that gives its own type gives the element's; a test or a modulus
  // gives what it gives.
  using Out = std::conditional_t<std::is_same_v<R, W>, T, R>;
  const T* from = static_cast<const T*>(x);
  Out* to = static_cast<Out*>(y);
  for (int64_t i = 0; i < n; ++i) {
    to[i] = static_cast<Out>(F(static_cast<W>(from[i])));
  }
}
template <auto F, typename T>
void ScalarBinaryLoop(const void* a, const void* b, void* y, int64_t n,
                      int kind) {
  using W = ComputeType<T>;
  using R = decltype(F(W{}, W{}));
  using Out = std::conditional_t<std::is_same_v<R, W>, T, R>;
  const T *p = static_cast<const T*>(a), *q = static_cast<const T*>(b);
  Out* to = static_cast<Out*>(y);
  const int64_t pa = kind != 1, pb = kind != 2;
  // Read first: the output may lie over a scalar operand.
  for (int64_t i = 0; i < n; ++i) {
    to[i] = static_cast<Out>(
        F(static_cast<W>(p[i * pa]), static_cast<W>(q[i * pb])));
  }
}

template <auto F, typename... Ts>
StatusOr<std::unique_ptr<Kernel>> UnaryOf(const ResolvedOp& op) {
  std::unique_ptr<Kernel> kernel;
  DispatchDType(op.input_types()[0], TypeList<Ts...>{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    // Nanoseconds of a call of the C library, roughly.
    kernel = MakeUnaryKernel(op, &ScalarUnaryLoop<F, T>, 20);
  });
  return kernel;
}
template <auto F, typename... Ts>
StatusOr<std::unique_ptr<Kernel>> BinaryOf(const ResolvedOp& op) {
  std::unique_ptr<Kernel> kernel;
  DispatchDType(op.input_types()[0], TypeList<Ts...>{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernel = MakeBinaryKernel(op, &ScalarBinaryLoop<F, T>, 20);
  });
  return kernel;
}

// --- Definitions.

// Inputs of these kinds, as upstream lists them.
inline constexpr char kFloatTypes[] = "T: {bfloat16, half, float, double}";
inline constexpr char kFloatComplexTypes[] =
    "T: {bfloat16, half, float, double, complex64, complex128}";

// "x: T" to "y: T", same shape, in place, with UnaryKernel.
OpBuilder UnaryOp(const char* name, const char* types, const char* doc);
// "x: T", "y: T" to "z: T", broadcast, in place, with BinaryKernel.
OpBuilder BinaryOp(const char* name, const char* types, const char* doc);
// Two inputs of one size, which is the output's too: (y, dy) to z.
OpBuilder UnaryGradOp(const char* name, const char* doc);
// Output 0 is like input 0; all inputs have as many elements.
Status EqualSizesShape(ShapeContext& c);

// --- Parts of gradients.

// For ops that upstream gives a gradient that is none.
Status NothingFlows(GradientContext& g);

// The conjugate; `v` itself unless it is complex.
Value ConjOf(OpScope& g, const Value& v);
// `v` times the number `k`.
Value TimesScalar(OpScope& g, const Value& v, double k);

}  // namespace headrace
