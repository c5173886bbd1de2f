// Summaries as serialized messages: ScalarSummary, HistogramSummary,
// MergeSummary.
#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/container/flat_hash_set.h"
#include "op/op.h"
#include "tensorflow/core/framework/summary.pb.h"

namespace headrace {
namespace {

using tensorflow::HistogramProto;
using tensorflow::Summary;

Status OneString(ShapeContext& c) {
  c.set_output(0, Shape());
  return OkStatus();
}

Status SetSummary(KernelContext& c, const Summary& summary) {
  std::string bytes;
  if (!summary.SerializeToString(&bytes)) {
    return InvalidArgument("a summary of over 2 GiB");
  }
  c.set_output(0, Tensor::Scalar(std::move(bytes)));
  return OkStatus();
}

// The numbers of a real tensor as doubles.
std::vector<double> Numbers(const Tensor& t) {
  std::vector<double> out;
  out.reserve(t.num_elements());
  DispatchDType(t.dtype(), RealTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (const T& x : t.span<T>()) out.push_back(static_cast<double>(x));
  });
  return out;
}

Status Scalars(KernelContext& c) {
  if (c.input(0).shape() != c.input(1).shape()) {
    return InvalidArgument("tags and values are not the same shape: ",
                           c.input(0).shape(), " != ", c.input(1).shape());
  }
  Summary summary;
  const auto tags = c.input(0).span<std::string>();
  const std::vector<double> values = Numbers(c.input(1));
  for (size_t i = 0; i < values.size(); ++i) {
    auto* value = summary.add_value();
    value->set_tag(tags[i]);
    value->set_simple_value(static_cast<float>(values[i]));
  }
  return SetSummary(c, summary);
}

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

// Runs of empty buckets are written as one.
void AddBuckets(const std::vector<double>& counts, HistogramProto* histogram) {
  const std::vector<double>& limits = BucketLimits();
  for (size_t i = 0; i < counts.size();) {
    double end = limits[i], count = counts[i];
    ++i;
    if (count <= 0) {
      for (; i < counts.size() && counts[i] <= 0; ++i) {
        end = limits[i];
        count = counts[i];
      }
    }
    histogram->add_bucket_limit(end);
    histogram->add_bucket(count);
  }
}

Status FillHistogram(const std::string& tag, const std::vector<double>& values,
                     HistogramProto* histogram) {
  const std::vector<double>& limits = BucketLimits();
  std::vector<double> counts(limits.size());
  double least = std::numeric_limits<double>::max();
  double most = -least, sum = 0, squares = 0;
  for (const double v : values) {
    if (std::isnan(v)) {
      return InvalidArgument("Nan in summary histogram for: ", tag);
    }
    if (std::isinf(v)) {
      return InvalidArgument("Infinity in summary histogram for: ", tag);
    }
    const auto at = std::upper_bound(limits.begin(), limits.end(), v);
    ++counts[std::min<size_t>(at - limits.begin(), limits.size() - 1)];
    least = std::min(least, v);
    most = std::max(most, v);
    sum += v;
    squares += v * v;
  }
  histogram->set_min(least);
  histogram->set_max(most);
  histogram->set_num(static_cast<double>(values.size()));
  histogram->set_sum(sum);
  histogram->set_sum_squares(squares);
  AddBuckets(counts, histogram);
  return OkStatus();
}

Status Histogram(KernelContext& c) {
  if (c.input(0).shape().rank() != 0) {
    return InvalidArgument("tags must be scalar, not of shape ",
                           c.input(0).shape());
  }
  Summary summary;
  auto* value = summary.add_value();
  value->set_tag(c.input(0).scalar<std::string>());
  HR_RETURN_IF_ERROR(
      FillHistogram(value->tag(), Numbers(c.input(1)), value->mutable_histo()));
  return SetSummary(c, summary);
}

Status MergeSummaries(KernelContext& c) {
  Summary merged;
  absl::flat_hash_set<std::string> tags;
  for (int i = 0; i < c.num_inputs(); ++i) {
    for (const std::string& bytes : c.input(i).span<std::string>()) {
      Summary part;
      if (!part.ParseFromString(bytes)) {
        return InvalidArgument(
            "Could not parse one of the summary inputs as a Summary");
      }
      for (const auto& value : part.value()) {
        if (!value.tag().empty() && !tags.insert(value.tag()).second) {
          return InvalidArgument("Duplicate tag ", value.tag(),
                                 " found in summary inputs");
        }
        *merged.add_value() = value;
      }
    }
  }
  return SetSummary(c, merged);
}

HR_OP(ScalarSummary)
    .Input("tags: string")
    .Input("values: T")
    .Output("summary: string")
    .Attr("T: realnumbertype")
    .Doc("A Summary of numbers, each under its tag.")
    .Shape(OneString)
    .NoGradient()
    .Cpu(Compute<Scalars>);

HR_OP(HistogramSummary)
    .Input("tag: string")
    .Input("values: T")
    .Output("summary: string")
    .Attr("T: realnumbertype = DT_FLOAT")
    .Doc("A Summary of how values are spread.")
    .Shape(OneString)
    .NoGradient()
    .Cpu(Compute<Histogram>);

HR_OP(MergeSummary)
    .Input("inputs: N * string")
    .Output("summary: string")
    .Attr("N: int >= 1")
    .Doc("All the values of several summaries, as one Summary.")
    .Shape(OneString)
    .NoGradient()
    .Cpu(Compute<MergeSummaries>);

}  // namespace
}  // namespace headrace
