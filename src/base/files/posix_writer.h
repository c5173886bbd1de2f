// Files of this machine that are written to.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/files/file_system.h"

namespace headrace {

// The most that one call moves: the kernel stops at 2 GiB anyway.
inline constexpr size_t kMostAtOnce = size_t{1} << 30;

// Where the environment says HEADRACE_SYNC=0, nothing waits for the disk: files
// are whole for every reader and after a kill of the process all the same, but
// a crash of the machine may damage or lose the newest ones.
bool WaitsForDisk();

// Takes over `fd`, open for writing, of a file that has `size` bytes; `path`
// is for messages.
std::unique_ptr<WritableFile> NewPosixWriter(int fd, uint64_t size,
                                             std::string path);

}  // namespace headrace
