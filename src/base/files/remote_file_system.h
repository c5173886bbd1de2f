// What file systems of other machines have beside the rest.
#pragma once

#include <string>

#include "base/files/file_system.h"

namespace headrace {

class RemoteFileSystem : public FileSystem {
 public:
  // Deletes a folder with all in it, or a file, without a call for each.
  virtual Status DeleteTree(const std::string& path) = 0;
  // Copies a file within the file system, replacing `to`; Unimplemented where
  // the bytes have to pass here.
  virtual Status Copy(const std::string& from, const std::string& to) {
    return Unimplemented(from, " -> ", to, ": no copy within a file system");
  }
};

// A file that others see when it is sent.
class RemoteWritableFile : public WritableFile {};

// Has readers see what was appended: Sync of a RemoteWritableFile. They see
// that of other files anyway.
Status ShowToReaders(WritableFile* file);

// PermissionDenied in a sandbox that may not read (or write) the file, or not
// talk to other machines.
Status CheckRemoteFile(StringView path, bool write);

}  // namespace headrace
