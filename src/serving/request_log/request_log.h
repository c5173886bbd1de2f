// Requests and their responses kept in files, which can serve as warm-up
// records.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "serving/request_log/rotated_records.h"
#include "tensorflow_serving/apis/prediction_log.pb.h"
#include "tensorflow_serving/config/logging_config.pb.h"

namespace headrace::serving {

using LoggingConfig = tensorflow::serving::LoggingConfig;
using PredictionLog = tensorflow::serving::PredictionLog;

class RequestLogWriter;

// The log of one model. Thread-safe; ends before its writer.
class RequestLog {
 public:
  // Whether the next request is to be logged. Some nanoseconds.
  bool Sampled();
  // Hands over a request with its response; `spec` is what it really used. The
  // log fills in the rest of the metadata. Dropped where the disk is slow;
  // counted in request_log_count: OK when it is written, else by the error.
  void Log(const tensorflow::serving::ModelSpec& spec, PredictionLog log);

 private:
  friend class RequestLogWriter;
  RequestLog() = default;

  RequestLogWriter* writer_ = nullptr;
  std::string model_;
  std::vector<std::string> tags_;
  LoggingConfig config_;
  double rate_ = 0;
  std::atomic<uint64_t> asked_{0};
  std::shared_ptr<RotatedRecords> records_;
};
using RequestLogPtr = std::shared_ptr<RequestLog>;

// Writes the logs of all models in a thread of its own. Thread-safe.
class RequestLogWriter {
 public:
  // What may wait for the disk, in bytes.
  static constexpr size_t kMostWaiting = 64 << 20;

  static StatusOr<std::unique_ptr<RequestLogWriter>> Start(
      size_t most_waiting = kMostWaiting);
  // Writes what waits.
  ~RequestLogWriter();
  RequestLogWriter(const RequestLogWriter&) = delete;
  RequestLogWriter& operator=(const RequestLogWriter&) = delete;

  // Null where the config asks for no log. The collector's type is "tfrecord";
  // folders of the prefix are made. InvalidArgument and Unimplemented naming
  // the field, errors of the file system.
  StatusOr<RequestLogPtr> Open(const std::string& model,
                               const LoggingConfig& config,
                               std::vector<std::string> tags);
  // Returns when all that was logged before is in the files.
  void Flush();

 private:
  friend class RequestLog;
  struct Item {
    std::shared_ptr<RotatedRecords> records;
    std::string model;
    PredictionLog log;
    size_t bytes = 0;
  };
  explicit RequestLogWriter(size_t most_waiting)
      : most_waiting_(most_waiting) {}
  StatusOr<std::shared_ptr<RotatedRecords>> RecordsOf(
      const std::string& prefix);
  bool Add(Item item);
  void Work();
  void Write(std::vector<Item> items);

  const size_t most_waiting_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<Item> waiting_ ABSL_GUARDED_BY(mutex_);
  // Of what waits or is being written.
  size_t waiting_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, std::weak_ptr<RotatedRecords>> records_
      ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

// The part of requests that a config samples here: the first of the configs for
// tasks that names no other data centre or task than this one (a server of this
// kind has neither), else the config's own. InvalidArgument outside [0, 1].
StatusOr<double> SamplingRate(
    const tensorflow::serving::SamplingConfig& config);

}  // namespace headrace::serving
