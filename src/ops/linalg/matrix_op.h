// What ops on batches of matrices have in common.
#pragma once

#include <atomic>

#include "base/thread_pool.h"
#include "op/op.h"
#include "ops/linalg/decompositions.h"

namespace headrace {

// What solvers and factorisations take.
inline constexpr char kMatrixTypes[] =
    "T: {double, float, half, complex64, complex128}";

// [..., n, n]: "Input matrix must be square." otherwise, in graphs with the
// numbers of rows and columns, in this order or the other.
Status CheckSquare(ShapeContext& c, const Shape& s, bool columns_first = false);
// The batch dimensions of a matrix op's input; unknown rank where not known.
inline Shape BatchOf(const Shape& s) {
  return s.known_rank() && s.rank() >= 2 ? s.Sub(0, -2) : Shape::UnknownRank();
}
// `batch` with [rows, columns] after it.
Shape WithMatrix(const Shape& batch, int64_t rows, int64_t columns);
// The last size but `i` (1: columns, 2: rows) or -1.
inline int64_t FromEnd(const Shape& s, int i) {
  return s.known_rank() && s.rank() >= i ? s[s.rank() - i] : -1;
}

// Shape rules: output 0 like a square input 0; a scalar a matrix.
Status SquareShape(ShapeContext& c);
// (matrix, rhs) -> like rhs; the batch dimensions agree.
Status SolveShape(ShapeContext& c);

// Calls f(i) for each of `count` matrices, on several threads; the first
// error found.
template <typename F>
Status ForMatrices(int64_t count, double ns, F f) {
  std::atomic<bool> failed{false};
  Status first;
  ParallelFor(count, ns, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end && !failed; ++i) {
      Status s = f(i);
      // One thread alone writes `first`; ParallelFor's end makes it seen here.
      if (!s.ok() && !failed.exchange(true)) first = std::move(s);
    }
  });
  return first;
}

// Runs `fn` with half inputs and outputs turned to float.
Status RunInFloat(KernelContext& c, ComputeFn fn);

// Op::Run<T> by the type attribute T; half through float.
template <typename Op>
Status RunHalf(KernelContext& c) {
  return RunInFloat(c, &Op::template Run<float>);
}
template <typename Op,
          typename Types = TypeList<float, double, complex64, complex128>>
ComputeFn PickMatrix(const ResolvedOp& op) {
  const DType dtype = op.type_attr("T");
  ComputeFn fn = nullptr;
  DispatchDType(dtype, Types{}, [&](auto tag) {
    fn = &Op::template Run<typename decltype(tag)::type>;
  });
  if (dtype == DType::kHalf || dtype == DType::kBfloat16) fn = RunHalf<Op>;
  return fn;
}

// --- Values, for gradients.

// The product of matrices in batches.
Value MatMul(OpScope& s, const Value& a, const Value& b, bool adjoint_a = false,
             bool adjoint_b = false);
Value Adjoint(OpScope& s, const Value& a);
// The last size but `i` of `a`, a scalar: known, or when it runs.
Value SizeFromEnd(OpScope& s, const Value& a, int i);
// The triangle of `a`, its diagonal included.
Value Triangle(OpScope& s, const Value& a, bool lower);
// `a` with half of its diagonal.
Value HalfDiagonal(OpScope& s, const Value& a);

}  // namespace headrace
