// The devices that sessions and contexts tell of.
#pragma once

#include <string>
#include <vector>

#include "tensorflow/c/c_api.h"

struct TF_DeviceList {
  std::vector<std::string> names;  // all processors
};

namespace headrace::capi {

// Named as op/processor.h names them.
TF_DeviceList* ListProcessors(int count);

}  // namespace headrace::capi
