#include "headrace/fit/callbacks.h"

#include <cmath>
#include <cstdio>
#include <fstream>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/files/system_path.h"
#include "cc/compose.h"

namespace headrace::tf::train {

using internal::Throw;

Monitor::Monitor(std::string name, const std::string& mode, double min_delta)
    : name_(std::move(name)), min_delta_(std::abs(min_delta)) {
  if (mode != "auto" && mode != "min" && mode != "max") {
    Throw(ErrorCode::kInvalidArgument,
          "a monitor's mode is \"auto\", \"min\" or \"max\", not " + mode);
  }
  // Keras' rule for "auto": these names are better when they are larger.
  const bool by_name = name_.ends_with("acc") || name_.ends_with("accuracy") ||
                       name_.ends_with("auc");
  rising_ = mode == "max" || (mode == "auto" && by_name);
}

const double* Monitor::Find(const Logs& logs, const char* who) const {
  const auto found = logs.find(name_);
  if (found != logs.end()) return &found->second;
  std::vector<std::string> names;
  for (const auto& [name, value] : logs) names.push_back(name);
  std::fprintf(stderr,
               "%s conditioned on metric `%s` which is not available. "
               "Available metrics are: %s\n",
               who, name_.c_str(), absl::StrJoin(names, ",").c_str());
  return nullptr;
}

bool Monitor::Better(double value, double than) const {
  return rising_ ? value - min_delta_ > than : value + min_delta_ < than;
}

EarlyStopping::EarlyStopping(EarlyStoppingOptions options)
    : options_(std::move(options)),
      monitor_(options_.monitor, options_.mode, options_.min_delta) {}

void EarlyStopping::OnTrainBegin(Training& t) {
  wait_ = stopped_epoch_ = best_epoch_ = 0;
  best_ = monitor_.worst();
  best_weights_.clear();
}

void EarlyStopping::Keep(const Training& t) {
  best_weights_.clear();
  for (const Variable& v : t.model.variables()) {
    // A tensor shares the variable's buffer until the variable is changed;
    // keeping it costs no copy now.
    best_weights_.push_back(v.value());
  }
}

void EarlyStopping::OnEpochEnd(Training& t, int64_t epoch, Logs* logs) {
  const double* current = monitor_.Find(*logs, "Early stopping");
  if (current == nullptr || epoch < options_.start_from_epoch) return;
  // Weights of the first epoch, in case that no value is ever better than the
  // worst (all NaN).
  if (options_.restore_best_weights && best_weights_.empty()) {
    Keep(t);
    best_epoch_ = epoch;
  }
  ++wait_;
  if (monitor_.Better(*current, best_)) {
    best_ = *current;
    best_epoch_ = epoch;
    if (options_.restore_best_weights) Keep(t);
    // Below a baseline an improvement does not make training wait longer.
    if (!options_.baseline || monitor_.Better(*current, *options_.baseline)) {
      wait_ = 0;
    }
    return;
  }
  // Keras never stops behind the first epoch.
  if (wait_ >= options_.patience && epoch > 0) {
    stopped_epoch_ = epoch;
    t.stop = true;
  }
}

void EarlyStopping::OnTrainEnd(Training& t) {
  const std::vector<Variable> variables = t.model.variables();
  if (best_weights_.size() != variables.size()) return;
  for (size_t i = 0; i < variables.size(); ++i) {
    variables[i].assign(best_weights_[i]);
  }
}

namespace {

double RateOf(const Training& t) {
  return t.optimizer.learning_rate().value().item<float>();
}

void SetRate(const Training& t, double rate) {
  t.optimizer.learning_rate().assign(Tensor(static_cast<float>(rate)));
}

}  // namespace

ReduceLROnPlateau::ReduceLROnPlateau(ReduceLROnPlateauOptions options)
    : options_(std::move(options)),
      monitor_(options_.monitor, options_.mode, options_.min_delta) {
  if (options_.factor >= 1) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("ReduceLROnPlateau does not support a factor >= 1.0. "
                       "Got ",
                       options_.factor));
  }
}

void ReduceLROnPlateau::OnTrainBegin(Training& t) {
  best_ = monitor_.worst();
  wait_ = cooldown_ = 0;
}

void ReduceLROnPlateau::OnEpochEnd(Training& t, int64_t epoch, Logs* logs) {
  const double rate = RateOf(t);
  (*logs)["lr"] = rate;
  const double* current = monitor_.Find(*logs, "Learning rate reduction");
  if (current == nullptr) return;
  if (cooldown_ > 0) {
    --cooldown_;
    wait_ = 0;
  }
  if (monitor_.Better(*current, best_)) {
    best_ = *current;
    wait_ = 0;
  } else if (cooldown_ <= 0 && ++wait_ >= options_.patience &&
             // The rate is kept as float32: compared with min_lr as a double it
             // could seem to be above it for ever.
             rate > static_cast<float>(options_.min_lr)) {
    SetRate(t, std::max(rate * options_.factor, options_.min_lr));
    cooldown_ = options_.cooldown;
    wait_ = 0;
  }
}

LearningRateScheduler::LearningRateScheduler(Schedule schedule)
    : schedule_(std::move(schedule)) {
  if (schedule_ == nullptr) {
    Throw(ErrorCode::kInvalidArgument,
          "LearningRateScheduler needs a schedule");
  }
}

void LearningRateScheduler::OnEpochBegin(Training& t, int64_t epoch) {
  SetRate(t, schedule_(epoch, RateOf(t)));
}

void LearningRateScheduler::OnEpochEnd(Training& t, int64_t epoch, Logs* logs) {
  (*logs)["lr"] = RateOf(t);
}

ModelCheckpoint::ModelCheckpoint(Checkpoint& checkpoint, std::string path,
                                 ModelCheckpointOptions options)
    : checkpoint_(checkpoint),
      path_(std::move(path)),
      options_(std::move(options)),
      monitor_(options_.monitor, options_.mode),
      best_(monitor_.worst()) {}

void ModelCheckpoint::OnEpochEnd(Training& t, int64_t epoch, Logs* logs) {
  if (options_.save_best_only) {
    const double* current = monitor_.Find(*logs, "Saving the best model");
    if (current == nullptr || !monitor_.Better(*current, best_)) return;
    best_ = *current;
  }
  // Keras counts epochs from 1 in names of files.
  checkpoint_.write(
      absl::StrReplaceAll(path_, {{"{epoch}", absl::StrCat(epoch + 1)}}),
      options_.save_options);
}

// Saves that go on in the background must be done when training says it is.
void ModelCheckpoint::OnTrainEnd(Training& t) { checkpoint_.sync(); }

CSVLogger::CSVLogger(std::string path, std::string separator, bool append)
    : path_(std::move(path)),
      separator_(std::move(separator)),
      append_(append) {}

namespace {

void WriteLine(const std::string& path, const std::string& line, bool append) {
  internal::Check(SystemPath(path).status());
  // Opened for each line, so that the file is whole whenever training ends.
  std::ofstream file(path, append ? std::ios::app : std::ios::trunc);
  if (!line.empty()) file << line << '\n';
  file.close();
  if (!file) {
    Throw(ErrorCode::kUnavailable, "CSVLogger: cannot write " + path);
  }
}

}  // namespace

void CSVLogger::OnTrainBegin(Training& t) {
  names_.clear();
  if (!append_) WriteLine(path_, "", /*append=*/false);
}

void CSVLogger::OnEpochEnd(Training& t, int64_t epoch, Logs* logs) {
  if (names_.empty()) {
    names_.push_back("epoch");
    for (const auto& [name, value] : *logs) names_.push_back(name);
    std::ifstream before(path_);
    // The head is written only where the file is empty: an appended log has one
    // already.
    if (before.peek() == std::ifstream::traits_type::eof()) {
      WriteLine(path_, absl::StrJoin(names_, separator_), /*append=*/true);
    }
  }
  std::string line = absl::StrCat(epoch);
  for (size_t i = 1; i < names_.size(); ++i) {
    const auto found = logs->find(names_[i]);
    // As Keras writes what an epoch lacks.
    absl::StrAppend(&line, separator_,
                    found == logs->end() ? "NA" : absl::StrCat(found->second));
  }
  WriteLine(path_, line, /*append=*/true);
}

void History::OnTrainBegin(Training& t) {
  epochs_.clear();
  history_.clear();
}

void History::OnEpochEnd(Training& t, int64_t epoch, Logs* logs) {
  const size_t before = epochs_.size();
  epochs_.push_back(epoch);
  for (const auto& [name, value] : *logs) {
    // A name that comes up later has NaN for the epochs before.
    history_.try_emplace(name, before, NAN);
  }
  for (auto& [name, values] : history_) {
    const auto found = logs->find(name);
    values.push_back(found == logs->end() ? NAN : found->second);
  }
}

void LambdaCallback::OnTrainBegin(Training& t) {
  if (options_.on_train_begin) options_.on_train_begin(t);
}
void LambdaCallback::OnTrainEnd(Training& t) {
  if (options_.on_train_end) options_.on_train_end(t);
}
void LambdaCallback::OnEpochBegin(Training& t, int64_t epoch) {
  if (options_.on_epoch_begin) options_.on_epoch_begin(t, epoch);
}
void LambdaCallback::OnEpochEnd(Training& t, int64_t epoch, Logs* logs) {
  if (options_.on_epoch_end) options_.on_epoch_end(t, epoch, logs);
}
void LambdaCallback::OnStepEnd(Training& t, int64_t step, const Tensor& loss) {
  if (options_.on_step_end) options_.on_step_end(t, step, loss);
}

TensorBoard::TensorBoard(std::string log_dir) : log_dir_(std::move(log_dir)) {}

void TensorBoard::OnEpochEnd(Training& t, int64_t epoch, Logs* logs) {
  for (const auto& [name, value] : *logs) {
    const bool validation = name.starts_with("val_");
    auto& writer = validation ? validation_ : train_;
    if (writer == nullptr) {
      writer = std::make_unique<EventFileWriter>(
          log_dir_ + (validation ? "/validation" : "/train"));
    }
    // Without "val_": TensorBoard shows both runs in one chart when their tags
    // are equal.
    writer->scalar("epoch_" + (validation ? name.substr(4) : name),
                   static_cast<float>(value), epoch);
  }
  if (train_) train_->flush();
  if (validation_) validation_->flush();
}

void TerminateOnNaN::OnStepEnd(Training& t, int64_t step, const Tensor& loss) {
  const Tensor value = internal::Cast(loss, DType::kFloat32);
  if (!std::isfinite(value.item<float>())) t.stop = true;
}

}  // namespace headrace::tf::train
