// Tensors as text, as Assert, Print and tf.print show them.
#pragma once

#include <string>

#include "tensor/tensor.h"

namespace headrace {

// Up to `limit` elements (negative: all) in one line: "0 1 2...", and
// "[1 2][3 4]" for two dimensions; without the outer brackets.
std::string SummarizeFlat(const Tensor& t, int64_t limit);

// As NumPy does: `ends` elements (negative: all) at both ends of every
// dimension, "[[0 1 ... 8 9]\n [10 ...". Strings are quoted.
std::string SummarizeEnds(const Tensor& t, int64_t ends);

// The shortest of 6 or 9 digits (float), 15 or 17 (double) that gives the
// number back: "0.1", "0.333333343", "1e+10", "inf", "nan".
std::string FloatText(float v);
std::string DoubleText(double v);

}  // namespace headrace
