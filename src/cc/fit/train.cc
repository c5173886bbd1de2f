#include "headrace/train.h"

#include <cstdio>

#include "cc/compose.h"
#include "headrace/function.h"
#include "headrace/tape.h"

namespace headrace::tf::train {
namespace {

using Batch = std::vector<Tensor>;
constexpr int64_t kReportEvery = 50;

void CheckBatch(const Batch& batch) {
  if (batch.size() == 2 || batch.size() == 3) return;
  internal::Throw(ErrorCode::kInvalidArgument,
                  absl::StrCat("elements to train on have features and labels, "
                               "and may have weights; these have ",
                               batch.size(), " components"));
}

Tensor WeightsOf(const Batch& batch) {
  return batch.size() == 3 ? batch[2] : Tensor();
}

void UpdateAll(const std::vector<metrics::Metric*>& metrics, const Batch& batch,
               const Tensor& predicted) {
  for (metrics::Metric* m : metrics) {
    m->Update(batch[1], predicted, WeightsOf(batch));
  }
}

// What one call of Fit keeps.
class Loop {
 public:
  Loop(layers::Layer& model, Optimizer& optimizer, const losses::Loss& loss,
       const FitOptions& options)
      : optimizer_(optimizer),
        options_(options),
        report_every_(options.report_every > 0 ? options.report_every
                      : options.save_every > 0 ? options.save_every
                                               : kReportEvery),
        step_(optimizer.iterations().value().item<int64_t>()),
        update_([&](const Batch& batch) -> Batch {
          GradientTape tape;
          const Tensor predicted = model(batch[0], /*training=*/true);
          const Tensor value = loss(batch[1], predicted, WeightsOf(batch));
          const std::vector<Variable> variables = model.trainable_variables();
          optimizer.Apply(tape.gradient(value, variables), variables);
          UpdateAll(options_.metrics, batch, predicted);
          mean_.Update(value);
          return {value};
        }) {}

  Progress Run(data::Iterator& batches) {
    Batch batch;
    bool wanted = true;
    while (wanted && !AtEnd() && batches.Next(&batch)) {
      CheckBatch(batch);
      update_(batch);
      ++step_;
      reported_ = saved_ = false;
      // The last step is reported and saved behind the loop.
      if (AtEnd()) break;
      if (step_ % report_every_ == 0) wanted = Report();
      if (options_.save_every > 0 && step_ % options_.save_every == 0) Save();
    }
    if (!reported_) Report();
    if (!saved_) Save();
    if (options_.verbose && progress_.step > 0) std::printf("\n");
    if (options_.manager) options_.manager->sync();
    return progress_;
  }

 private:
  bool AtEnd() const { return options_.steps > 0 && step_ >= options_.steps; }

  bool Report() {
    reported_ = true;
    progress_ = {step_, options_.steps, mean_.result().item<float>(), {}};
    mean_.Reset();
    std::string line = absl::StrCat("\rstep ", step_);
    if (options_.steps > 0) absl::StrAppend(&line, "/", options_.steps);
    char number[32];
    std::snprintf(number, sizeof number, "  loss %.4f ", progress_.loss);
    line += number;
    if (options_.events) options_.events->scalar("loss", progress_.loss, step_);
    for (metrics::Metric* m : options_.metrics) {
      const float value = m->result().item<float>();
      m->Reset();
      progress_.metrics.push_back(value);
      std::snprintf(number, sizeof number, " %.4f ", value);
      absl::StrAppend(&line, " ", m->name(), number);
      if (options_.events) options_.events->scalar(m->name(), value, step_);
    }
    if (options_.events) options_.events->flush();
    if (options_.verbose) {
      std::fputs(line.c_str(), stdout);
      std::fflush(stdout);
    }
    return !options_.on_report || options_.on_report(progress_);
  }

  void Save() {
    saved_ = true;
    if (options_.manager) {
      options_.manager->save(options_.save_options, /*check_interval=*/false);
    }
  }

  Optimizer& optimizer_;
  const FitOptions& options_;
  const int64_t report_every_;
  int64_t step_;
  bool reported_ = true, saved_ = true;  // what the last step gave
  metrics::Mean mean_;
  Progress progress_;
  Function update_;
};

}  // namespace

Progress Fit(layers::Layer& model, Optimizer& optimizer,
             const losses::Loss& loss, data::Iterator& batches,
             const FitOptions& options) {
  if (options.steps < 0 || options.save_every < 0 || options.report_every < 0) {
    internal::Throw(ErrorCode::kInvalidArgument,
                    "Fit: steps, save_every and report_every are not negative");
  }
  return Loop(model, optimizer, loss, options).Run(batches);
}

Progress Fit(layers::Layer& model, Optimizer& optimizer,
             const losses::Loss& loss, const data::Dataset& batches,
             const FitOptions& options) {
  data::Iterator iterator(batches);
  return Fit(model, optimizer, loss, iterator, options);
}

float Evaluate(layers::Layer& model, const losses::Loss& loss,
               const data::Dataset& batches,
               const std::vector<metrics::Metric*>& metrics) {
  metrics::Mean mean;
  Function step([&](const Batch& batch) -> Batch {
    const Tensor predicted = model(batch[0]);
    const Tensor value = loss(batch[1], predicted, WeightsOf(batch));
    UpdateAll(metrics, batch, predicted);
    // Batches of other sizes count as they are large.
    mean.Update(
        value, internal::Cast(internal::Op("Size", {batch[1]}), value.dtype()));
    return {value};
  });
  for (const data::Element& batch : batches) {
    CheckBatch(batch);
    step(batch);
  }
  return mean.result().item<float>();
}

}  // namespace headrace::tf::train
