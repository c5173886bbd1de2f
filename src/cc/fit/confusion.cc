#include "headrace/fit/confusion.h"

#include <algorithm>

#include "cc/compose.h"
#include "cc/fit/shapes.h"

namespace headrace::tf::metrics {

using internal::Cast;
using internal::DivideNoNan;
using internal::Int;
using internal::Ints;
using internal::kFloat;
using internal::Number;
using internal::Op;
using internal::Throw;

namespace {

constexpr double kLowest = -1e10;  // what is not among the top k

Variable NewCount(Module* metric, const std::string& name,
                  const TensorShape& shape) {
  internal::Outside outside;
  return metric->Track(name,
                       Variable(internal::Full(kFloat, shape, 0), name, false));
}

// A weight for every prediction; null for none.
Tensor WeightFor(const Tensor& sample_weight, const Tensor& values) {
  // A null tensor stands for "no weights".
  if (!sample_weight) return Tensor();
  const Tensor weight = internal::FittedWeight(sample_weight, values);
  return Op("BroadcastTo", {weight, internal::ShapeOf(values)});
}

struct Counts {
  Tensor tp, fp, tn, fn;
};

// Weighted counts at each threshold.
Counts CountAll(const Tensor& y_true, const Tensor& y_pred,
                const std::vector<double>& thresholds, const Tensor& weight) {
  const std::vector<float> limits(thresholds.begin(), thresholds.end());
  // Thresholds down, predictions across: one comparison gives all of them.
  const Tensor column = internal::Reshape(
      internal::Constant(headrace::Tensor::Vector<float>(limits)), {-1, 1});
  const Tensor label = internal::Reshape(Cast(y_true, DType::kBool), {1, -1});
  const Tensor positive = internal::Reshape(y_pred, {1, -1}) > column;
  const auto count = [&](const Tensor& a, const Tensor& b) {
    Tensor hits = Cast(Op("LogicalAnd", {a, b}), kFloat);
    if (weight) hits = hits * internal::Reshape(weight, {1, -1});
    return internal::Reduce("Sum", hits, {1});
  };
  const Tensor negative = Op("LogicalNot", {positive});
  const Tensor no_label = Op("LogicalNot", {label});
  return {count(positive, label), count(positive, no_label),
          count(negative, no_label), count(negative, label)};
}

Tensor LikePredictions(const Tensor& y_true, const Tensor& y_pred) {
  if (y_true.shape().rank() == y_pred.shape().rank()) return y_true;
  return Op("Reshape", {y_true, internal::ShapeOf(y_pred)});
}

// Scores that are not among the k highest become kLowest.
Tensor OnlyTop(const Tensor& x, int64_t k) {
  const int64_t classes = x.shape().known_rank ? x.shape().dims.back() : -1;
  if (classes < k) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("top_k of ", k, " in predictions of shape ",
                       x.shape().ToString()));
  }
  // Only which ones they are counts.
  const std::vector<Tensor> top =
      internal::OpAll("TopKV2", {x, Int(k)}, {{"sorted", false}});
  const Tensor hot = Op(
      "OneHot", {top[1], Int(classes), Number(kFloat, 1), Number(kFloat, 0)});
  const Tensor kept = internal::Reduce("Sum", hot, {-2});
  return x * kept + kLowest * (1.0 - kept);
}

Tensor PlaceOf(const Tensor& x, int64_t place) {
  if (!x) return x;
  return Op("GatherV2", {x, Int(place), Int(-1)});
}

void CheckThresholds(const std::vector<double>& thresholds) {
  for (const double t : thresholds) {
    if (t >= 0 && t <= 1) continue;
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("Threshold values must be in [0, 1]. Received: ", t));
  }
}

}  // namespace

ConfusionCounts::ConfusionCounts(std::string name, std::vector<Part> parts,
                                 ThresholdOptions options)
    : Metric(std::move(name)),
      options_(std::move(options)),
      limits_(options_.thresholds),
      parts_(std::move(parts)) {
  CheckThresholds(limits_);
  if (options_.top_k && *options_.top_k < 1) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("top_k must be positive, but is ", *options_.top_k));
  }
  // With top_k any score among the top counts as positive, however low.
  if (limits_.empty()) limits_ = {options_.top_k ? kLowest : 0.5};
  const char* const names[] = {"true_positives", "false_positives",
                               "true_negatives", "false_negatives"};
  const TensorShape shape{static_cast<int64_t>(limits_.size())};
  for (const Part part : parts_) {
    counts_.push_back(
        NewCount(this, parts_.size() > 1 ? names[part] : "accumulator", shape));
  }
}

void ConfusionCounts::Update(const Tensor& given_true, const Tensor& given_pred,
                             const Tensor& sample_weight) {
  Tensor y_pred = Cast(given_pred, kFloat);
  if (options_.top_k) y_pred = OnlyTop(y_pred, *options_.top_k);
  Tensor y_true = LikePredictions(Cast(given_true, kFloat), y_pred);
  Tensor weight = WeightFor(sample_weight, y_pred);
  if (options_.class_id) {
    const int64_t place = *options_.class_id;
    y_true = PlaceOf(y_true, place);
    y_pred = PlaceOf(y_pred, place);
    weight = PlaceOf(weight, place);
  }
  const Counts counts = CountAll(y_true, y_pred, limits_, weight);
  for (size_t i = 0; i < parts_.size(); ++i) {
    const Tensor all[] = {counts.tp, counts.fp, counts.tn, counts.fn};
    counts_[i].assign_add(all[parts_[i]]);
  }
}

Tensor ConfusionCounts::CountOf(size_t part) const { return counts_[part]; }

Tensor ConfusionCounts::Given(const Tensor& values) const {
  return options_.thresholds.size() > 1 ? values
                                        : internal::Reshape(values, {});
}

TruePositives::TruePositives(std::vector<double> thresholds, std::string name)
    : ConfusionCounts(std::move(name), {kTruePositives},
                      {std::move(thresholds), {}, {}}) {}
Tensor TruePositives::result() const { return Given(CountOf(0)); }
FalsePositives::FalsePositives(std::vector<double> thresholds, std::string name)
    : ConfusionCounts(std::move(name), {kFalsePositives},
                      {std::move(thresholds), {}, {}}) {}
Tensor FalsePositives::result() const { return Given(CountOf(0)); }
TrueNegatives::TrueNegatives(std::vector<double> thresholds, std::string name)
    : ConfusionCounts(std::move(name), {kTrueNegatives},
                      {std::move(thresholds), {}, {}}) {}
Tensor TrueNegatives::result() const { return Given(CountOf(0)); }
FalseNegatives::FalseNegatives(std::vector<double> thresholds, std::string name)
    : ConfusionCounts(std::move(name), {kFalseNegatives},
                      {std::move(thresholds), {}, {}}) {}
Tensor FalseNegatives::result() const { return Given(CountOf(0)); }

Precision::Precision(ThresholdOptions options, std::string name)
    : ConfusionCounts(std::move(name), {kTruePositives, kFalsePositives},
                      std::move(options)) {}
Recall::Recall(ThresholdOptions options, std::string name)
    : ConfusionCounts(std::move(name), {kTruePositives, kFalseNegatives},
                      std::move(options)) {}
Tensor Precision::result() const {
  return Given(DivideNoNan(CountOf(0), CountOf(0) + CountOf(1)));
}
Tensor Recall::result() const {
  return Given(DivideNoNan(CountOf(0), CountOf(0) + CountOf(1)));
}

AUC::AUC(AUCOptions options, std::string name)
    : Metric(std::move(name)), options_(std::move(options)) {
  if (options_.curve != "ROC" && options_.curve != "PR") {
    Throw(ErrorCode::kInvalidArgument,
          "Invalid AUC curve value: " + options_.curve + ".");
  }
  if (options_.summation_method != "interpolation" &&
      options_.summation_method != "minoring" &&
      options_.summation_method != "majoring") {
    Throw(ErrorCode::kInvalidArgument,
          "Invalid AUC summation method: " + options_.summation_method + ".");
  }
  limits_ = options_.thresholds;
  CheckThresholds(limits_);
  std::sort(limits_.begin(), limits_.end());
  if (limits_.empty()) {
    const int64_t n = options_.num_thresholds;
    if (n <= 1 || n > (1 << 24)) {
      Throw(ErrorCode::kInvalidArgument,
            absl::StrCat("Argument `num_thresholds` must be an integer > 1. "
                         "Received: num_thresholds=",
                         n));
    }
    // The two ends come below.
    for (int64_t i = 0; i < n - 2; ++i) {
      limits_.push_back(static_cast<double>(i + 1) /
                        static_cast<double>(n - 1));
    }
  }
  // Keras' ends, a little outside: predictions of exactly 0 and 1 fall on the
  // right side.
  limits_.insert(limits_.begin(), -1e-7);
  limits_.push_back(1 + 1e-7);
  const TensorShape shape{static_cast<int64_t>(limits_.size())};
  tp_ = NewCount(this, "true_positives", shape);
  tn_ = NewCount(this, "true_negatives", shape);
  fp_ = NewCount(this, "false_positives", shape);
  fn_ = NewCount(this, "false_negatives", shape);
}

void AUC::Update(const Tensor& y_true, const Tensor& given_pred,
                 const Tensor& sample_weight) {
  Tensor y_pred = Cast(given_pred, kFloat);
  if (options_.from_logits) y_pred = Op("Sigmoid", {y_pred});
  const Tensor label =
      Op("Reshape", {Cast(y_true, kFloat), internal::ShapeOf(y_pred)});
  const Counts counts =
      CountAll(label, y_pred, limits_, WeightFor(sample_weight, y_pred));
  tp_.assign_add(counts.tp);
  tn_.assign_add(counts.tn);
  fp_.assign_add(counts.fp);
  fn_.assign_add(counts.fn);
}

namespace {

// All but the last, or but the first.
Tensor Early(const Tensor& x) {
  return Op("StridedSlice", {x, Ints({0}), Ints({-1}), Ints({1})});
}
Tensor Late(const Tensor& x) {
  return Op("StridedSlice", {x, Ints({1}), Ints({0}), Ints({1})},
            {{"end_mask", 1}});
}
Tensor NotNegative(const Tensor& x) {
  return Op("Maximum", {x, Number(kFloat, 0)});
}

}  // namespace

// The exact area between points of a precision-recall curve.
Tensor AUC::InterpolatedPrecision() const {
  // Davis and Goadrich, "The relationship between precision-recall and ROC
  // curves" (2006), as Keras integrates it.
  const Tensor tp = tp_, found = tp + fp_, missed = fn_;
  const Tensor before = Early(found), after = Late(found);
  const Tensor gain = Early(tp) - Late(tp);
  // Rounding of weighted counts may bring differences below 0.
  const Tensor slope = DivideNoNan(gain, NotNegative(before - after));
  const Tensor offset = Late(tp) - slope * after;
  // The logarithm of a ratio with a 0 in it has no meaning; its term is 0 then.
  const Tensor both = Op("LogicalAnd", {before > 0, after > 0});
  const Tensor ratio = Op(
      "SelectV2",
      {both, DivideNoNan(before, NotNegative(after)), Op("OnesLike", {after})});
  const Tensor area = slope * (gain + offset * Op("Log", {ratio}));
  const Tensor whole = NotNegative(Late(tp) + Late(missed));
  return internal::SumAll(DivideNoNan(area, whole));
}

Tensor AUC::result() const {
  const std::string& method = options_.summation_method;
  if (options_.curve == "PR" && method == "interpolation") {
    return InterpolatedPrecision();
  }
  const Tensor tp = tp_, tn = tn_, fp = fp_, fn = fn_;
  Tensor x = DivideNoNan(tp, tp + fn), y = x;  // the recall
  if (options_.curve == "ROC") {
    x = DivideNoNan(fp, fp + tn);
  } else {
    y = DivideNoNan(tp, tp + fp);
  }
  const Tensor first = Early(y), second = Late(y);
  const Tensor height =
      method == "interpolation"
          ? (first + second) / 2.0
          : Op(method == "minoring" ? "Minimum" : "Maximum", {first, second});
  // Thresholds rise, so x falls: earlier minus later is the width.
  return internal::SumAll((Early(x) - Late(x)) * height);
}

MeanIoU::MeanIoU(int64_t num_classes, std::string name)
    : Metric(std::move(name)), num_classes_(num_classes) {
  // The table has the square of it.
  if (num_classes < 1 || num_classes > (1 << 15)) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("MeanIoU: ", num_classes, " classes"));
  }
  total_ = NewCount(this, "total_confusion_matrix", {num_classes, num_classes});
  // Keras' name in checkpoints.
  AddName("total_cm", total_);
}

void MeanIoU::Update(const Tensor& y_true, const Tensor& y_pred,
                     const Tensor& sample_weight) {
  const auto flat = [](const Tensor& t, DType dtype) {
    return internal::Reshape(Cast(t, dtype), {-1});
  };
  const Tensor places =
      Op("Pack", {flat(y_true, DType::kInt64), flat(y_pred, DType::kInt64)},
         {{"N", 2}, {"axis", 1}});
  const Tensor values = sample_weight ? flat(sample_weight, kFloat)
                                      : Op("OnesLike", {flat(y_pred, kFloat)});
  const Tensor sizes = internal::Constant(headrace::Tensor::Vector<int64_t>(
      std::vector<int64_t>{num_classes_, num_classes_}));
  total_.assign_add(Op("ScatterNd", {places, values, sizes}));
}

Tensor MeanIoU::result() const {
  const Tensor table = total_;
  const Tensor hits =
      Op("MatrixDiagPartV3", {table, Tensor(0), Number(kFloat, 0)});
  const Tensor whole = internal::Reduce("Sum", table, {0}) +
                       internal::Reduce("Sum", table, {1}) - hits;
  // Classes that never came up do not count in the mean.
  const Tensor seen = internal::SumAll(
      Cast(Op("NotEqual", {whole, Number(kFloat, 0)}), kFloat));
  return DivideNoNan(internal::SumAll(DivideNoNan(hits, whole)), seen);
}

}  // namespace headrace::tf::metrics
