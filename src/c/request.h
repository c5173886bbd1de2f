// What a run of a session is asked.
#pragma once

#include "runtime/partial_run.h"

namespace headrace::capi {

using Request = GraphRequest;

}  // namespace headrace::capi
