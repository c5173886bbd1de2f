// What a metric counts in: one cell for each set of its labels' values. Cells
// are recorded to with relaxed atomics, so a reader may see one record of two
// that belong together.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace headrace::serving::metrics {

class Counter {
 public:
  explicit Counter(const std::vector<double>& /*limits*/) {}
  void Increment(int64_t by = 1) {
    value_.fetch_add(by, std::memory_order_relaxed);
  }
  int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_{0};
};

class Gauge {
 public:
  explicit Gauge(const std::vector<double>& /*limits*/) {}
  void Set(double value) { value_.store(value, std::memory_order_relaxed); }
  void Add(double by) { value_.fetch_add(by, std::memory_order_relaxed); }
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

class Histogram {
 public:
  // `limits` rise, and outlive the histogram: bucket i counts what is at most
  // limits[i], one more bucket the rest.
  explicit Histogram(const std::vector<double>& limits)
      : limits_(limits), counts_(limits.size() + 1) {}
  void Record(double value) {
    const auto it = std::lower_bound(limits_.begin(), limits_.end(), value);
    counts_[it - limits_.begin()].fetch_add(1, std::memory_order_relaxed);
    sum_.fetch_add(value, std::memory_order_relaxed);
  }
  const std::vector<double>& limits() const { return limits_; }
  double sum() const { return sum_.load(std::memory_order_relaxed); }
  // Of each bucket alone.
  std::vector<int64_t> counts() const {
    std::vector<int64_t> counts;
    for (const auto& n : counts_) {
      counts.push_back(n.load(std::memory_order_relaxed));
    }
    return counts;
  }
  int64_t count() const {
    int64_t sum = 0;
    for (const int64_t n : counts()) sum += n;
    return sum;
  }

 private:
  const std::vector<double>& limits_;
  std::vector<std::atomic<int64_t>> counts_;
  std::atomic<double> sum_{0};
};

// Who records often keeps the pointer. A cell that was forgotten may still be
// recorded to, and is told no more.
using CounterPtr = std::shared_ptr<Counter>;
using GaugePtr = std::shared_ptr<Gauge>;
using HistogramPtr = std::shared_ptr<Histogram>;

}  // namespace headrace::serving::metrics
