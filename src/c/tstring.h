// Strings as the C interface's tensors hold them.
#pragma once

#include "base/status.h"
#include "tensorflow/c/tf_tstring.h"

namespace headrace::capi {

static_assert(sizeof(TF_TString) == 24);

// What it holds, whichever form it has.
StringView TextOf(const TF_TString& s);
// A copy in memory that holds no string yet. ResourceExhausted when memory
// ends; then the string is empty.
Status InitString(TF_TString* s, StringView text);

}  // namespace headrace::capi
