// What code of the user throws, as a status of the core.
#pragma once

#include <exception>

#include "base/status.h"
#include "headrace/error.h"

namespace headrace::tf::internal {

// What f() gives, or what it throws; `who` names it where that is no Error.
template <typename F>
Status Caught(const char* who, F f) {
  try {
    return f();
  } catch (const Error& e) {
    return Status(static_cast<absl::StatusCode>(static_cast<int>(e.code())),
                  e.what());
  } catch (const std::exception& e) {
    return Unknown(who, " threw: ", e.what());
  } catch (...) {
    return Unknown(who, " threw");
  }
}

}  // namespace headrace::tf::internal
