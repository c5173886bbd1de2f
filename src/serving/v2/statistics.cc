#include "serving/v2/statistics.h"

#include <cstdint>
#include <iterator>

namespace headrace::serving {

void InferStatisticsBook::Note(const ModelSpec& spec, const Status& status,
                               std::chrono::nanoseconds time) {
  if (!spec.has_version()) return;
  // What a client names and nobody serves takes no memory.
  if (absl::IsNotFound(status)) return;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto ns = static_cast<uint64_t>(time.count());
  MutexLock lock(mutex_);
  const Version version{spec.name(), spec.version().value()};
  if (!counts_.contains(version)) MakeRoom(spec.name());
  Counts& c = counts_[version];
  if (status.ok()) {
    ++c.successes;
    c.success_ns += ns;
    c.last_ms =
        std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  } else {
    ++c.failures;
    c.failure_ns += ns;
  }
}

void InferStatisticsBook::MakeRoom(const std::string& model) {
  const auto first = counts_.lower_bound({model, INT64_MIN});
  const auto past = counts_.upper_bound({model, INT64_MAX});
  const auto size = static_cast<size_t>(std::distance(first, past));
  if (size >= kMostPastVersions) counts_.erase(first);
}

void InferStatisticsBook::Tell(
    StringView name, std::optional<int64_t> version,
    inference::ModelStatisticsResponse* response) const {
  MutexLock lock(mutex_);
  for (const auto& [key, c] : counts_) {
    if (!name.empty() && key.first != name) continue;
    if (version.has_value() && key.second != *version) continue;
    auto* told = response->add_model_stats();
    told->set_name(key.first);
    told->set_version(absl::StrCat(key.second));
    told->set_last_inference(c.last_ms);
    told->set_inference_count(c.successes);
    told->set_execution_count(c.successes);
    auto* stats = told->mutable_inference_stats();
    stats->mutable_success()->set_count(c.successes);
    stats->mutable_success()->set_ns(c.success_ns);
    stats->mutable_fail()->set_count(c.failures);
    stats->mutable_fail()->set_ns(c.failure_ns);
  }
}

}  // namespace headrace::serving
