// What a graph says of shapes that do not fit. Shape rules speak as kernels do,
// since eager calls run them first; while a graph is made, upstream names the
// rule that is broken, the node and what was known of its inputs. The rule
// gives both wordings where it refuses: c.Refuse(DimensionsDiffer(a, b),
// InvalidArgument(...)).
#pragma once

#include <cstdint>
#include <string>

#include "tensor/shape.h"

namespace headrace {

// A refusal in a graph's words. Bit i of a mask: input i was looked at, as a
// value or as a shape that is known in part.
struct ShapeRefusal {
  std::string text;  // empty: the rule's own text stands
  uint32_t values = 0;
  uint32_t partial_shapes = 0;

  // The same, with the values of these inputs named behind it.
  ShapeRefusal WithValues(uint32_t mask) && {
    values = mask;
    return std::move(*this);
  }
};

// "Dimensions must be equal, but are 2 and 3".
ShapeRefusal DimensionsDiffer(int64_t a, int64_t b);
// "Dimension must be 2 but is 3".
ShapeRefusal DimensionIsNot(int64_t must, int64_t is);
// "Shape must be rank 2 but is rank 3".
ShapeRefusal RankIsNot(int must, int is);
// "Shape must be at least rank 2 but is rank 1".
ShapeRefusal RankIsLess(int64_t must, int is);
// "Dimension size must be evenly divisible by 2 but is 3".
ShapeRefusal NotDivisible(int64_t by, int64_t is);
// The first two sizes, from the left, that cannot be broadcast; no text if all
// can.
ShapeRefusal NotBroadcast(const Shape& a, const Shape& b);
// Why the two cannot be one shape; no text if they can.
ShapeRefusal NotMerged(const Shape& a, const Shape& b);

}  // namespace headrace
