// Riegeli/records files: records in chunks, the file cut into blocks.
//
//   chunk := header_hash, data_size, data_hash: fixed64
//            type: byte, num_records: 7 bytes, decoded_data_size: fixed64
//            data, zeros up to where the next chunk may begin
//   data of a chunk of records ('r') :=
//            compression: byte, sizes_size: varint, sizes, values
//   block header, at every multiple of 64 KiB, amid whatever chunk is there :=
//            header_hash, to the chunk's begin, to its end: fixed64
//
// Hashes are HighwayHash. A record's place is its chunk's begin plus its number
// in the chunk. Chunks that are transposed, and those packed with Brotli or
// Zstd, are Unimplemented.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/files/file_system.h"

namespace headrace {

// The bytes that every such file begins with.
inline constexpr size_t kRiegeliHeadBytes = 64;
bool IsRiegeli(StringView head);

// Writes each record as a chunk of its own, not packed. Not thread-safe.
class RiegeliWriter {
 public:
  // `file` is borrowed, empty, and neither synced nor closed.
  static StatusOr<RiegeliWriter> Create(WritableFile* file);
  // Returns the record's place.
  StatusOr<uint64_t> Write(StringView record);

 private:
  explicit RiegeliWriter(WritableFile* file) : file_(file) {}
  Status WriteChunk(char type, StringView head, StringView data,
                    uint64_t num_records, uint64_t decoded_size);

  WritableFile* file_;
  uint64_t at_ = 0;
};

// Reads records at places. All chunks' headers are read and checked when the
// file is opened. Not thread-safe.
class RiegeliReader {
 public:
  // `file` is borrowed. DataLoss, with the place, where it is damaged or cut.
  static StatusOr<RiegeliReader> Open(const RandomAccessFile* file);

  // NotFound where no record has that place; DataLoss where its chunk is
  // damaged; Unimplemented for forms that are not read.
  StatusOr<std::string> Read(uint64_t place);
  // NotFound in a file without records.
  StatusOr<std::string> ReadLast();

 private:
  struct Chunk {
    uint64_t begin, end;  // in the file
    uint64_t data_size, data_hash, num_records, decoded_size;
    char type;
  };
  explicit RiegeliReader(const RandomAccessFile* file) : file_(file) {}
  StatusOr<Chunk> ReadHeader(uint64_t begin) const;
  // Fills `out` from `at` on, without the block headers between; `at` ends
  // behind it.
  Status ReadBetweenHeaders(uint64_t* at, absl::Span<char> out) const;
  Status CheckBlockHeaders(const Chunk& chunk) const;
  StatusOr<std::string> ReadData(const Chunk& chunk) const;
  static StatusOr<std::vector<uint64_t>> EndsOf(StringView sizes,
                                                const Chunk& chunk,
                                                const std::string& where);
  // Fills decoded_.
  Status Decode(const Chunk& chunk);
  StatusOr<std::string> ReadRecord(const Chunk& chunk, uint64_t index);

  // The records of the chunk that was read last.
  struct Decoded {
    uint64_t begin = 0;          // the chunk's
    std::vector<uint64_t> ends;  // by record, in values
    std::string values;
  };

  const RandomAccessFile* file_;
  std::vector<Chunk> chunks_;  // that hold records, in order
  Decoded decoded_;
  uint64_t read_ = 0;  // bytes of chunks, with those read again
};

}  // namespace headrace
