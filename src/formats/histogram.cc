#include "formats/histogram.h"

#include <algorithm>
#include <limits>

#include "tensorflow/core/framework/summary.pb.h"

namespace headrace {
namespace {

// Upper ends of the buckets: each 1.1 times the one before, both signs.
const std::vector<double>& BucketLimits() {
  static const auto* limits = [] {
    std::vector<double> positive;
    for (double v = 1e-12; v < 1e20; v *= 1.1) positive.push_back(v);
    positive.push_back(std::numeric_limits<double>::max());
    auto* all = new std::vector<double>;
    for (auto v = positive.rbegin(); v != positive.rend(); ++v) {
      all->push_back(-*v);
    }
    all->push_back(0);
    all->insert(all->end(), positive.begin(), positive.end());
    return all;
  }();
  return *limits;
}

}  // namespace

HistogramCounts::HistogramCounts()
    : counts_(BucketLimits().size()),
      least_(std::numeric_limits<double>::max()),
      most_(-least_) {}

void HistogramCounts::Add(double v) {
  const std::vector<double>& limits = BucketLimits();
  const auto at = std::upper_bound(limits.begin(), limits.end(), v);
  ++counts_[std::min<size_t>(at - limits.begin(), limits.size() - 1)];
  least_ = std::min(least_, v);
  most_ = std::max(most_, v);
  ++number_;
  sum_ += v;
  squares_ += v * v;
}

void HistogramCounts::FillProto(tensorflow::HistogramProto* histogram) const {
  histogram->set_min(least_);
  histogram->set_max(most_);
  histogram->set_num(number_);
  histogram->set_sum(sum_);
  histogram->set_sum_squares(squares_);
  // Runs of empty buckets are written as one.
  const std::vector<double>& limits = BucketLimits();
  for (size_t i = 0; i < counts_.size();) {
    double end = limits[i], count = counts_[i];
    ++i;
    if (count <= 0) {
      for (; i < counts_.size() && counts_[i] <= 0; ++i) {
        end = limits[i];
        count = counts_[i];
      }
    }
    histogram->add_bucket_limit(end);
    histogram->add_bucket(count);
  }
}

}  // namespace headrace
