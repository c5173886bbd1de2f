// The methods of the data service, of ours alone: TensorFlow's dispatchers and
// workers answer other ones.
#pragma once

#include "distributed/wire/methods.h"

namespace headrace::distributed::data_service {

#define HR_METHOD(name, ...)                                            \
  inline constexpr RemoteMethod k##name{"/headrace.DataService/" #name, \
                                        __VA_ARGS__};
// Of dispatchers. What registers and opens is the first that a client asks, and
// waits for a dispatcher that may still be starting.
HR_METHOD(RegisterDataset, kGathering, true, true)
HR_METHOD(GetDataset, kGathering, true, true)
HR_METHOD(OpenIteration, kGathering, false, true)
HR_METHOD(ClientHeartbeat, kAtOnce)
HR_METHOD(ReleaseClient, kAtOnce, true)
HR_METHOD(WorkerHeartbeat, kAtOnce, false, true)
HR_METHOD(TaskEnded, kAtOnce, true)
HR_METHOD(GetSplit, kAtOnce)
HR_METHOD(GetWorkers, kAtOnce, true)
// Of workers.
HR_METHOD(GetElements, kStep)
#undef HR_METHOD

}  // namespace headrace::distributed::data_service
