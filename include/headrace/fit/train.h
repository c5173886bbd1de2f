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
//
// Or by epochs, with validation and callbacks:
//
//   tf::train::Fit(model, adam, loss, batches,
//                  {.epochs = 10, .metrics = {&accuracy}, .validation = &test,
//                   .callbacks = {&stopping}});
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "headrace/checkpoint.h"
#include "headrace/data.h"
#include "headrace/fit/callbacks.h"
#include "headrace/fit/losses.h"
#include "headrace/fit/metrics.h"
#include "headrace/fit/optimizer.h"
#include "headrace/layer/layers.h"

namespace headrace::tf::distribute {
class ClusterCoordinator;
class PerWorkerDataset;
}  // namespace headrace::tf::distribute

namespace headrace::tf::train {

// A report: what Fit returns, and what FitOptions::on_report gets.
struct Progress {
  int64_t step = 0;   // optimizer.iterations()
  int64_t steps = 0;  // the last one, 0 when that is not known
  float loss = 0;     // the mean since the last report
  // The metrics' results since then, in their order.
  std::vector<float> metrics;
  // Of an epoch's end: its number from 0, and all values by name, those of the
  // validation data too; else -1 and none.
  int64_t epoch = -1;
  Logs logs;
};

// Numbers are not negative, else kInvalidArgument; pointers are borrowed for
// the call.
struct FitOptions {
  // Steps in all, earlier runs' included; 0: to the end of the data.
  int64_t steps = 0;
  // Passes over a dataset, or, with steps_per_epoch, so many steps each, of
  // data that is gone along once. 0: one, whose reports come by steps. An
  // iterator's epochs need steps_per_epoch; its first one is that of the step.
  int64_t epochs = 0, steps_per_epoch = 0;
  // A dataset's first epoch: those before were done by an earlier run.
  int64_t initial_epoch = 0;
  // Components of elements that are the model's inputs; labels come behind.
  int64_t inputs = 1;
  // Of models with several outputs: the losses of the second output on.
  // Elements have as many labels as there are outputs, and the total is the sum
  // of the losses, each times its weight (1 where there are no weights).
  std::vector<const losses::Loss*> more_losses;
  std::vector<double> loss_weights;
  // How much a sample of each class counts, by the class' number: labels are
  // such numbers, or one value a class of which the greatest tells it. Times
  // the sample's weight, where elements have weights. Not for several outputs.
  std::vector<double> class_weights;
  // Shown beside the loss; they are reset after each report. Of the first
  // output.
  std::vector<metrics::Metric*> metrics;
  // Saves every so many steps and at the end; 0: after each epoch.
  CheckpointManager* manager = nullptr;
  int64_t save_every = 0;
  CheckpointOptions save_options;
  // A line on stdout, and scalars for TensorBoard, every so many steps (0: as
  // often as it saves, or every 50) and at the end. With epochs: after each,
  // and report_every must be 0.
  int64_t report_every = 0;
  bool verbose = true;
  EventFileWriter* events = nullptr;
  // Called with every report, before the checkpoint is saved; false ends the
  // training there.
  std::function<bool(const Progress&)> on_report;
  // Evaluated at the end of each epoch, with the metrics.
  const data::Dataset* validation = nullptr;
  // They must outlive the call.
  std::vector<Callback*> callbacks;
};

// Trains on what the iterator gives: elements of inputs and labels, and sample
// weights behind. The loss is the mean of `loss` and the model's losses()
// (penalties of weights); `loss` leaves out what the output's mask hides. The
// step is traced once for each shape of elements. Returns the last report.
// Throws what any part throws, also asynchronous saves; kInvalidArgument for
// other elements and options that do not go together.
HR_API Progress Fit(layers::Layer& model, Optimizer& optimizer,
                    const losses::Loss& loss, data::Iterator& batches,
                    const FitOptions& options = {});
// The same from the dataset's beginning.
HR_API Progress Fit(layers::Layer& model, Optimizer& optimizer,
                    const losses::Loss& loss, const data::Dataset& batches,
                    const FitOptions& options = {});
// The same by a coordinator (coordinator.h): workers run the steps, some of
// them ahead of others, each on what its own dataset gives. Model, optimizer
// and metrics were made in the scope of the coordinator's strategy. Callbacks
// are told of steps in the order in which they were scheduled, each when it has
// run, as are those behind it that run meanwhile (8 a worker): where one stops
// the training these have run, too. Reports, checkpoints and ends of epochs
// wait for all steps. Validation runs in this process. `steps`, or epochs with
// steps_per_epoch, are needed (kInvalidArgument), and datasets that end before
// throw kOutOfRange; epochs begin with initial_epoch. Steps run at least once.
// Throws what ClusterCoordinator does; behind any error no step runs any more.
HR_API Progress Fit(layers::Layer& model, Optimizer& optimizer,
                    const losses::Loss& loss,
                    const distribute::ClusterCoordinator& coordinator,
                    const distribute::PerWorkerDataset& batches,
                    const FitOptions& options = {});

// The mean loss over all elements, penalties of weights included, without
// training; batches count by the number of their labels. The metrics take them
// in and are neither reset before nor after. `inputs` as for Fit. 0 for a
// dataset without elements. Throws kInvalidArgument for elements that do not
// fit. As all here it is called by one thread at a time for one model.
HR_API float Evaluate(layers::Layer& model, const losses::Loss& loss,
                      const data::Dataset& batches,
                      const std::vector<metrics::Metric*>& metrics = {},
                      int64_t inputs = 1);
// The same of models with several outputs: inputs, losses and weights as in
// `options`, of which nothing else is looked at but the metrics.
HR_API float Evaluate(layers::Layer& model, const losses::Loss& loss,
                      const data::Dataset& batches, const FitOptions& options);

// What the model gives for all elements, one behind the other along the batch:
// a tensor for each output, in memory as a whole. Components of elements behind
// the inputs are not looked at. kInvalidArgument for a dataset without
// elements, for elements with fewer components and for `inputs` below 1.
HR_API std::vector<Tensor> PredictAll(layers::Layer& model,
                                      const data::Dataset& batches,
                                      int64_t inputs = 1);
// Of models with one output (kInvalidArgument for others).
HR_API Tensor Predict(layers::Layer& model, const data::Dataset& batches,
                      int64_t inputs = 1);
// Of the rows of a tensor, so many at a time: the size of a batch bounds memory
// and changes no value of layers that treat samples one by one. At least 1.
HR_API Tensor Predict(layers::Layer& model, const Tensor& x,
                      int64_t batch_size = 32);

}  // namespace headrace::tf::train
