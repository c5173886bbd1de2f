// Record files that follow one another.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "formats/records.h"

namespace headrace::serving {

// Writes PREFIX-YYYYMMDD-HHMMSS.MICROS (the time in UTC at which the file was
// begun), then the next such file before one grows beyond its size. Not
// thread-safe.
class RotatedRecords {
 public:
  static constexpr uint64_t kFileBytes = 64 << 20;

  // `fs` lives for ever; `prefix` is a path of its.
  RotatedRecords(FileSystem* fs, std::string prefix,
                 uint64_t file_bytes = kFileBytes)
      : fs_(fs), prefix_(std::move(prefix)), file_bytes_(file_bytes) {}
  ~RotatedRecords();
  RotatedRecords(const RotatedRecords&) = delete;
  RotatedRecords& operator=(const RotatedRecords&) = delete;

  // Errors of the file system. After one the file is given up, and for a second
  // the disk is left alone: that error is returned until then.
  Status Write(StringView record);
  // Readers can see all records after this.
  Status Flush();

 private:
  using Clock = std::chrono::steady_clock;
  Status Begin();
  Status End();
  Status Failed(Status s);

  FileSystem* const fs_;
  const std::string prefix_;
  const uint64_t file_bytes_;
  std::unique_ptr<WritableFile> file_;
  std::unique_ptr<RecordWriter> writer_;  // to file_
  uint64_t written_ = 0;
  Status status_;  // until retry_
  Clock::time_point retry_;
};

}  // namespace headrace::serving
