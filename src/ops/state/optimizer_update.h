// The element-wise pass of an optimizer's update; optimizer_rules.h has the
// rules. Used by the Apply* ops.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace headrace {

enum class UpdateRule : uint8_t {
  kGradientDescent,
  kMomentum,
  kKerasMomentum,
  kAdam,
  kAdamAmsgrad,
  kAdaMax,
  kAdagrad,
  kAdagradV2,
  kAdadelta,
  kRmsProp,
  kCenteredRmsProp,
  kAddSign,
  kPowerSign,
  kProximalGradientDescent,
  kProximalAdagrad,
  kAdagradDa,
  kFtrl,
};

// How many tensors the rule changes, the variable included; at most 4.
int UpdateSlots(UpdateRule rule);

// Updates n elements of every slot with n gradients, on this thread. `scalars`
// are the rule's, in the order that its Prepare gives. Slots may be the same
// memory. Returns false for dtypes other than float, double, half, bfloat16.
bool RunUpdate(UpdateRule rule, DType dtype, void* const* slots,
               const void* gradient, const double* scalars, int64_t n);

}  // namespace headrace
