// Gradients of segment ops, (data, segment_ids[, num_segments]), sorted or not.
#pragma once

#include "op/op.h"

namespace headrace {

Status SegmentSumGradient(GradientContext& g);
Status SegmentMeanGradient(GradientContext& g);
Status SegmentProdGradient(GradientContext& g);
Status SegmentExtremeGradient(GradientContext& g);

}  // namespace headrace
