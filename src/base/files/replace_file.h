// Files that are written piece by piece and stand at their name only when all
// is there.
#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "base/files/file_system.h"

namespace headrace {

// As WriteFileAtomically, for what `write` puts into the file.
Status ReplaceFile(FileSystem* fs, const std::string& path,
                   absl::FunctionRef<Status(WritableFile*)> write);

}  // namespace headrace
