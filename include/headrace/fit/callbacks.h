// What train::Fit calls at its turns: tf.keras.callbacks. Hand them to
// FitOptions::callbacks; they are called in order.
//
//   tf::train::EarlyStopping stopping({.patience = 3,
//                                      .restore_best_weights = true});
//   tf::train::Fit(model, adam, loss, batches,
//                  {.epochs = 50, .validation = &test,
//                   .callbacks = {&stopping}});
//
// Values are known by name: "loss" and the metrics' names, with "val_" before
// those of the validation data, "lr" where a callback sets the rate.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/checkpoint.h"
#include "headrace/fit/optimizer.h"
#include "headrace/layer/layers.h"

namespace headrace::tf::train {

using Logs = std::map<std::string, double>;

// What is being trained, as callbacks see it. `stop` ends the training at the
// end of the epoch, or of the step when a step sets it.
struct Training {
  layers::Layer& model;
  Optimizer& optimizer;
  bool stop = false;
};

// Base: does nothing at any turn. Epochs count from 0; without
// FitOptions::epochs the whole training is one. Used by one training at a time,
// on the thread that called Fit; what they throw ends it and arrives unchanged
// at Fit's caller. Begin and end are called for each call of Fit; not the end
// where something throws.
class HR_API Callback {
 public:
  virtual ~Callback() = default;
  virtual void OnTrainBegin(Training& t) {}
  virtual void OnTrainEnd(Training& t) {}
  virtual void OnEpochBegin(Training& t, int64_t epoch) {}
  // The logs hold the epoch's values by name. May add to the logs: later
  // callbacks and the report see it.
  virtual void OnEpochEnd(Training& t, int64_t epoch, Logs* logs) {}
  // `step` is Optimizer::iterations, counted from 1 here: the step is done.
  // `loss` is a scalar, this batch's, penalties included.
  virtual void OnStepEnd(Training& t, int64_t step, const Tensor& loss) {}
};

// Whether a value is better than another: by more than |min_delta|, below it
// ("min") or above it ("max"). `mode` is "min", "max" or "auto": max for names
// that end in "acc", "accuracy" or "auc". Others throw kInvalidArgument. Not a
// number is never better.
class HR_API Monitor {
 public:
  Monitor(std::string name, const std::string& mode, double min_delta = 0);
  // The value of that name, or null with a warning on stderr.
  const double* Find(const Logs& logs, const char* who) const;
  bool Better(double value, double than) const;
  double worst() const { return rising_ ? -kInfinity : kInfinity; }

 private:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::string name_;
  double min_delta_;
  bool rising_;
};

// What is watched, and for how long.
struct EarlyStoppingOptions {
  std::string monitor = "val_loss";
  double min_delta = 0;  // less is no improvement
  int64_t patience = 0;  // epochs without improvement before it stops
  std::string mode = "auto";
  // The value is to become better than that: until then improvements do not
  // start the count of epochs anew.
  std::optional<double> baseline;
  // At the end the model gets the weights of its best epoch.
  bool restore_best_weights = false;
  int64_t start_from_epoch = 0;
};
// Stops when a value no longer improves, at the earliest behind the second
// epoch. An epoch whose logs lack the value counts for nothing.
class HR_API EarlyStopping : public Callback {
 public:
  explicit EarlyStopping(EarlyStoppingOptions options = {});
  void OnTrainBegin(Training& t) override;
  void OnEpochEnd(Training& t, int64_t epoch, Logs* logs) override;
  void OnTrainEnd(Training& t) override;
  // 0 when it did not stop.
  int64_t stopped_epoch() const { return stopped_epoch_; }
  int64_t best_epoch() const { return best_epoch_; }

 private:
  void Keep(const Training& t);

  EarlyStoppingOptions options_;
  Monitor monitor_;
  int64_t wait_ = 0, stopped_epoch_ = 0, best_epoch_ = 0;
  double best_ = 0;
  std::vector<Tensor> best_weights_;
};

// What is watched, for how long, and what happens then.
struct ReduceLROnPlateauOptions {
  std::string monitor = "val_loss";
  double factor = 0.1;  // below 1
  int64_t patience = 10;
  std::string mode = "auto";
  double min_delta = 1e-4;
  int64_t cooldown = 0;  // epochs after a change that are not counted
  double min_lr = 0;
};
// Multiplies the rate by `factor` when a value has not improved for `patience`
// epochs, down to min_lr. The rate must be a number: with a schedule the first
// epoch's end throws kFailedPrecondition.
class HR_API ReduceLROnPlateau : public Callback {
 public:
  // Throws kInvalidArgument for a factor of 1 or more.
  explicit ReduceLROnPlateau(ReduceLROnPlateauOptions options = {});
  void OnTrainBegin(Training& t) override;
  void OnEpochEnd(Training& t, int64_t epoch, Logs* logs) override;

 private:
  ReduceLROnPlateauOptions options_;
  Monitor monitor_;
  int64_t wait_ = 0, cooldown_ = 0;
  double best_ = 0;
};

// Sets the rate of each epoch, of its number and the rate before
// (kFailedPrecondition for an optimizer with a schedule). Throws
// kInvalidArgument for no function.
class HR_API LearningRateScheduler : public Callback {
 public:
  using Schedule = std::function<double(int64_t epoch, double rate)>;
  explicit LearningRateScheduler(Schedule schedule);
  void OnEpochBegin(Training& t, int64_t epoch) override;
  void OnEpochEnd(Training& t, int64_t epoch, Logs* logs) override;

 private:
  Schedule schedule_;
};

struct ModelCheckpointOptions {
  std::string monitor = "val_loss";
  bool save_best_only = false;
  std::string mode = "auto";
  CheckpointOptions save_options;
};
// Writes a checkpoint (Checkpoint::write) after each epoch, or after the best
// so far. `path` may hold "{epoch}", counted from 1; without it each takes the
// place of the one before. Asynchronous writes are waited for when training
// ends.
class HR_API ModelCheckpoint : public Callback {
 public:
  // `checkpoint` must outlive it.
  ModelCheckpoint(Checkpoint& checkpoint, std::string path,
                  ModelCheckpointOptions options = {});
  void OnEpochEnd(Training& t, int64_t epoch, Logs* logs) override;
  void OnTrainEnd(Training& t) override;

 private:
  Checkpoint& checkpoint_;
  std::string path_;
  ModelCheckpointOptions options_;
  Monitor monitor_;
  double best_;
};

// A line of values an epoch, the names in the first; goes on at the end of the
// file with `append`. Columns are those of the first epoch: values that come
// later have none, values that are missing are "NA". kUnavailable where the
// file cannot be written.
class HR_API CSVLogger : public Callback {
 public:
  explicit CSVLogger(std::string path, std::string separator = ",",
                     bool append = false);
  void OnTrainBegin(Training& t) override;
  void OnEpochEnd(Training& t, int64_t epoch, Logs* logs) override;

 private:
  std::string path_, separator_;
  bool append_;
  std::vector<std::string> names_;
};

// Keeps every epoch's values of the last training.
class HR_API History : public Callback {
 public:
  void OnTrainBegin(Training& t) override;
  void OnEpochEnd(Training& t, int64_t epoch, Logs* logs) override;
  const std::vector<int64_t>& epochs() const { return epochs_; }
  // By name, one an epoch; NaN where an epoch had none.
  const std::map<std::string, std::vector<double>>& history() const {
    return history_;
  }

 private:
  std::vector<int64_t> epochs_;
  std::map<std::string, std::vector<double>> history_;
};

// Functions that are called at these turns; those not given do nothing.
struct LambdaCallbackOptions {
  std::function<void(Training&t)> on_train_begin, on_train_end;
  std::function<void(Training& t, int64_t epoch)> on_epoch_begin;
  std::function<void(Training& t, int64_t epoch, Logs* logs)> on_epoch_end;
  std::function<void(Training& t, int64_t step, const Tensor& loss)>
      on_step_end;
};
class HR_API LambdaCallback : public Callback {
 public:
  explicit LambdaCallback(LambdaCallbackOptions options)
      : options_(std::move(options)) {}
  void OnTrainBegin(Training& t) override;
  void OnTrainEnd(Training& t) override;
  void OnEpochBegin(Training& t, int64_t epoch) override;
  void OnEpochEnd(Training& t, int64_t epoch, Logs* logs) override;
  void OnStepEnd(Training& t, int64_t step, const Tensor& loss) override;

 private:
  LambdaCallbackOptions options_;
};

// Scalars of every epoch, "epoch_loss" and so on, for TensorBoard: in the
// folder `train` of log_dir, those of the validation data in `validation`.
class HR_API TensorBoard : public Callback {
 public:
  explicit TensorBoard(std::string log_dir = "logs");
  void OnEpochEnd(Training& t, int64_t epoch, Logs* logs) override;

 private:
  std::string log_dir_;
  std::unique_ptr<EventFileWriter> train_, validation_;  // when needed
};

// Stops at the first loss that is not finite, which it looks at every step: so
// each step is waited for.
class HR_API TerminateOnNaN : public Callback {
 public:
  void OnStepEnd(Training& t, int64_t step, const Tensor& loss) override;
};

}  // namespace headrace::tf::train
