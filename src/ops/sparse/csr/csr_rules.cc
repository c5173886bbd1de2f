// What shape rules and gradients of the ops on CSR matrices share.
#include <algorithm>
#include <limits>

#include "ops/sparse/csr/csr_matrix.h"

namespace headrace {

StatusOr<Shape> CsrShapeInput(const ShapeContext& c, int i) {
  const Shape& s = c.input(i);
  if (s.known_rank() && s.rank() != 0) {
    return InvalidArgument("Invalid input matrix: Shape must be rank 0 but is ",
                           "rank ", s.rank());
  }
  const HandleData* data = c.input_handle(i);
  if (data == nullptr || data->size() != 1) return Shape::UnknownRank();
  const Shape& shape = (*data)[0].shape;
  HR_RETURN_IF_ERROR(CheckRankAtLeast(shape, 2));
  HR_RETURN_IF_ERROR(CheckRankAtMost(shape, 3));
  return shape;
}

void SetCsrShape(ShapeContext& c, DType dtype, Shape shape) {
  c.set_output(0, Shape());
  c.set_output_handle(0, {HandlePart{dtype, std::move(shape)}});
}

Shape SwapMatrix(Shape s) {
  if (!s.known_rank() || s.rank() < 2) return s;
  const int r = s.rank();
  const int64_t rows = s[r - 2];
  s.set_dim(r - 2, s[r - 1]);
  s.set_dim(r - 1, rows);
  return s;
}

StatusOr<Shape> CsrProductShape(const Shape& a, const Shape& b) {
  if (!a.known_rank() || !b.known_rank()) {
    return a.known_rank()   ? Shape::UnknownOfRank(a.rank())
           : b.known_rank() ? Shape::UnknownOfRank(b.rank())
                            : Shape::UnknownRank();
  }
  if (a.rank() != b.rank()) {
    return InvalidArgument("Ranks of a and b must match, saw: ", a.rank(),
                           " vs. ", b.rank(), ".");
  }
  const int r = a.rank();
  if (a[r - 1] >= 0 && b[r - 2] >= 0 && a[r - 1] != b[r - 2]) {
    return InvalidArgument("Dimensions must be equal, but are ", a[r - 1],
                           " and ", b[r - 2]);
  }
  Shape out{a[r - 2], b[r - 1]};
  if (r == 3) {
    if (a[0] >= 0 && b[0] >= 0 && a[0] != b[0]) {
      return InvalidArgument("Batch sizes of a and b must match, saw: ", a[0],
                             " vs. ", b[0], ".");
    }
    out.InsertDim(0, std::max(a[0], b[0]));
  }
  return out;
}

Status CheckTransposeFlags(const ResolvedOp& op) {
  for (const char* side : {"a", "b"}) {
    if (op.bool_attr(absl::StrCat("adjoint_", side)) &&
        op.bool_attr(absl::StrCat("transpose_", side))) {
      return InvalidArgument("Only one of adjoint_", side, " and transpose_",
                             side, " may be true.");
    }
  }
  return OkStatus();
}

CsrEntries EntriesOf(OpScope& s, const Value& matrix, DType dtype) {
  ValueList parts =
      s.All("CSRSparseMatrixToSparseTensor", {matrix}, {{"type", dtype}});
  if (!s.ok()) return {};
  return {parts[0], parts[1], parts[2]};
}

namespace {

// Entries' places as one number each, [entries].
Value PlaceNumbers(OpScope& s, const CsrEntries& e) {
  Value one = s.Const(Tensor::Vector<int64_t>({-1}));
  Value place = s("SparseReshape", {e.indices, e.sizes, one});
  return s("Reshape", {place, s.Int32s({-1})});
}

}  // namespace

Value ValuesAt(OpScope& s, const CsrEntries& places, const Value& matrix,
               DType dtype) {
  CsrEntries have = EntriesOf(s, matrix, dtype);
  if (!s.ok()) return Value();
  const ValueList sorted =
      s.All("SparseReorder", {have.indices, have.values, have.sizes});
  if (!s.ok()) return Value();
  have.indices = sorted[0];
  have.values = sorted[1];
  // One more entry, behind all places, for those that are not found.
  Value last =
      s.Const(Tensor::Vector<int64_t>({std::numeric_limits<int64_t>::max()}));
  Value none = s("Fill", {s.Int32s({1}), s.Scalar(dtype, 0)});
  Value numbers = s("ConcatV2", {PlaceNumbers(s, have), last, s.Int32(0)});
  Value values = s("ConcatV2", {have.values, none, s.Int32(0)});
  Value wanted = PlaceNumbers(s, places);
  Value at = s("LowerBound", {s("ExpandDims", {numbers, s.Int32(0)}),
                              s("ExpandDims", {wanted, s.Int32(0)})});
  at = s("Reshape", {at, s.Int32s({-1})});
  Value found = s("Equal", {s("GatherV2", {numbers, at, s.Int32(0)}), wanted});
  Value picked = s("GatherV2", {values, at, s.Int32(0)});
  return s("SelectV2", {found, picked, s.Scalar(dtype, 0)});
}

}  // namespace headrace
