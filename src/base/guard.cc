#include "base/guard.h"

#include <cxxabi.h>
#include <execinfo.h>

#include <new>
#include <stdexcept>
#include <system_error>

#include "base/cancellation.h"

namespace headrace {
namespace {

// The C library loads what it needs to unwind its own frames when it first
// does, and ends the process where memory is out by then: it is made to do so
// now.
[[maybe_unused]] const int unwinding_is_loaded = [] {
  void* frame;
  return backtrace(&frame, 1);
}();

Status Translated(StringView what) {
  try {
    throw;
  } catch (const Stopped& s) {
    return s.status;
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("out of memory in ", what);
  } catch (const std::length_error&) {
    return ResourceExhausted("out of memory in ", what);
  } catch (const std::system_error& e) {
    const bool exhausted =
        e.code() == std::errc::resource_unavailable_try_again ||
        e.code() == std::errc::not_enough_memory;
    const StringView text = e.what();
    return exhausted ? ResourceExhausted(what, ": ", text)
                     : Internal(what, ": ", text);
  } catch (const std::exception& e) {
    return Internal(what, ": ", StringView(e.what()));
  } catch (const abi::__forced_unwind&) {
    throw;  // the thread is being ended; swallowing this ends the process
  } catch (...) {
    return Internal(what, ": an exception of an unknown kind");
  }
}

}  // namespace

Status CaughtStatus(StringView what) {
  // Made while there is memory.
  static const Status* const no_room =
      new Status(ResourceExhausted("out of memory"));
  try {
    return Translated(what);
  } catch (const std::bad_alloc&) {
    return *no_room;  // not even for the text
  }
}

}  // namespace headrace
