#include "base/kept_heap.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <cstdlib>
#include <thread>
#include <vector>

#include "base/threads.h"

namespace headrace {
namespace {

// The blocks that are mappings of their own; 0 where nobody says.
size_t MappedBlocks() {
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
  return mallinfo2().hblks;
#else
  return 0;
#endif
}

// Frees a block of such a size that is a mapping. (mallopt would say what to
// keep, but ends the C library's following of larger blocks for the whole
// program.) What is free already may serve for some blocks, and does for all
// where such blocks are no mappings any more; so there are a few tries. Nothing
// is written: they take no memory.
void FreeMapped(size_t bytes) {
  constexpr int kTries = 8;
  std::vector<void*> blocks;
  const size_t before = MappedBlocks();
  while (blocks.size() < kTries && MappedBlocks() <= before) {
    void* const block = std::malloc(bytes);
    if (block == nullptr) break;
    blocks.push_back(block);
  }
  // The last first, so that what the others leave at the heap's end is kept.
  for (; !blocks.empty(); blocks.pop_back()) std::free(blocks.back());
}

}  // namespace

void KeepFreedHeap() {
  constexpr size_t kBlock = 8 << 20;  // half of what is kept
  static const bool done = [] {
    // A thread has a heap of its own: that of the program may have much that is
    // free, and give a block of it.
    StatusOr<std::thread> thread = StartThread([] { FreeMapped(kBlock); });
    if (thread.ok()) thread->join();
    return thread.ok();
  }();
  (void)done;
}

}  // namespace headrace
