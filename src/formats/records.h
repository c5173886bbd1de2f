// Record files (TFRecord): records of any bytes, one behind the other, the
// whole plain or packed.
//
//   record := length: fixed64
//             crc: fixed32, masked crc32c of the eight bytes of length
//             data: `length` bytes
//             crc: fixed32, masked crc32c of data
#pragma once

#include <memory>
#include <string>

#include "base/files/file_system.h"
#include "formats/compression.h"

namespace headrace {

// Not thread-safe.
class RecordWriter {
 public:
  // `file` is borrowed and written at its end.
  static StatusOr<std::unique_ptr<RecordWriter>> Create(
      WritableFile* file, Compression compression = Compression::kNone,
      const DeflateOptions& options = {});

  Status Write(StringView record);
  // Readers of the file can see all records after this.
  Status Flush();
  // Must be called at the end; the file is neither synced nor closed.
  Status Finish() { return sink_->Finish(); }

 private:
  RecordWriter(WritableFile* file, std::unique_ptr<ByteSink> sink)
      : file_(file), sink_(std::move(sink)) {}

  WritableFile* const file_;
  const std::unique_ptr<ByteSink> sink_;
};

// Not thread-safe.
class RecordReader {
 public:
  // `file` is borrowed.
  explicit RecordReader(const RandomAccessFile* file,
                        Compression compression = Compression::kNone);

  // Reads the next record; false at the end. DataLoss when it is damaged
  // ("corrupted record at N") or cut ("truncated record at N"); every later
  // call then returns the same.
  StatusOr<bool> Next(std::string* record);

  // Where the next record begins, counted in unpacked bytes.
  uint64_t offset() const { return offset_; }

  // Goes to a place that offset() gave before. Packed files are read up to it,
  // and only forwards (Unimplemented).
  Status Seek(uint64_t offset);

 private:
  StatusOr<bool> ReadRecord(std::string* record);
  // Reads n bytes to the end of *out, believing n only as they come. False
  // when there are fewer.
  StatusOr<bool> ReadBytes(uint64_t n, std::string* out);

  const RandomAccessFile* const file_;
  const Compression compression_;
  std::unique_ptr<ByteSource> source_;
  uint64_t offset_ = 0;
  Status status_;
};

}  // namespace headrace
