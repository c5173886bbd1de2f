// Files of other machines, read in ranges.
#pragma once

#include <memory>
#include <string>

#include "base/files/file_system.h"

namespace headrace {

// Where a reader gets its bytes. Thread-safe.
class RangeSource {
 public:
  virtual ~RangeSource() = default;
  // Fills `out` from `offset` on, which lies within the file. Returns how many
  // bytes: fewer only where the file has become shorter.
  virtual StatusOr<size_t> Fetch(uint64_t offset, absl::Span<char> out) = 0;
};

// Reads of one place after another fetch ahead: blocks that grow to 16 MiB, two
// of them on their way while the last is read. Large reads go straight to their
// place, those of more than 16 MiB in as many parts at once. All readers of a
// process keep at most 256 MiB so; with more, they fetch what is asked for
// alone.
std::unique_ptr<RandomAccessFile> NewRemoteReader(
    std::shared_ptr<RangeSource> source, uint64_t size, std::string path);

}  // namespace headrace
