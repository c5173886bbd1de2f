#include "ops/array/diagonal/matrix_diagonals.h"

#include <algorithm>

namespace headrace {

DiagonalAlign AlignOf(const ResolvedOp& op) {
  // The versions before V3 align to the left.
  if (op.def().FindAttr("align") == nullptr) return {true, true};
  const std::string& align = op.string_attr("align");
  return {align == "LEFT_RIGHT" || align == "LEFT_LEFT",
          align == "RIGHT_LEFT" || align == "LEFT_LEFT"};
}

AttrMap GradientAlign(const GradientContext& g) {
  const bool has = g.op().def().FindAttr("align") != nullptr;
  return {
      // The gradient is emitted as V3, which must be told how.
      {"align", has ? g.op().string_attr("align") : std::string("RIGHT_LEFT")}};
}

Status CheckBandShape(const Shape& k) {
  if (!k.known_rank()) return OkStatus();
  if (k.rank() > 1) {
    return InvalidArgument(
        "diag_index must be a scalar or vector, received shape: ", k);
  }
  if (k.rank() == 0 || k[0] < 0) return OkStatus();
  if (k[0] == 0) {
    return InvalidArgument("Expected diag_index to have at least 1 element");
  }
  if (k[0] > 2) {
    return InvalidArgument(
        "diag_index must have only one or two elements, received ", k[0],
        " elements.");
  }
  return OkStatus();
}

StatusOr<DiagonalBand> ReadBand(const Tensor& k) {
  HR_RETURN_IF_ERROR(CheckBandShape(k.shape()));
  DiagonalBand band;
  band.lower = k.IntAt(0);
  band.upper = k.num_elements() > 1 ? k.IntAt(1) : band.lower;
  if (band.lower > band.upper) {
    return InvalidArgument(
        "lower_diag_index must not be larger than upper_diag_index: ",
        band.lower, " > ", band.upper);
  }
  return band;
}

Status CheckBand(const DiagonalBand& band, int64_t rows, int64_t columns) {
  auto check = [&](int64_t d, StringView name) {
    // The main diagonal exists even of an empty matrix.
    if (d == 0 || (-rows < d && d < columns)) return OkStatus();
    return InvalidArgument(name, " is out of bound: ", d,
                           ". It must be between ", -rows, " and ", columns);
  };
  HR_RETURN_IF_ERROR(check(band.lower, "lower_diag_index"));
  return check(band.upper, "upper_diag_index");
}

int64_t DiagonalLength(int64_t d, int64_t rows, int64_t columns) {
  return std::max<int64_t>(0, std::min(rows + std::min<int64_t>(0, d),
                                       columns - std::max<int64_t>(0, d)));
}

int64_t LongestDiagonal(const DiagonalBand& band, int64_t rows,
                        int64_t columns) {
  // The longest diagonal of a band is the one nearest to the main one.
  return std::max<int64_t>(
      0, std::min(rows + std::min<int64_t>(band.upper, 0),
                  columns - std::max<int64_t>(band.lower, 0)));
}

int64_t DiagonalOffset(int64_t d, int64_t longest, int64_t rows,
                       int64_t columns, const DiagonalAlign& align) {
  // The main diagonal is on both sides, and never padded.
  const bool left = (d >= 0 && align.super_left) || (d <= 0 && align.sub_left);
  return left ? 0 : longest - DiagonalLength(d, rows, columns);
}

}  // namespace headrace
