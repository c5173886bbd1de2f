// The equation of Einsum, taken apart.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "tensor/shape.h"

namespace headrace {

// A subscript's labels: a letter's code, or kEllipsis + i for the i-th
// dimension that an ellipsis stands for, counted from its right.
using Labels = absl::InlinedVector<int, 8>;
inline constexpr int kEllipsis = 256;

struct EinsumEquation {
  std::vector<std::string> inputs;  // an ellipsis is the single character '.'
  std::string output;

  // "ij,jk->ik"; InvalidArgument with upstream's texts.
  static StatusOr<EinsumEquation> Parse(StringView text);
  // The subscripts as text again, ellipses written out.
  static std::string Text(StringView subscripts);
};

// The labels of `subscripts` on a tensor of that rank; an ellipsis takes what
// the letters leave. `which` is for messages.
StatusOr<Labels> LabelsOf(StringView subscripts, int rank, int which);
// The output's labels, where the ellipsis stands for `ellipsis` dimensions.
Labels OutputLabels(StringView subscripts, int ellipsis);

}  // namespace headrace
