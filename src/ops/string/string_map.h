// Kernels that map every string of a tensor by itself.
#pragma once

#include "base/thread_pool.h"
#include "op/op.h"

namespace headrace {

// out[i] = fn(in[i]) for all strings of input 0; Out is output 0's type.
template <typename Out, typename Fn>
void MapStrings(KernelContext& c, Fn fn) {
  const std::string* in = c.in<std::string>(0);
  Out* out = c.out<Out>(0);
  ParallelFor(c.input(0).num_elements(), 100, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = fn(in[i]);
  });
}

// The same where fn(const std::string&, Out*) may fail: the first error, in
// order, is returned.
template <typename Out, typename Fn>
Status MapStringsOrFail(KernelContext& c, Fn fn) {
  const std::string* in = c.in<std::string>(0);
  Out* out = c.out<Out>(0);
  for (int64_t i = 0; i < c.input(0).num_elements(); ++i) {
    HR_RETURN_IF_ERROR(fn(in[i], &out[i]));
  }
  return OkStatus();
}

}  // namespace headrace
