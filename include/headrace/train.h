// A plain training loop:
//
//   tf::CheckpointManager manager(checkpoint, folder, {.max_to_keep = 3});
//   manager.restore_or_initialize();
//   tf::train::Fit(model, adam, loss, batches,
//                  {.steps = 1000, .manager = &manager, .save_every = 50});
//
// Killed at any moment and started again, it goes on at the newest checkpoint,
// and when that holds the model, the optimizer and the iterator, it ends as if
// nothing had happened, bit for bit.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "headrace/checkpoint.h"
#include "headrace/data.h"
#include "headrace/layers.h"
#include "headrace/losses.h"
#include "headrace/metrics.h"
#include "headrace/optimizer.h"

namespace headrace::tf::train {

struct Progress {
  int64_t step = 0;   // optimizer.iterations()
  int64_t steps = 0;  // the last one, 0 when that is not known
  float loss = 0;     // the mean since the last report
  // The metrics' results since then, in their order.
  std::vector<float> metrics;
};

struct FitOptions {
  // Steps in all, earlier runs' included; 0: to the end of the data.
  int64_t steps = 0;
  // Shown beside the loss; they are reset after each report.
  std::vector<metrics::Metric*> metrics;
  // Saves every so many steps and at the end; 0: at the end alone.
  CheckpointManager* manager = nullptr;
  int64_t save_every = 0;
  CheckpointOptions save_options;
  // A line on stdout, and scalars for TensorBoard, every so many steps (0: as
  // often as it saves, or every 50) and at the end.
  int64_t report_every = 0;
  bool verbose = true;
  EventFileWriter* events = nullptr;
  // Called with every report, before the checkpoint is saved; false ends the
  // training there.
  std::function<bool(const Progress&)> on_report;
};

// Trains on what the iterator gives: elements of features and labels, and
// sample weights if there are three. The step is traced once for each shape of
// elements. Returns the last report. Throws what any part throws, also
// asynchronous saves; kInvalidArgument for other elements.
HR_API Progress Fit(layers::Layer& model, Optimizer& optimizer,
                    const losses::Loss& loss, data::Iterator& batches,
                    const FitOptions& options = {});
// The same from the dataset's beginning.
HR_API Progress Fit(layers::Layer& model, Optimizer& optimizer,
                    const losses::Loss& loss, const data::Dataset& batches,
                    const FitOptions& options = {});

// The mean loss over all elements, without training; the metrics take them in.
HR_API float Evaluate(layers::Layer& model, const losses::Loss& loss,
                      const data::Dataset& batches,
                      const std::vector<metrics::Metric*>& metrics = {});

}  // namespace headrace::tf::train
