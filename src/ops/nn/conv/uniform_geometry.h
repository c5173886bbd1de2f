// The convolutions of the Uniform family: any number of spatial dimensions, in
// any layout, dilated on both sides, in groups.
#pragma once

#include <vector>

#include "op/op.h"

namespace headrace {

// Where the dimensions of the operands and the result lie, and how windows go.
// Sizes are -1 where not known.
struct UniformGeometry {
  struct Axis {
    int lhs, rhs, out;  // where the dimension stands
    int64_t in = -1, size = -1, made = -1;
    int64_t stride = 1, before = 0, after = 0;
    int64_t lhs_dilation = 1, rhs_dilation = 1;
  };
  int lhs_batch = 0, lhs_feature = 1;
  int rhs_out = 0, rhs_in = 1;
  int out_batch = 0, out_feature = 1;
  std::vector<Axis> axes;
  int64_t batch_groups = 1, feature_groups = 1;
  Shape made;  // the result's

  // InvalidArgument, in upstream's words, for what fits no convolution.
  static StatusOr<UniformGeometry> Make(const ResolvedOp& op, const Shape& lhs,
                                        const Shape& rhs);
};

// How far apart, in elements, the entries of each dimension lie.
std::vector<int64_t> StepsOf(const Shape& s);

}  // namespace headrace
