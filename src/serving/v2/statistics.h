// How often versions answered inferences of the Open Inference Protocol, and
// how long that took.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "base/status.h"
#include "inference/grpc_service.pb.h"
#include "serving/models.h"

namespace headrace::serving {

// Thread-safe.
class InferStatisticsBook {
 public:
  // Of an inference that ended; `spec` says which version, where it is known.
  // Those that found no version are not noted.
  void Note(const ModelSpec& spec, const Status& status,
            std::chrono::nanoseconds time);
  // Of all models where `name` is empty, of all versions where there is none.
  void Tell(StringView name, std::optional<int64_t> version,
            inference::ModelStatisticsResponse* response) const;

 private:
  struct Counts {
    uint64_t successes = 0, success_ns = 0, failures = 0, failure_ns = 0;
    uint64_t last_ms = 0;  // since 1970
  };
  using Version = std::pair<std::string, int64_t>;
  // For one version more: the oldest goes where there are kMostPastVersions.
  void MakeRoom(const std::string& model) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::map<Version, Counts> counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace headrace::serving
