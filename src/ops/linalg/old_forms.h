// The forms that graphs of old producers have of ops on matrices.
#pragma once

#include "op/op_like.h"

namespace headrace {

// The op as it was until `version`: of these dtypes and without a gradient.
inline void UntilVersion(OpDef& def, int version, const char* instead,
                         std::vector<DType> dtypes) {
  def.deprecation = {version, absl::StrCat("Use ", instead, " instead.")};
  for (AttrDef& a : def.attrs) {
    if (a.name == "T") a.allowed_types = dtypes;
  }
  def.gradient_kind = GradientKind::kNone;
  def.gradient_fn = nullptr;
  def.gradient_skips_inputs = def.gradient_skips_outputs = 0;
  def.vectorize = nullptr;
}

}  // namespace headrace
