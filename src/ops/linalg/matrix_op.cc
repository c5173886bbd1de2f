#include "ops/linalg/matrix_op.h"

namespace headrace {

Status CheckSquare(ShapeContext& c, const Shape& s, bool columns_first) {
  if (!s.known_rank()) return OkStatus();
  if (s.rank() < 2) {
    return c.Refuse(RankIsLess(2, s.rank()),
                    InvalidArgument("Input tensor 0 must have rank >= 2"));
  }
  const int64_t rows = FromEnd(s, 2), columns = FromEnd(s, 1);
  if (rows >= 0 && columns >= 0 && rows != columns) {
    return c.Refuse(columns_first ? DimensionsDiffer(columns, rows)
                                  : DimensionsDiffer(rows, columns),
                    InvalidArgument("Input matrix must be square."));
  }
  return OkStatus();
}

Shape WithMatrix(const Shape& batch, int64_t rows, int64_t columns) {
  if (!batch.known_rank()) return batch;
  Shape s = batch;
  s.AddDim(rows);
  s.AddDim(columns);
  return s;
}

Status SquareShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckSquare(c, c.input(0)));
  Shape s = c.input(0);
  if (s.known_rank()) {
    // A size that is not known is the other one.
    const int rows = s.rank() - 2, columns = s.rank() - 1;
    if (s[rows] < 0) s.set_dim(rows, s[columns]);
    if (s[columns] < 0) s.set_dim(columns, s[rows]);
  }
  c.set_output(0, std::move(s));
  return OkStatus();
}

Status SolveShape(ShapeContext& c) {
  const Shape &a = c.input(0), &b = c.input(1);
  HR_RETURN_IF_ERROR(CheckSquare(c, a));
  HR_RETURN_IF_ERROR(CheckRankAtLeast(b, 2));
  const int64_t n = FromEnd(a, 1), rows = FromEnd(b, 2);
  if (n >= 0 && rows >= 0 && n != rows) {
    return c.Refuse(DimensionsDiffer(n, rows),
                    InvalidArgument("Input matrix and rhs are incompatible."));
  }
  auto batch = MergeShapes(BatchOf(a), BatchOf(b));
  if (!batch.ok()) {
    return c.Refuse(NotMerged(BatchOf(a), BatchOf(b)),
                    InvalidArgument("All input tensors must have the same "
                                    "outer dimensions."));
  }
  c.set_output(0, WithMatrix(*batch, rows >= 0 ? rows : n, FromEnd(b, 1)));
  return OkStatus();
}

namespace {

bool IsNarrow(DType d) { return d == DType::kHalf || d == DType::kBfloat16; }

StatusOr<Tensor> Widened(const Tensor& t) {
  HR_ASSIGN_OR_RETURN(Tensor wide, Tensor::Allocate(DType::kFloat, t.shape()));
  DispatchDType(t.dtype(), TypeList<half, bfloat16>{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::copy_n(t.data<T>(), t.num_elements(), wide.data<float>());
  });
  return wide;
}

}  // namespace

Status RunInFloat(KernelContext& c, ComputeFn fn) {
  std::vector<Tensor> in, out;
  std::vector<Tensor*> in_pointers, out_pointers;
  for (int i = 0; i < c.num_inputs(); ++i) {
    in.push_back(c.input(i));
    if (IsNarrow(c.input(i).dtype())) {
      HR_ASSIGN_OR_RETURN(in.back(), Widened(c.input(i)));
    }
  }
  for (int i = 0; i < c.num_outputs(); ++i) {
    out.push_back(c.output(i));
    if (IsNarrow(c.output(i).dtype())) {
      HR_ASSIGN_OR_RETURN(out.back(),
                          Tensor::Allocate(DType::kFloat, c.output(i).shape()));
    }
  }
  for (Tensor& t : in) in_pointers.push_back(&t);
  for (Tensor& t : out) out_pointers.push_back(&t);
  // The same kernel over tensors of its own; the narrow outputs are made of
  // these at the end.
  KernelContext wide(c.op(), in_pointers.data(), out_pointers.data(),
                     c.services());
  HR_RETURN_IF_ERROR(fn(wide));
  for (int i = 0; i < c.num_outputs(); ++i) {
    DispatchDType(c.output(i).dtype(), TypeList<half, bfloat16>{},
                  [&](auto tag) {
                    using T = typename decltype(tag)::type;
                    const float* from = out[i].data<float>();
                    T* to = c.out<T>(i);
                    for (int64_t j = 0; j < out[i].num_elements(); ++j) {
                      to[j] = static_cast<T>(from[j]);
                    }
                  });
  }
  return OkStatus();
}

Value MatMul(OpScope& s, const Value& a, const Value& b, bool adjoint_a,
             bool adjoint_b) {
  return s("BatchMatMulV2", {a, b},
           {{"adj_x", adjoint_a}, {"adj_y", adjoint_b}});
}

Value SizeFromEnd(OpScope& s, const Value& a, int i) {
  const int64_t known = FromEnd(a.shape(), i);
  if (known >= 0) return s.Int32(static_cast<int32_t>(known));
  return s("StridedSlice",
           {s.ShapeOf(a), s.Int32s({-i}), s.Int32s({1 - i}), s.Int32s({1})},
           {{"shrink_axis_mask", int64_t{1}}});
}

Value Adjoint(OpScope& s, const Value& a) {
  if (!a) return a;
  Value v = IsComplex(a.dtype()) ? s("Conj", {a}) : a;
  // The permutation that swaps the last two dimensions.
  // A known rank spares the ops that would find the permutation at run time.
  if (a.shape().known_rank()) {
    std::vector<int32_t> perm(a.rank());
    for (int i = 0; i < a.rank(); ++i) perm[i] = i;
    std::swap(perm[a.rank() - 1], perm[a.rank() - 2]);
    return s("Transpose", {v, s.Int32s(perm)});
  }
  Value rank = s("Rank", {a}), one = s.Int32(1), two = s.Int32(2);
  Value front = s("Range", {s.Int32(0), s("Sub", {rank, two}), one});
  Value last = s("Sub", {rank, one}), before = s("Sub", {rank, two});
  Value tail = s("Pack", {last, before}, {{"N", 2}});
  return s("Transpose", {v, s("ConcatV2", {front, tail, s.Int32(0)})});
}

Value Triangle(OpScope& s, const Value& a, bool lower) {
  return s("MatrixBandPart",
           {a, s.Int32(lower ? -1 : 0), s.Int32(lower ? 0 : -1)});
}

Value HalfDiagonal(OpScope& s, const Value& a) {
  Value diagonal = s("MatrixDiagPart", {a});
  return s("MatrixSetDiag",
           {a, s("Mul", {diagonal, s.Scalar(a.dtype(), 0.5)})});
}

}  // namespace headrace
