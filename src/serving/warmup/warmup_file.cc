#include "serving/warmup/warmup_file.h"

#include "absl/strings/escaping.h"
#include "formats/records.h"

namespace headrace::serving {
namespace {

// Of a record that errors show.
constexpr size_t kMostShown = 64;

Status NotALog(const std::string& record, StringView name) {
  return InvalidArgument("Failed to parse warmup record: ",
                         absl::CHexEscape(record.substr(0, kMostShown)),
                         record.size() > kMostShown ? "..." : "", " from ",
                         name);
}

}  // namespace

Status ReadWarmupFile(FileSystem* fs, const std::string& path, StringView name,
                      absl::FunctionRef<Status(PredictionLog&)> run) {
  const auto file = fs->OpenToRead(path);
  if (absl::IsNotFound(file.status())) return OkStatus();
  HR_RETURN_IF_ERROR(file.status());
  RecordReader reader(file->get());
  std::string record;
  for (int count = 0;; ++count) {
    const StatusOr<bool> more = reader.Next(&record);
    if (absl::IsDataLoss(more.status())) {
      return DataLoss(name, ": ", more.status().message(),
                      ". Please verify your warmup data is in TFRecord "
                      "format.");
    }
    HR_RETURN_IF_ERROR(more.status());
    if (!*more) return OkStatus();
    if (count == kMostWarmupRecords) {
      return InvalidArgument("Number of warmup records exceeds the maximum (",
                             kMostWarmupRecords, ") at ", name);
    }
    PredictionLog log;
    if (!log.ParseFromString(record)) return NotALog(record, name);
    HR_RETURN_IF_ERROR(run(log));
  }
}

}  // namespace headrace::serving
