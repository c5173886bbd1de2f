// A call of the data service, waited for.
#pragma once

#include <string>

#include "distributed/channels.h"
#include "distributed/messages.h"

namespace headrace::distributed::data_service {

// As CheckStop allows. Its deadline is the method's where options have none.
Status Ask(Channels& channels, const std::string& address,
           const RemoteMethod& method,
           const google::protobuf::MessageLite& request,
           google::protobuf::MessageLite* response,
           const CallOptions& options = {});

}  // namespace headrace::distributed::data_service
