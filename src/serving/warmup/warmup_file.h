// The requests that a version brings to be run before it serves.
#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "base/files/file_system.h"
#include "tensorflow_serving/apis/prediction_log.pb.h"

namespace headrace::serving {

using PredictionLog = tensorflow::serving::PredictionLog;

// In a version's folder.
inline constexpr char kWarmupFile[] = "assets.extra/tf_serving_warmup_requests";
inline constexpr int kMostWarmupRecords = 1000;

// Calls `run` for each record, in their order, until it gives an error. None
// where there is no such file. DataLoss where it is no record file,
// InvalidArgument for records that are no PredictionLog or too many, the texts
// those of the stock server; `name` is what errors call the file.
Status ReadWarmupFile(FileSystem* fs, const std::string& path, StringView name,
                      absl::FunctionRef<Status(PredictionLog&)> run);

}  // namespace headrace::serving
