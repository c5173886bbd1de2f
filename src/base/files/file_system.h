// The one seam to files. Everything that reads or writes a file takes a
// FileSystem*, so that a test can hand it one that lies in memory or fails at
// will.
//
// Errors carry the path and the system's words. Codes: NotFound (no such file
// or folder), AlreadyExists, PermissionDenied, ResourceExhausted (no space,
// quota, too many open files), FailedPrecondition (a folder where a file is
// wanted or the reverse, a folder not empty), OutOfRange (reading past the
// end), InvalidArgument, Unavailable, Unknown.
//
// No file is mapped into memory. One that shrinks while it is mapped ends the
// process at the next look at what was cut off, and nothing can rule that out:
// files are read (LoadFile), and a file that shrank is DataLoss.
//
// A FileSystem is thread-safe. Two operations on one name at one time end in
// some order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/status.h"

namespace headrace {

struct FileStat {
  uint64_t size = 0;     // bytes; 0 for a folder
  int64_t mtime_ns = 0;  // nanoseconds since 1970
  bool is_directory = false;
};

// An open file to read anywhere from. Thread-safe.
class RandomAccessFile {
 public:
  virtual ~RandomAccessFile() = default;
  // Reads up to out.size() bytes at `offset`; fewer only at the end of the
  // file. Returns how many.
  virtual StatusOr<size_t> ReadSome(uint64_t offset,
                                    absl::Span<char> out) const = 0;
  // The size when the file was opened.
  virtual uint64_t size() const = 0;
  virtual const std::string& path() const = 0;

  // Fills `out` or returns OutOfRange.
  Status Read(uint64_t offset, absl::Span<char> out) const;
};

// An open file to write to. Append and WriteAt may not run at the same time;
// several WriteAt or WriteThrough may, from several threads, on ranges that do
// not meet. Nothing is buffered here: gather small pieces before.
class WritableFile {
 public:
  // Ranges for WriteThrough best begin and end at multiples of it (bytes).
  static constexpr uint64_t kBlock = 4096;

  // Closes; errors at that point are lost, so call Close() before.
  virtual ~WritableFile() = default;
  // Writes at the end.
  virtual Status Append(StringView data) = 0;
  // Writes at `offset`, which may lie behind the end: the gap reads as zeros.
  virtual Status WriteAt(uint64_t offset, StringView data) = 0;
  // As WriteAt, for much data that nobody reads soon: it may go to the disk at
  // once, past the system's cache. Only Sync says that it is there.
  virtual Status WriteThrough(uint64_t offset, StringView data) {
    return WriteAt(offset, data);
  }
  // Says that `size` bytes will be written from `offset` on; not while a write
  // runs. A hint, which may do nothing. Until Close, the file may look as long
  // as that to others, with zeros where nothing is written yet.
  virtual void Reserve(uint64_t /*offset*/, uint64_t /*size*/) {}
  // Returns when all that was written has reached the disk.
  virtual Status Sync() = 0;
  // The file's current size.
  virtual uint64_t size() const = 0;
  virtual Status Close() = 0;
};

enum class WriteMode {
  kTruncate,   // empties a file that exists
  kAppend,     // goes on behind what is there
  kCreateNew,  // AlreadyExists when there is one
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual StatusOr<std::unique_ptr<RandomAccessFile>> OpenToRead(
      const std::string& path) = 0;
  virtual StatusOr<std::unique_ptr<WritableFile>> OpenToWrite(
      const std::string& path, WriteMode mode) = 0;
  virtual StatusOr<FileStat> Stat(const std::string& path) = 0;
  // Puts `to` in place of what has that name, at once (a crash leaves the old
  // or the new file).
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
  virtual Status Delete(const std::string& path) = 0;
  // The parent must exist. AlreadyExists when something has that name.
  virtual Status CreateDirectory(const std::string& path) = 0;
  // The folder must be empty.
  virtual Status DeleteDirectory(const std::string& path) = 0;
  // Names (not paths) of what lies in a folder, sorted; without "." and "..".
  virtual StatusOr<std::vector<std::string>> List(const std::string& path) = 0;
  // Makes renames and new files of a folder last through a crash.
  virtual Status SyncDirectory(const std::string& path) = 0;
};

// The files of this machine. Lives for ever.
FileSystem* PosixFileSystem();

// The file system of a path by its scheme: none or file:// is this machine's,
// ram:// the memory of this process. Others are Unimplemented unless
// registered. `*local` is the path to hand it, without "file://".
StatusOr<FileSystem*> FileSystemFor(StringView path, std::string* local);

// Adds a scheme ("s3"); `fs` must live for ever. AlreadyExists when taken.
Status RegisterFileSystem(StringView scheme, FileSystem* fs);

// The status of a failed system call: "WHAT; STRERROR", code by `error_number`.
Status ErrnoStatus(int error_number, StringView what);

}  // namespace headrace
