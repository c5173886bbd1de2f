#include "headrace/fit/train.h"

#include <algorithm>
#include <cstdio>
#include <deque>

#include "cc/compose.h"
#include "cc/fit/shapes.h"
#include "cc/replicas.h"
#include "cc/workers.h"
#include "headrace/coordinator.h"
#include "headrace/function.h"
#include "headrace/tape.h"

namespace headrace::tf::train {
namespace {

using Batch = std::vector<Tensor>;
// Steps: a report waits for the step under way, so not after each.
constexpr int64_t kReportEvery = 50;

// What a training makes small: losses of outputs, and their weights.
struct Objective {
  int64_t inputs;
  std::vector<const losses::Loss*> losses;  // one an output
  std::vector<double> loss_weights, class_weights;

  Objective(const losses::Loss& loss, const FitOptions& o)
      : inputs(o.inputs),
        losses{&loss},
        loss_weights(o.loss_weights),
        class_weights(o.class_weights) {
    losses.insert(losses.end(), o.more_losses.begin(), o.more_losses.end());
    const bool misfit =
        !loss_weights.empty() && loss_weights.size() != losses.size();
    const bool null =
        std::find(losses.begin(), losses.end(), nullptr) != losses.end();
    if (inputs < 1 || null || misfit ||
        (losses.size() > 1 && !class_weights.empty())) {
      internal::Throw(ErrorCode::kInvalidArgument,
                      inputs < 1 ? "a model has inputs"
                      : null     ? "a null loss among more_losses"
                      : misfit   ? "loss_weights must be one for each output"
                                 : "class_weights are not for models with "
                                   "several outputs");
    }
  }

  size_t labels() const { return losses.size(); }
  void Check(const Batch& batch) const {
    const size_t least = static_cast<size_t>(inputs) + labels();
    if (batch.size() == least || batch.size() == least + 1) return;
    internal::Throw(
        ErrorCode::kInvalidArgument,
        absl::StrCat("elements to train on have ", inputs, " inputs and ",
                     labels() > 1 ? absl::StrCat(labels(), " ") : "",
                     "labels, and may have weights; these have ", batch.size(),
                     " components"));
  }
};

// The weight of each sample by its label's class.
Tensor WeightsOf(const Tensor& labels, const std::vector<double>& weights) {
  Tensor ids = labels;
  const TensorShape shape = labels.shape();
  const int64_t last = shape.rank() > 1 ? shape[shape.rank() - 1] : 1;
  // Labels that are class numbers, perhaps in a column; else one-hot rows.
  if (last == 1) {
    if (shape.rank() > 1) ids = internal::SqueezeLast(labels);
    ids = internal::Cast(ids, DType::kInt64);
  } else {
    ids = internal::Op("ArgMax", {labels, internal::Int(-1)});
  }
  const std::vector<float> table(weights.begin(), weights.end());
  return internal::Op(
      "GatherV2", {internal::Constant(headrace::Tensor::Vector<float>(table)),
                   ids, internal::Int(0)});
}

// A model's predictions for a batch, what they should be, and the weights.
struct ForwardPass {
  ForwardPass(layers::Layer& model, const Batch& batch,
              const Objective& objective, bool training) {
    const Batch inputs(batch.begin(), batch.begin() + objective.inputs);
    predicted = model.ModelOutputs(inputs, training);
    if (predicted.size() != objective.labels()) {
      internal::Throw(ErrorCode::kInvalidArgument,
                      absl::StrCat("a model with ", predicted.size(),
                                   " outputs cannot be trained with ",
                                   objective.labels(), " losses"));
    }
    const auto behind = batch.begin() + objective.inputs + objective.labels();
    labels.assign(batch.begin() + objective.inputs, behind);
    Tensor common = behind != batch.end() ? *behind : Tensor();
    if (!objective.class_weights.empty()) {
      const Tensor by_class = WeightsOf(labels[0], objective.class_weights);
      common = common ? by_class * internal::FittedWeight(common, by_class)
                      : by_class;
    }
    for (const Tensor& p : predicted) {
      weights.push_back(common);
      const Tensor mask = p.mask();
      if (!mask) continue;
      const Tensor shown = internal::Cast(mask, p.dtype());
      weights.back() =
          common ? shown * internal::FittedWeight(common, shown) : shown;
    }
  }

  Batch predicted, labels, weights;  // one an output
};

Tensor SumOf(const Batch& parts) {
  if (parts.size() == 1) return parts[0];
  return internal::Op("AddN", parts,
                      {{"N", static_cast<int64_t>(parts.size())}});
}

struct TotalLoss {
  Tensor
      told;  // of the batch; of losses that are sums, of all replicas' batches
  // What gradients are of: where replicas sum these, means of batches count by
  // their share.
  Tensor minimized;
};

TotalLoss TotalLossOf(const layers::Layer& model, const Objective& objective,
                      const ForwardPass& pass, int replicas = 1) {
  Batch told, minimized;
  const auto add = [&](const Tensor& part, losses::Reduction reduction) {
    const bool sum = reduction == losses::Reduction::kSum;
    const bool mean = reduction == losses::Reduction::kSumOverBatchSize;
    told.push_back(sum && replicas > 1 ? part * replicas : part);
    minimized.push_back(mean && replicas > 1 ? part / replicas : part);
  };
  for (size_t i = 0; i < objective.labels(); ++i) {
    Tensor part = (*objective.losses[i])(pass.labels[i], pass.predicted[i],
                                         pass.weights[i]);
    if (!objective.loss_weights.empty())
      part = part * objective.loss_weights[i];
    // Models of mixed dtypes: the first output's counts.
    if (i > 0) part = internal::Cast(part, told[0].dtype());
    add(part, objective.losses[i]->reduction());
  }
  for (const Tensor& penalty : model.losses()) {
    add(internal::Cast(penalty, told[0].dtype()),
        losses::Reduction::kSumOverBatchSize);
  }
  const Tensor total = SumOf(told);
  return {total, replicas > 1 ? SumOf(minimized) : total};
}

// A running mean that belongs to this process, whatever scope is in force.
metrics::Mean OwnMean() {
  const internal::WorkersScope alone(nullptr);
  return metrics::Mean();
}

void UpdateAll(const std::vector<metrics::Metric*>& metrics,
               const ForwardPass& pass) {
  for (metrics::Metric* m : metrics) {
    // Metrics are those of the first output.
    m->Update(pass.labels[0], pass.predicted[0], pass.weights[0]);
  }
}

// The loss over a dataset; traced once, for all of its epochs.
class Evaluator {
 public:
  Evaluator(layers::Layer& model, const Objective& objective,
            const std::vector<metrics::Metric*>& metrics,
            std::shared_ptr<internal::Workers> workers = nullptr)
      : objective_(objective),
        metrics_(metrics),
        workers_(std::move(workers)),
        step_([&model, metrics, this](const Batch& batch) -> Batch {
          const ForwardPass pass(model, batch, objective_, /*training=*/false);
          const Tensor value = TotalLossOf(model, objective_, pass).told;
          UpdateAll(metrics, pass);
          // Batches of other sizes count as they are large.
          mean_.Update(value,
                       internal::Cast(internal::Op("Size", {pass.labels[0]}),
                                      value.dtype()));
          return {value};
        }) {}

  float Run(const data::Dataset& batches) {
    mean_.Reset();
    for (const data::Element& batch : batches) {
      objective_.Check(batch);
      step_(batch);
    }
    if (workers_ != nullptr) {
      workers_->SumVariables(mean_);
      for (const metrics::Metric* m : metrics_) workers_->SumVariables(*m);
    }
    return mean_.result().item<float>();
  }

 private:
  const Objective objective_;
  const std::vector<metrics::Metric*> metrics_;
  const std::shared_ptr<internal::Workers> workers_;  // whose results these are
  metrics::Mean mean_ = OwnMean();
  Function step_;
};

// Steps of a training: begun one by one, in the order of their ends.
class Steps {
 public:
  virtual ~Steps() = default;
  // False where there is no data any more.
  virtual bool Begin() = 0;
  // Waits for the first one that is under way; its loss.
  virtual Tensor End() = 0;
  size_t under_way() const { return under_way_; }
  // More are not worth having at once.
  virtual size_t most_under_way() const { return 0; }

 protected:
  size_t under_way_ = 0;
};

// Steps that the workers of a coordinator run.
class StepsOfWorkers : public Steps {
 public:
  using Step = TracedFunction<Tensor(distribute::WorkerIterator)>;
  StepsOfWorkers(Step step, const distribute::ClusterCoordinator& coordinator,
                 const distribute::PerWorkerDataset& batches)
      : step_(std::move(step)),
        coordinator_(coordinator),
        batches_(batches.Begin()) {}
  // Where something throws they may be under way, and what they use goes.
  ~StepsOfWorkers() override {
    if (under_way_ == 0) return;
    try {
      coordinator_.Join();
    } catch (const Error&) {
      // Of steps that nobody waits for.
    }
  }

  bool Begin() override {
    losses_.push_back(coordinator_.Schedule(step_, batches_));
    under_way_ = losses_.size();
    return true;
  }
  Tensor End() override {
    const auto loss = losses_.front();
    losses_.pop_front();
    under_way_ = losses_.size();
    try {
      return loss.Fetch();
    } catch (const Error&) {
      // This one may be cancelled, and the error another one's.
      losses_.clear();
      under_way_ = 0;
      coordinator_.Join();
      throw;
    }
  }
  size_t most_under_way() const override {
    return size_t{kAhead} * coordinator_.strategy().num_workers();
  }

 private:
  // Steps a worker: some go together where they are small, and callbacks are
  // told of them not much later than they end.
  static constexpr int kAhead = 8;

  const Step step_;
  const distribute::ClusterCoordinator coordinator_;
  const distribute::WorkerIterator batches_;
  std::deque<distribute::RemoteValue<Tensor>> losses_;
};

// What one call of Fit keeps.
class FitLoop {
 public:
  FitLoop(layers::Layer& model, Optimizer& optimizer, const losses::Loss& loss,
          const FitOptions& options)
      : options_(options),
        objective_(loss, options),
        training_{model, optimizer},
        report_every_(options.report_every > 0 ? options.report_every
                      : options.save_every > 0 ? options.save_every
                                               : kReportEvery),
        // An optimizer from a checkpoint goes on counting where it was.
        step_(optimizer.iterations().value().item<int64_t>()),
        workers_(internal::Access::WorkersOf(optimizer)),
        update_([&](const Batch& batch) -> Batch {
          return Update(model, optimizer, batch);
        }),
        evaluator_(model, objective_, options.metrics, workers_) {}

  // One epoch, with reports by steps.
  Progress Run(Steps& steps) {
    Begin();
    for (Callback* c : options_.callbacks) c->OnEpochBegin(training_, 0);
    RunSteps(steps, /*most=*/0, /*report=*/true);
    if (!reported_) Report();
    if (!options_.callbacks.empty() || options_.validation != nullptr) {
      EndEpoch(0, /*report=*/false);
    }
    return End();
  }

  Progress Run(data::Iterator& batches) {
    OwnSteps steps(this, batches);
    return Run(steps);
  }

  // Epochs of so many steps each.
  Progress RunEpochs(Steps& steps, int64_t first) {
    Begin();
    const int64_t per_epoch = options_.steps_per_epoch;
    for (int64_t e = first; e < options_.epochs && !Done(); ++e) {
      // An epoch that a kill has cut goes on.
      const int64_t done = first == e && from_step_ ? step_ % per_epoch : 0;
      if (!Epoch(e, steps, per_epoch - done)) break;
    }
    return End();
  }
  Progress RunEpochs(data::Iterator& batches, int64_t first) {
    OwnSteps steps(this, batches);
    return RunEpochs(steps, first);
  }

  // Epochs of whole passes.
  Progress RunEpochs(const data::Dataset& batches) {
    Begin();
    for (int64_t e = options_.initial_epoch; e < options_.epochs && !Done();
         ++e) {
      data::Iterator pass(batches);
      OwnSteps steps(this, pass);
      if (!Epoch(e, steps, 0)) break;
    }
    return End();
  }

  // Of a coordinator, which run a step of this loop.
  StepsOfWorkers ByWorkers(const distribute::ClusterCoordinator& coordinator,
                           const distribute::PerWorkerDataset& batches) {
    return StepsOfWorkers(
        StepsOfWorkers::Step([this](const distribute::WorkerIterator& own) {
          const Batch batch = own.Next();
          objective_.Check(batch);
          return Update(training_.model, training_.optimizer, batch)[0];
        }),
        coordinator, batches);
  }

  void set_from_step() { from_step_ = true; }
  int64_t step() const { return step_; }

 private:
  // Steps that this process runs, each when it begins.
  class OwnSteps : public Steps {
   public:
    OwnSteps(FitLoop* loop, data::Iterator& batches)
        : loop_(*loop), batches_(batches) {}
    bool Begin() override {
      Batch batch;
      if (!batches_.Next(&batch)) return false;
      loop_.objective_.Check(batch);
      loop_.results_ = loop_.update_(batch);
      under_way_ = 1;
      return true;
    }
    Tensor End() override {
      under_way_ = 0;
      return loop_.results_[0];
    }

   private:
    FitLoop& loop_;
    data::Iterator& batches_;
  };

  bool AtEnd() const { return options_.steps > 0 && step_ >= options_.steps; }
  bool Done() const { return training_.stop || AtEnd(); }

  // A step, which is traced: the loss, and with other workers what the running
  // mean and the metrics hold of all.
  Batch Update(layers::Layer& model, Optimizer& optimizer, const Batch& batch) {
    const internal::NumberScope numbers(&numbers_);
    if (workers_ == nullptr) {
      // Summed in a variable: the loss of a step is read only when a report is
      // due, so steps need not wait for each other.
      const Tensor told = UpdateBy(model, optimizer, batch, /*replicas=*/1);
      mean_.Update(told);
      return {told};
    }
    const Tensor told = UpdateByReplicas(model, optimizer, batch);
    if (!std::exchange(mean_is_told_, true)) {
      for (const Variable& v : mean_.variables()) workers_->Tell(v);
    }
    // As Keras' mean does, which other workers may have.
    const Tensor rows =
        internal::Op("GatherV2", {internal::ShapeOf(batch[objective_.inputs]),
                                  internal::Int(0), internal::Int(0)});
    mean_.Update(told, internal::Cast(rows, told.dtype()));
    Batch results = {told};
    for (const Variable& v : Reported()) {
      results.push_back(workers_->Sum(v.value()));
    }
    return results;
  }

  // The step of a batch, one of those of so many replicas: its loss.
  Tensor UpdateBy(layers::Layer& model, Optimizer& optimizer,
                  const Batch& batch, int replicas) {
    GradientTape tape;
    const ForwardPass pass(model, batch, objective_, /*training=*/true);
    const TotalLoss loss = TotalLossOf(model, objective_, pass, replicas);
    // Asked for behind the forward pass: a model's first call makes its
    // weights.
    const std::vector<Variable> variables = model.trainable_variables();
    optimizer.Apply(tape.gradient(loss.minimized, variables), variables);
    UpdateAll(options_.metrics, pass);
    return loss.told;
  }

  // The same of this worker's part of a global batch: the mean of its replicas'
  // losses.
  Tensor UpdateByReplicas(layers::Layer& model, Optimizer& optimizer,
                          const Batch& batch) {
    const int own = workers_->replicas(), all = workers_->size() * own;
    if (own == 1) return UpdateBy(model, optimizer, batch, all);
    internal::ReplicaRun run(workers_);
    Batch told;
    for (const Batch& part : internal::SplitRows(batch, own)) {
      run.Begin(static_cast<int>(told.size()));
      told.push_back(UpdateBy(model, optimizer, part, all));
    }
    run.End();
    return SumOf(told) / internal::Number(told[0].dtype(), own);
  }

  // The variables of the running mean and the metrics.
  std::vector<Variable> Reported() const {
    std::vector<Variable> all = mean_.variables();
    for (const metrics::Metric* m : options_.metrics) {
      for (const Variable& v : m->variables()) all.push_back(v);
    }
    return all;
  }

  void Begin() {
    for (Callback* c : options_.callbacks) c->OnTrainBegin(training_);
  }

  Progress End() {
    if (!saved_) Save();
    for (Callback* c : options_.callbacks) c->OnTrainEnd(training_);
    if (options_.verbose && progress_.step > 0) std::printf("\n");
    // The last checkpoint may still be on its way to the disk: behind Fit it is
    // there.
    if (options_.manager) options_.manager->sync();
    return progress_;
  }

  // `most` steps (0: any number), or to the end of the data; how many.
  int64_t RunSteps(Steps& steps, int64_t most, bool report) {
    bool wanted = true;
    int64_t count = 0;
    while (wanted && !Done() && (most == 0 || count < most) && steps.Begin()) {
      ++step_;
      ++count;
      reported_ = saved_ = false;
      EndSteps(steps, steps.most_under_way());
      // The last step is reported and saved behind the loop.
      if (Done()) break;
      const bool reports = report && step_ % report_every_ == 0;
      const bool saves =
          options_.save_every > 0 && step_ % options_.save_every == 0;
      if (!reports && !saves) continue;
      EndSteps(steps, 0);
      if (reports) wanted = Report();
      if (saves) Save();
    }
    EndSteps(steps, 0);
    return count;
  }

  // Waits until no more than so many steps are under way.
  void EndSteps(Steps& steps, size_t most) {
    while (steps.under_way() > most) {
      const Tensor loss = steps.End();
      const int64_t step = step_ - static_cast<int64_t>(steps.under_way());
      for (Callback* c : options_.callbacks) {
        c->OnStepEnd(training_, step, loss);
      }
    }
  }

  // False when there was no data.
  bool Epoch(int64_t epoch, Steps& steps, int64_t most) {
    for (Callback* c : options_.callbacks) c->OnEpochBegin(training_, epoch);
    if (RunSteps(steps, most, /*report=*/false) == 0) return false;
    Collect();
    EndEpoch(epoch, /*report=*/true);
    // Where save_every is set, it alone says when.
    if (options_.save_every == 0) Save();
    return true;
  }

  // Takes the loss and the metrics since the last time.
  void Collect() {
    reported_ = true;
    if (results_.size() > 1) {  // of all workers
      const std::vector<Variable> variables = Reported();
      for (size_t i = 0; i < variables.size(); ++i) {
        variables[i].assign(results_[i + 1]);
      }
    }
    progress_ = {step_, options_.steps, mean_.result().item<float>(), {}};
    mean_.Reset();
    for (metrics::Metric* m : options_.metrics) {
      progress_.metrics.push_back(m->result().item<float>());
      m->Reset();
    }
  }

  void EndEpoch(int64_t epoch, bool report) {
    Logs logs = {{"loss", progress_.loss}};
    for (size_t i = 0; i < progress_.metrics.size(); ++i) {
      logs[options_.metrics[i]->name()] = progress_.metrics[i];
    }
    if (options_.validation != nullptr) {
      logs["val_loss"] = evaluator_.Run(*options_.validation);
      for (metrics::Metric* m : options_.metrics) {
        logs["val_" + m->name()] = m->result().item<float>();
        m->Reset();
      }
    }
    for (Callback* c : options_.callbacks) {
      c->OnEpochEnd(training_, epoch, &logs);
    }
    progress_.epoch = epoch;
    progress_.logs = logs;
    if (!report) return;
    std::string line = absl::StrCat("\nepoch ", epoch + 1, "/", options_.epochs,
                                    "  step ", step_);
    for (const auto& [name, value] : logs) Tell(&line, name, value);
    Publish(line);
    if (options_.on_report && !options_.on_report(progress_)) {
      training_.stop = true;
    }
  }

  void Tell(std::string* line, const std::string& name, double value) {
    char number[32];
    std::snprintf(number, sizeof number, " %.4g ", value);
    absl::StrAppend(line, "  ", name, number);
    if (options_.events) {
      options_.events->scalar(name, static_cast<float>(value), step_);
    }
  }

  void Publish(const std::string& line) {
    // So that who watches the file sees each report when it is made.
    if (options_.events) options_.events->flush();
    if (!options_.verbose) return;
    std::fputs(line.c_str(), stdout);
    std::fflush(stdout);
  }

  bool Report() {
    Collect();
    // Each report overwrites the one before it; epochs have lines of their own.
    std::string line = absl::StrCat("\rstep ", step_);
    if (options_.steps > 0) absl::StrAppend(&line, "/", options_.steps);
    Tell(&line, "loss", progress_.loss);
    for (size_t i = 0; i < options_.metrics.size(); ++i) {
      Tell(&line, options_.metrics[i]->name(), progress_.metrics[i]);
    }
    Publish(line);
    return !options_.on_report || options_.on_report(progress_);
  }

  void Save() {
    saved_ = true;
    if (options_.manager) {
      // The interval of a manager counts calls of save, Fit's save_every counts
      // steps: Fit has said when.
      options_.manager->save(options_.save_options, /*check_interval=*/false);
    }
  }

  const FitOptions& options_;
  const Objective objective_;
  Training training_;
  const int64_t report_every_;
  int64_t step_;
  bool from_step_ = false;               // the first epoch is the step's
  bool reported_ = true, saved_ = true;  // what the last step gave
  metrics::Mean mean_ = OwnMean();
  Progress progress_;
  const std::shared_ptr<internal::Workers> workers_;  // null: alone
  internal::KeptNumbers numbers_;                     // of the step
  bool mean_is_told_ = false;
  Batch results_;  // of the last step
  Function update_;
  Evaluator evaluator_;
};

void CheckOptions(const FitOptions& o) {
  for (const int64_t n : {o.steps, o.save_every, o.report_every, o.epochs,
                          o.steps_per_epoch, o.initial_epoch}) {
    if (n >= 0) continue;
    internal::Throw(ErrorCode::kInvalidArgument,
                    "Fit: numbers of steps and epochs are not negative");
  }
  if (o.epochs > 0 && o.report_every > 0) {
    internal::Throw(ErrorCode::kInvalidArgument,
                    "Fit: epochs are reported when they end, not by "
                    "report_every");
  }
  if (o.epochs == 0 && (o.steps_per_epoch > 0 || o.initial_epoch > 0)) {
    internal::Throw(ErrorCode::kInvalidArgument,
                    "Fit: steps_per_epoch and initial_epoch need epochs");
  }
}

}  // namespace

Progress Fit(layers::Layer& model, Optimizer& optimizer,
             const losses::Loss& loss, data::Iterator& batches,
             const FitOptions& options) {
  CheckOptions(options);
  FitLoop loop(model, optimizer, loss, options);
  if (options.epochs == 0) return loop.Run(batches);
  if (options.steps_per_epoch == 0 || options.initial_epoch > 0) {
    internal::Throw(ErrorCode::kInvalidArgument,
                    "Fit: epochs of an iterator need steps_per_epoch, and "
                    "begin where the steps are");
  }
  loop.set_from_step();
  return loop.RunEpochs(batches, loop.step() / options.steps_per_epoch);
}

Progress Fit(layers::Layer& model, Optimizer& optimizer,
             const losses::Loss& loss, const data::Dataset& batches,
             const FitOptions& options) {
  CheckOptions(options);
  FitLoop loop(model, optimizer, loss, options);
  if (options.epochs > 0 && options.steps_per_epoch == 0) {
    return loop.RunEpochs(batches);
  }
  data::Iterator iterator(batches);
  return options.epochs > 0 ? loop.RunEpochs(iterator, options.initial_epoch)
                            : loop.Run(iterator);
}

Progress Fit(layers::Layer& model, Optimizer& optimizer,
             const losses::Loss& loss,
             const distribute::ClusterCoordinator& coordinator,
             const distribute::PerWorkerDataset& batches,
             const FitOptions& options) {
  CheckOptions(options);
  const int64_t end =
      options.epochs > 0 ? options.steps_per_epoch : options.steps;
  if (end == 0) {
    internal::Throw(ErrorCode::kInvalidArgument,
                    "Fit: by a coordinator steps, or epochs with "
                    "steps_per_epoch, say when it ends");
  }
  if (internal::Access::WorkersOf(optimizer) != nullptr) {
    internal::Throw(ErrorCode::kInvalidArgument,
                    "Fit: an optimizer that sums gradients of all workers is "
                    "not for a coordinator's");
  }
  // The running mean lies on a server, as what workers change does.
  const distribute::ParameterServerStrategy::Scope scope(
      coordinator.strategy());
  FitLoop loop(model, optimizer, loss, options);
  StepsOfWorkers steps = loop.ByWorkers(coordinator, batches);
  return options.epochs > 0 ? loop.RunEpochs(steps, options.initial_epoch)
                            : loop.Run(steps);
}

float Evaluate(layers::Layer& model, const losses::Loss& loss,
               const data::Dataset& batches,
               const std::vector<metrics::Metric*>& metrics, int64_t inputs) {
  FitOptions options;
  options.inputs = inputs;
  options.metrics = metrics;
  return Evaluate(model, loss, batches, options);
}

float Evaluate(layers::Layer& model, const losses::Loss& loss,
               const data::Dataset& batches, const FitOptions& options) {
  return Evaluator(model, Objective(loss, options), options.metrics)
      .Run(batches);
}

}  // namespace headrace::tf::train
