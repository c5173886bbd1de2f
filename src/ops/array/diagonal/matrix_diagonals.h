// Bands of diagonals, as MatrixDiag, MatrixDiagPart and MatrixSetDiag see
// them.
#pragma once

#include <string>

#include "op/op.h"

namespace headrace {

// Where short diagonals stand in the rows of a band of the longest's length.
struct DiagonalAlign {
  bool super_left = false;  // diagonals above the main one
  bool sub_left = true;     // those below
};
// From the attribute "align"; ops without it use LEFT_LEFT.
DiagonalAlign AlignOf(const ResolvedOp& op);
// The attribute for the V3 ops that a gradient emits. Upstream's gradients of
// the V2 ops, which have none, read bands as V3 does by default; so do these.
AttrMap GradientAlign(const GradientContext& g);

// Diagonals lower..upper (0: main, above it positive) of a matrix.
struct DiagonalBand {
  int64_t lower = 0, upper = 0;
  int64_t count() const { return upper - lower + 1; }
};
// The value of an input k: one or two integers. InvalidArgument with
// upstream's texts.
StatusOr<DiagonalBand> ReadBand(const Tensor& k);
Status CheckBandShape(const Shape& k);
// Both ends must lie inside a matrix of that size (0 always does).
Status CheckBand(const DiagonalBand& band, int64_t rows, int64_t columns);

// Length of diagonal d, and of the longest of a band.
int64_t DiagonalLength(int64_t d, int64_t rows, int64_t columns);
int64_t LongestDiagonal(const DiagonalBand& band, int64_t rows,
                        int64_t columns);
// How far a diagonal's first element is from the left end of its row.
int64_t DiagonalOffset(int64_t d, int64_t longest, int64_t rows,
                       int64_t columns, const DiagonalAlign& align);

}  // namespace headrace
