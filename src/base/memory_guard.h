// Keeps the process below the memory limits of its control groups. The system
// grants memory without a look at them and ends the process when it is written
// to; here it is refused in time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/mutex.h"

namespace headrace {

// Whether `bytes` more may be taken from the system and written to. Cheap:
// looks at the system only for much memory, or now and then.
bool MayTakeMemory(size_t bytes);

// Whether the system has `bytes` to give right now. For libraries that do not
// look at what they were given, as those that write code at their first call:
// they are asked only where there is room.
bool SystemHasRoom(size_t bytes);

// A large block was taken from the system, and is perhaps not written to yet;
// or is about to be given back.
void NoteMapped(void* block, size_t bytes);
void NoteUnmapped(void* block);

// Held by the allocator across a fork.
Mutex& MemoryGuardMutex();

}  // namespace headrace
