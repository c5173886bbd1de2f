// How numbers are spread, in the buckets of summaries.
#pragma once

#include <vector>

namespace tensorflow {
class HistogramProto;
}

namespace headrace {

// Not thread-safe.
class HistogramCounts {
 public:
  HistogramCounts();
  // A finite number.
  void Add(double v);
  void FillProto(tensorflow::HistogramProto* histogram) const;

 private:
  std::vector<double> counts_;
  double least_, most_, number_ = 0, sum_ = 0, squares_ = 0;
};

}  // namespace headrace
