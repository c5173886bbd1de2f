// A metric: a name, and cells by the values of its labels.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "base/hash_map.h"
#include "base/mutex.h"
#include "base/status.h"
#include "serving/metrics/cells.h"

namespace headrace::serving::metrics {

// The cells of a metric. Labels' values may come from clients, who must not
// fill the memory with them: values beyond so many share the cell "(other)".
inline constexpr size_t kMostCells = 10'000;
inline constexpr char kOther[] = "(other)";

using LabelValues = std::vector<std::string>;

// Thread-safe.
class AnyFamily {
 public:
  // `name` is that of the registry: "/tensorflow/serving/request_count".
  AnyFamily(const char* name, std::vector<const char*> labels)
      : name_(name), labels_(std::move(labels)) {}
  virtual ~AnyFamily() = default;

  const char* name() const { return name_; }
  const std::vector<const char*>& labels() const { return labels_; }
  // "counter", "gauge" or "histogram".
  virtual const char* kind() const = 0;
  // Calls one of them for every cell, in the order of the labels' values.
  struct Visitor {
    absl::FunctionRef<void(const LabelValues&, const Counter&)> counter;
    absl::FunctionRef<void(const LabelValues&, const Gauge&)> gauge;
    absl::FunctionRef<void(const LabelValues&, const Histogram&)> histogram;
  };
  virtual void Visit(const Visitor& visitor) const = 0;
  // Drops the cells of which `which` is true.
  virtual void Forget(absl::FunctionRef<bool(const LabelValues&)> which) = 0;

 private:
  const char* const name_;
  const std::vector<const char*> labels_;
};

template <typename Cell>
class Family : public AnyFamily {
 public:
  // `limits` are those of histograms.
  Family(const char* name, std::vector<const char*> labels,
         std::vector<double> limits = {})
      : AnyFamily(name, std::move(labels)), limits_(std::move(limits)) {}

  // As many values as the metric has labels.
  std::shared_ptr<Cell> At(absl::Span<const StringView> values);
  std::shared_ptr<Cell> At(std::initializer_list<StringView> values) {
    return At(absl::MakeConstSpan(values.begin(), values.size()));
  }

  const char* kind() const override;
  void Visit(const Visitor& visitor) const override;
  void Forget(absl::FunctionRef<bool(const LabelValues&)> which) override;

 private:
  struct Entry {
    LabelValues values;
    std::shared_ptr<Cell> cell;
  };
  const std::vector<double> limits_;
  mutable Mutex mutex_;
  // By the values, each behind its length.
  HashMap<std::string, Entry> cells_ ABSL_GUARDED_BY(mutex_);
};

extern template class Family<Counter>;
extern template class Family<Gauge>;
extern template class Family<Histogram>;

}  // namespace headrace::serving::metrics
