// The devices that sessions and contexts tell of.
#pragma once

#include <string>
#include <vector>

#include "tensorflow/c/c_api.h"

struct TF_DeviceList {
  struct Device {
    std::string name, type;
    int64_t memory = 0;  // bytes
    uint64_t incarnation = 0;
  };
  std::vector<Device> devices;
};

namespace headrace::capi {

// Those of this process, named as op/processor.h names them.
TF_DeviceList* ListProcessors(int count);

}  // namespace headrace::capi
