// Where tensors' memory comes from.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace {

struct AllocatorStats {
  int64_t bytes_in_use = 0;  // handed out, rounded up to size classes
  int64_t peak_bytes = 0;    // the most of it since the last ResetPeak
  int64_t bytes_held = 0;    // taken from the system: in use and cached
  int64_t bytes_limit = 0;   // 0: none
  int64_t system_calls = 0;  // blocks asked from the system
};

// A source of memory blocks. Thread-safe.
class Allocator {
 public:
  static constexpr size_t kAlignment = 64;

  virtual ~Allocator() = default;

  // A block of at least `bytes` (which may be 0), aligned to kAlignment, not
  // cleared. nullptr when the limit would be passed or the system has no more:
  // the caller reports ResourceExhausted.
  virtual void* Allocate(size_t bytes) = 0;
  // Takes back what Allocate(bytes) gave; `p` may be nullptr. Any thread may.
  virtual void Deallocate(void* p, size_t bytes) = 0;

  virtual AllocatorStats stats() const = 0;
  virtual void ResetPeak() = 0;
  // Makes Allocate fail where bytes_in_use would exceed `bytes`; 0: no limit.
  // Blocks already out stay valid.
  virtual void SetLimit(size_t bytes) = 0;
  // Gives cached blocks back to the system, but for the caches of other
  // threads (at most 1 MB each).
  virtual void Trim() = 0;
};

// The process's allocator of main memory; never destroyed. It keeps freed
// blocks by size class: small ones in a cache of each thread, the others in
// one list. What it holds follows the use of the last seconds down again, goes
// back to the system once nothing was used for some seconds, and never passes
// what the memory limits of control groups leave; blocks from 128 KiB on lie in
// huge pages where the system has them.
Allocator* CpuAllocator();

// CpuAllocator()->Allocate and Deallocate.
void* AllocateMemory(size_t bytes);
void FreeMemory(void* p, size_t bytes);

}  // namespace headrace
