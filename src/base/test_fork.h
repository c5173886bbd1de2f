// For tests of what a forked child does.
#pragma once

#include <cstdlib>

namespace headrace {

// Why no child of a fork can start threads here; null where it can.
inline const char* NoThreadsAfterFork() {
#if _GLIBCXX_TSAN
  return "the thread sanitizer forbids threads after a fork";
#endif
  // Set by the presets that run tests in an emulator.
  if (std::getenv("HR_EMULATED") != nullptr) {
    return "qemu-user 7.2 aborts when a forked child starts a thread";
  }
  return nullptr;
}

}  // namespace headrace
