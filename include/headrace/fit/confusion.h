// Metrics of how predictions and labels fall together: tf.keras.metrics.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headrace/fit/metrics.h"

namespace headrace::tf::metrics {

// What counts as a positive prediction.
struct ThresholdOptions {
  // A prediction above one is positive; each in [0, 1]. None: 0.5, or with
  // top_k whatever is among the k greatest of the last axis.
  std::vector<double> thresholds;
  std::optional<int64_t> top_k;
  // Only this place of the last axis counts.
  std::optional<int64_t> class_id;
};

// What counts at thresholds share. Labels are 0 or 1, predictions in [0, 1],
// both of one shape (or one that a last axis of 1 makes the same). With several
// thresholds, results are one value each, [thresholds]; Fit and Evaluate want
// one. Throws kInvalidArgument for thresholds outside of [0, 1] and a top_k
// below 1.
class HR_API ConfusionCounts : public Metric {
 public:
  void Update(const Tensor& y_true, const Tensor& y_pred,
              const Tensor& sample_weight = {}) override;

 protected:
  enum Part {
    kTruePositives,
    kFalsePositives,
    kTrueNegatives,
    kFalseNegatives
  };
  ConfusionCounts(std::string name, std::vector<Part> parts,
                  ThresholdOptions options);
  Tensor CountOf(size_t part) const;
  // A scalar where there is one threshold.
  Tensor Given(const Tensor& values) const;

 private:
  ThresholdOptions options_;
  std::vector<double> limits_;
  std::vector<Part> parts_;
  std::vector<Variable> counts_;
};

// How many there were, each sample times its weight: right and wrong
// predictions of 1, right and wrong predictions of 0. Tracks "accumulator".
class HR_API TruePositives : public ConfusionCounts {
 public:
  explicit TruePositives(std::vector<double> thresholds = {},
                         std::string name = "true_positives");
  Tensor result() const override;
};
class HR_API FalsePositives : public ConfusionCounts {
 public:
  explicit FalsePositives(std::vector<double> thresholds = {},
                          std::string name = "false_positives");
  Tensor result() const override;
};
class HR_API TrueNegatives : public ConfusionCounts {
 public:
  explicit TrueNegatives(std::vector<double> thresholds = {},
                         std::string name = "true_negatives");
  Tensor result() const override;
};
class HR_API FalseNegatives : public ConfusionCounts {
 public:
  explicit FalseNegatives(std::vector<double> thresholds = {},
                          std::string name = "false_negatives");
  Tensor result() const override;
};
// The share of positive predictions that are right, 0 where there are none.
// Tracks "true_positives" and "false_positives".
class HR_API Precision : public ConfusionCounts {
 public:
  explicit Precision(ThresholdOptions options = {},
                     std::string name = "precision");
  Tensor result() const override;
};
// The share of positive labels that are found, 0 where there are none. Tracks
// "true_positives" and "false_negatives".
class HR_API Recall : public ConfusionCounts {
 public:
  explicit Recall(ThresholdOptions options = {}, std::string name = "recall");
  Tensor result() const override;
};

// The area is a sum over thresholds: more of them come closer to the true area
// and cost time in each Update.
struct AUCOptions {
  int64_t num_thresholds = 200;  // in [2, 2^24], evenly from 0 to 1
  std::string curve = "ROC";     // or "PR"
  // Heights between two points: their mean (of a PR curve: the exact area under
  // the curve that interpolates counts, Davis and Goadrich, 2006), or the lower
  // ("minoring") or upper ("majoring") of the two.
  std::string summation_method = "interpolation";
  std::vector<double> thresholds;  // each in [0, 1], for num_thresholds
  bool from_logits = false;
};
// The area under a curve, by the counts at thresholds: of true over false
// positives (ROC), or precision over recall (PR). Labels are 0 or 1,
// predictions in [0, 1] (logits with from_logits). Throws kInvalidArgument for
// other names and for thresholds out of range.
class HR_API AUC : public Metric {
 public:
  explicit AUC(AUCOptions options = {}, std::string name = "auc");
  void Update(const Tensor& y_true, const Tensor& y_pred,
              const Tensor& sample_weight = {}) override;
  Tensor result() const override;

 private:
  Tensor InterpolatedPrecision() const;

  AUCOptions options_;
  std::vector<double> limits_;
  Variable tp_, tn_, fp_, fn_;
};

// The mean over classes (those that came) of intersection by union; labels and
// predictions are classes' numbers in [0, num_classes), others are
// kInvalidArgument, as is a num_classes outside of [1, 32768]. Tracks
// "total_cm", [num_classes, num_classes].
class HR_API MeanIoU : public Metric {
 public:
  explicit MeanIoU(int64_t num_classes, std::string name = "mean_io_u");
  void Update(const Tensor& y_true, const Tensor& y_pred,
              const Tensor& sample_weight = {}) override;
  Tensor result() const override;

 private:
  int64_t num_classes_;
  Variable total_;
};

}  // namespace headrace::tf::metrics
