// What layers over space and time have in common.
#pragma once

#include <string>
#include <vector>

#include "cc/compose.h"

namespace headrace::tf::internal {

// kInvalidArgument unless all are positive (or, with `zero`, not negative) and
// fit into 32 bits.
void CheckSizes(const std::vector<int64_t>& sizes, const char* name,
                bool zero = false);
// "VALID" or "SAME" (or "CAUSAL") of Keras' name, kInvalidArgument for others.
std::string PaddingOf(const std::string& padding, bool causal = false);
// kInvalidArgument for names that are neither.
bool ChannelsFirst(const std::string& data_format);
// {1, sizes..., 1}.
std::vector<int64_t> Spread(const std::vector<int64_t>& sizes);

// fn with channels last, for `rank` dimensions in any format.
template <typename F>
Tensor WithChannelsLast(const Tensor& x, const std::string& format, int rank,
                        F fn) {
  if (!ChannelsFirst(format)) return fn(x);
  std::vector<int64_t> to = {0}, from = {0, rank + 1};
  for (int i = 2; i <= rank + 1; ++i) to.push_back(i);
  to.push_back(1);
  for (int i = 1; i <= rank; ++i) from.push_back(i);
  return Transpose(fn(Transpose(x, to)), from);
}

// fn of x [n, 1, steps, channels], for x [n, steps, channels].
template <typename F>
Tensor AsImages(const Tensor& x, F fn) {
  return Op("Squeeze", {fn(Op("ExpandDims", {x, Int(1)}))},
            {{"squeeze_dims", std::vector<int64_t>{1}}});
}

}  // namespace headrace::tf::internal
