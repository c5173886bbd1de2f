// The methods of tensorflow.MasterService.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "distributed/master/master.h"

namespace headrace::distributed {

// One of them but RunStep, for clients of this process; InvalidArgument for
// messages that are not the method's.
Status CallMaster(const std::shared_ptr<Master>& master, StringView method,
                  const google::protobuf::MessageLite& request,
                  Clock::time_point deadline,
                  google::protobuf::MessageLite* response);

// By path. Calls under way hold the master.
std::map<std::string, Method> MasterMethods(std::shared_ptr<Master> master);

}  // namespace headrace::distributed
