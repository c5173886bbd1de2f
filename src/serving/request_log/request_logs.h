// The request logs of all models of a server, as its config asks for them.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/hash_map.h"
#include "base/mutex.h"
#include "serving/models.h"
#include "serving/request_log/request_log.h"

namespace headrace::serving {

// Thread-safe. Outlives the calls that it is asked for.
class RequestLogs {
 public:
  using ByModel = HashMap<std::string, RequestLogPtr>;

  // `tags` are told with each request: --saved_model_tags.
  explicit RequestLogs(std::vector<std::string> tags)
      : tags_(std::move(tags)) {}

  // The logs that a config asks for, which are in force once they are Put.
  // Errors of RequestLogWriter::Open behind the model's name;
  // ResourceExhausted where there is no thread to write.
  StatusOr<std::shared_ptr<const ByModel>> Open(
      const ModelServerConfig& config);
  // Requests that are under way still go to the logs of before.
  void Put(std::shared_ptr<const ByModel> logs);

  // Where the next request of a model is to be kept; null: it is not. Some
  // nanoseconds where no model has a log.
  RequestLogPtr Sampled(const std::string& model);
  // Returns when all that was logged before is in the files.
  void Flush();

 private:
  const std::vector<std::string> tags_;
  std::atomic<bool> any_{false};
  Mutex mutex_;
  // Made with the first log. Before logs_, which end first.
  std::unique_ptr<RequestLogWriter> writer_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const ByModel> logs_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace headrace::serving
