// The widths of what a pad op puts around its input.
#pragma once

#include "op/shape_context.h"

namespace headrace {

// InvalidArgument unless `paddings` may be [rank of `in`, 2]; `separator`
// stands between the two shapes in the message.
Status CheckPaddings(ShapeContext& c, const Shape& in, const Shape& paddings,
                     const char* separator);

}  // namespace headrace
