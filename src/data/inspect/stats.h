// What walks tell about themselves.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "data/dataset.h"
#include "formats/histogram.h"
#include "op/resource.h"

namespace headrace {

// Histograms and numbers by name. Thread-safe.
class StatsAggregator : public Resource {
 public:
  std::string DebugString() const override { return "StatsAggregator"; }
  // Each writes what is there by then under `step` where there is a writer.
  Status AddToHistogram(const std::string& name, double value, int64_t step);
  Status SetNumber(const std::string& name, double value, int64_t step);
  // A serialised Summary of all.
  std::string Summary() const;
  // What is added from now on is written there: a handle of a summary writer,
  // whose resources the services name.
  void SetWriter(Tensor writer, const RunServices& services);

 private:
  Status Write(const std::string& summary, int64_t step) const;

  mutable Mutex mutex_;
  std::map<std::string, HistogramCounts> histograms_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, double> numbers_ ABSL_GUARDED_BY(mutex_);
  Tensor writer_ ABSL_GUARDED_BY(mutex_);  // no buffer: none
  RunServices services_ ABSL_GUARDED_BY(mutex_);
};

// An aggregator, and what names begin with there. Immutable.
class StatsTarget {
 public:
  StatsTarget(std::shared_ptr<StatsAggregator> aggregator, std::string tag)
      : aggregator_(std::move(aggregator)), tag_(std::move(tag)) {}
  Status AddToHistogram(StringView name, double value, int64_t step) const {
    return aggregator_->AddToHistogram(Tagged(name), value, step);
  }
  // Upstream tags histograms alone.
  Status SetNumber(StringView name, double value, int64_t step) const {
    return aggregator_->SetNumber(std::string(name), value, step);
  }

 private:
  std::string Tagged(StringView name) const {
    return tag_.empty() ? std::string(name) : absl::StrCat(tag_, "::", name);
  }

  const std::shared_ptr<StatsAggregator> aggregator_;
  const std::string tag_;
};

}  // namespace headrace
