// tf.experimental.SafeMode as the module hands it around.
#pragma once

#include "op/reach.h"

namespace headrace::bind {

struct PySafeMode {
  SandboxPtr sandbox;
};

}  // namespace headrace::bind
