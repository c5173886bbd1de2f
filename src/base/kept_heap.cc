#include "base/kept_heap.h"

#include <cstddef>
#include <cstdlib>

namespace headrace {

void KeepFreedHeap() {
  // Half of what is kept. mallopt would say it, too, but end the C library's
  // following of larger blocks for the whole program.
  constexpr size_t kBlock = 8 << 20;
  static const bool done = [] {
    // Volatile, so that the compiler leaves the pair of calls. Nothing is
    // written: the block takes no memory.
    void* volatile block = std::malloc(kBlock);
    std::free(block);
    return true;
  }();
  (void)done;
}

}  // namespace headrace
