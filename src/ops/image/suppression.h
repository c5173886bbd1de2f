// Greedy suppression of boxes that overlap better ones.
#pragma once

#include <vector>

#include "absl/functional/function_ref.h"
#include "op/op.h"

namespace headrace {

struct SuppressionRule {
  int64_t most = 0;        // boxes to select at most
  float overlap = 0.5f;    // boxes that overlap a selected one by more are out
  float lowest_score = 0;  // boxes must score more
  float soft_sigma = 0;    // above 0: overlaps lower the score instead
};

struct Selected {
  int32_t box;
  float score;
};

// The boxes in the order in which they are selected: by score, then by index.
// `overlap(i, j)`: how much boxes i and j overlap, in [0, 1].
std::vector<Selected> SelectBoxes(
    absl::Span<const float> scores, const SuppressionRule& rule,
    absl::FunctionRef<float(int64_t i, int64_t j)> overlap);

// Intersection over union of boxes given by two opposite corners [y1, x1, y2,
// x2]; 0 where one has no area.
float OverlapOfBoxes(const float* a, const float* b);

// Checks with upstream's texts, of what is known.
Status CheckSuppressionScalars(ShapeContext& c, int first);
// [n, 4] boxes and [n] scores; n, or -1 where not known.
StatusOr<int64_t> CountOfBoxes(const Shape& boxes, const Shape& scores);

}  // namespace headrace
