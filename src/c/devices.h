// The devices that sessions and contexts tell of.
#pragma once

#include <string>
#include <vector>

#include "tensorflow/c/c_api.h"

struct TF_DeviceList {
  std::vector<std::string> names;  // all processors
};

namespace headrace::capi {

// "/job:localhost/replica:0/task:0/device:CPU:N".
std::string NameOfProcessor(int number);
TF_DeviceList* ListProcessors(int count);

}  // namespace headrace::capi
