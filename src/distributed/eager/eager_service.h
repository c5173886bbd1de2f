// The methods of tensorflow.eager.EagerService.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "distributed/eager/eager_contexts.h"

namespace headrace::distributed {

// By path. Calls under way hold the contexts.
std::map<std::string, Method> EagerMethods(
    std::shared_ptr<EagerContexts> contexts);
std::map<std::string, Conversation> EagerConversations(
    std::shared_ptr<EagerContexts> contexts);

}  // namespace headrace::distributed
