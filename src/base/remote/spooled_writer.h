// Files of other machines that are written: gathered on this machine's disk,
// and sent by Sync and Close.
#pragma once

#include <memory>
#include <string>

#include "base/files/file_system.h"

namespace headrace {

// What was written and is still to be sent, in a file without a name in TMPDIR
// (/tmp), so that it can be sent again to another machine.
class Spool {
 public:
  Spool() = default;
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  Status Open();
  Status Write(uint64_t offset, StringView data);
  // Fills `out`; what nothing was written to is zeros.
  Status Read(uint64_t offset, absl::Span<char> out) const;

 private:
  int fd_ = -1;
};

// What a scheme does with the bytes. One call runs at a time.
class Upload {
 public:
  virtual ~Upload() = default;
  // Makes the file have `size` bytes, those of the spool, of which the first
  // `sent` were sent by calls before; `last`: nothing follows.
  virtual Status Send(const Spool& spool, uint64_t sent, uint64_t size,
                      bool last) = 0;
  // Where the file cannot be changed before what was sent.
  virtual bool only_appends() const = 0;
};

// `base`: bytes that the file has already, before those of the spool. WriteAt
// into them, and into what was sent where an upload only appends, is
// Unimplemented. `unsent`: there is no file yet, and one is sent even if
// nothing is written.
StatusOr<std::unique_ptr<WritableFile>> NewSpooledWriter(
    std::unique_ptr<Upload> upload, uint64_t base, std::string path,
    bool unsent = false);

}  // namespace headrace
