// The files of a version.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace headrace::serving {

// Of all files below a folder. Errors of the file system.
StatusOr<uint64_t> BytesBelow(const std::string& folder);

// What a loaded version takes, as far as its files tell.
uint64_t EstimateOfMemory(uint64_t bytes_of_files);

// Lets the system forget its copies of the files below a folder: they were read
// and are not soon read again. A hint, for files of this machine.
void DropFileCache(const std::string& folder);

}  // namespace headrace::serving
