// One request of version 1 under way. A private header of the room.
#pragma once

#include <memory>

#include "serving/rest/rest_front.h"
#include "serving/rest/route.h"

namespace headrace::serving {

// What all calls of a front share.
struct RestContext {
  Models& models;
  const AnswerOptions answers;
  const RestOptions options;
};

// Does what a path asks for, and answers it.
void RunRestCall(std::shared_ptr<const RestContext> context,
                 const HttpRequest& request, HttpResponder responder);

}  // namespace headrace::serving
