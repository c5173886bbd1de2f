// What tests cannot do on some machines.
#pragma once

#include <cstdlib>

namespace headrace {

// Whether an emulator runs the test, as the presets that use one say: nothing
// is to be concluded from the processor time it takes.
inline bool Emulated() { return std::getenv("HR_EMULATED") != nullptr; }

// Why no child of a fork can start threads here; null where it can.
inline const char* NoThreadsAfterFork() {
#if _GLIBCXX_TSAN
  return "the thread sanitizer forbids threads after a fork";
#endif
  if (Emulated()) return "qemu-user 7.2 aborts at a thread of a forked child";
  return nullptr;
}

}  // namespace headrace
