#include "serving/request_log/rotated_records.h"

#include <cstdio>
#include <ctime>
#include <utility>

namespace headrace::serving {
namespace {

// What a record file adds to a record.
constexpr uint64_t kRecordOverhead = 16;
constexpr std::chrono::seconds kRetry(1);
// Files of one microsecond: another process writes under this prefix, too.
constexpr int kMostTries = 100;

std::string TimeText() {
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count();
  const std::time_t seconds = micros / 1'000'000;
  std::tm t{};
  gmtime_r(&seconds, &t);
  char text[64];
  std::snprintf(text, sizeof text, "%04d%02d%02d-%02d%02d%02d.%06d",
                t.tm_year + 1900, t.tm_mon + 1, t.tm_mday, t.tm_hour, t.tm_min,
                t.tm_sec, static_cast<int>(micros % 1'000'000));
  return text;
}

}  // namespace

RotatedRecords::~RotatedRecords() { End().IgnoreError(); }

Status RotatedRecords::Begin() {
  for (int i = 0; i < kMostTries; ++i) {
    const std::string path = absl::StrCat(prefix_, "-", TimeText());
    auto file = fs_->OpenToWrite(path, WriteMode::kCreateNew);
    if (absl::IsAlreadyExists(file.status())) continue;
    HR_RETURN_IF_ERROR(file.status());
    HR_ASSIGN_OR_RETURN(writer_, RecordWriter::Create(file->get()));
    file_ = *std::move(file);
    written_ = 0;
    return OkStatus();
  }
  return AlreadyExists("no free name for a file of requests: ", prefix_);
}

Status RotatedRecords::End() {
  if (file_ == nullptr) return OkStatus();
  Status s = writer_->Finish();
  writer_ = nullptr;
  s.Update(file_->Close());
  file_ = nullptr;
  return s;
}

Status RotatedRecords::Failed(Status s) {
  if (s.ok()) return s;
  writer_ = nullptr;
  file_ = nullptr;
  status_ = s;
  retry_ = Clock::now() + kRetry;
  return s;
}

Status RotatedRecords::Write(StringView record) {
  if (!status_.ok()) {
    if (Clock::now() < retry_) return status_;
    status_ = OkStatus();
  }
  const uint64_t size = record.size() + kRecordOverhead;
  if (file_ != nullptr && written_ + size > file_bytes_) {
    HR_RETURN_IF_ERROR(Failed(End()));
  }
  if (file_ == nullptr) HR_RETURN_IF_ERROR(Failed(Begin()));
  written_ += size;
  return Failed(writer_->Write(record));
}

Status RotatedRecords::Flush() {
  return file_ == nullptr ? OkStatus() : Failed(writer_->Flush());
}

}  // namespace headrace::serving
