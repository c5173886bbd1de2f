// How many devices of type CPU a ConfigProto asks for.
#pragma once

#include "base/status.h"
#include "tensorflow/core/protobuf/config.pb.h"

namespace headrace::distributed {

// Each is an entry of lists that are kept and sent: a number of a stranger's
// must not fill the memory.
inline constexpr int kMostProcessors = 1024;

// 1 where it says nothing; InvalidArgument beyond kMostProcessors.
inline StatusOr<int> ProcessorsOf(const tensorflow::ConfigProto& config) {
  const auto it = config.device_count().find("CPU");
  if (it == config.device_count().end() || it->second <= 0) return 1;
  if (it->second <= kMostProcessors) return it->second;
  return InvalidArgument("device_count[\"CPU\"] is at most ", kMostProcessors,
                         ", got ", it->second);
}

}  // namespace headrace::distributed
