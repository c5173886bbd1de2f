// Streams of bytes of files, plain or packed by zlib or snappy.
#pragma once

#include <memory>
#include <string>

#include "absl/types/span.h"
#include "base/files/file_system.h"

namespace headrace {

enum class Compression { kNone, kGzip, kZlib, kSnappy };

// "", "GZIP", "ZLIB" or "SNAPPY", as upstream's options name them.
StatusOr<Compression> ParseCompression(StringView name);

// Reads a file from front to back. Not thread-safe.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Fills `out`; fewer bytes only at the end of the stream. Returns how many.
  // DataLoss when packed bytes are damaged or end too early.
  virtual StatusOr<size_t> Read(absl::Span<char> out) = 0;
  // An upper bound of the bytes left, where one is known; else UINT64_MAX.
  virtual uint64_t MostLeft() const = 0;
};

// Begins at byte `offset` of the file, which is borrowed.
std::unique_ptr<ByteSource> OpenByteSource(const RandomAccessFile* file,
                                           Compression compression,
                                           uint64_t offset = 0);

// Writes a file from front to back, gathering small pieces. Not thread-safe.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual Status Write(StringView data) = 0;
  // Hands all to the file; packed bytes so that a reader can unpack all that
  // was written.
  virtual Status Flush() = 0;
  // Ends the stream; the file stays open. Nothing may be written after.
  virtual Status Finish() = 0;
};

// How bytes are packed, in zlib's own numbers. Nothing here changes plain
// files.
struct DeflateOptions {
  int level = -1;        // 0 to 9, or -1 for zlib's default
  int window_bits = 15;  // 9 to 15: the logarithm of the window's size
  int memory_level = 9;  // 1 to 9
  int strategy = 0;      // 0 to 4: default, filtered, Huffman, RLE, fixed
};

// `file` is borrowed. InvalidArgument when an option is outside its range.
StatusOr<std::unique_ptr<ByteSink>> OpenByteSink(
    WritableFile* file, Compression compression,
    const DeflateOptions& options = {});

}  // namespace headrace
