// train::Fit by a coordinator, beside that of one process.
#include <deque>
#include <filesystem>
#include <optional>

#include "cc/cluster/test_tasks.h"

namespace headrace::tf::distribute {
namespace {

#ifdef HR_GRPC_TESTS

// Two servers and some workers of this process.
struct TasksOfFit {
  explicit TasksOfFit(int num_workers) {
    std::vector<std::string> addresses;
    for (int i = 0; i < num_workers; ++i) addresses.push_back(FreeAddress());
    spec = {{"ps", {FreeAddress(), FreeAddress()}}, {"worker", addresses}};
    for (int i = 0; i < 2; ++i) all.emplace_back(spec, "ps", i);
    for (int i = 0; i < num_workers; ++i) all.emplace_back(spec, "worker", i);
  }
  ClusterSpec spec;
  std::deque<Server> all;
};

// y = 2 x + 1, in batches of 8, once.
data::Dataset LineOfFit() {
  std::vector<float> x, y;
  for (int i = 0; i < 40; ++i) {
    x.push_back(static_cast<float>(i) / 20 - 1);
    y.push_back(2 * x.back() + 1);
  }
  return data::Dataset::FromTensorSlices(
             {Tensor::From(x, {40, 1}), Tensor::From(y, {40, 1})})
      .Shuffle(40, 7)
      .Batch(8);
}

// What is trained, and what its callback is told.
struct TrainedByFit {
  TrainedByFit() { SetRandomSeed(5); }
  train::FitOptions Options() {
    return {.epochs = 3,
            .steps_per_epoch = 4,
            .metrics = {&error},
            .verbose = false,
            .validation = &validation,
            .callbacks = {&told}};
  }
  std::vector<std::vector<float>> Weights() {
    std::vector<std::vector<float>> all;
    for (const Variable& v : model.variables()) {
      all.push_back(v.value().vector<float>());
    }
    return all;
  }

  layers::Sequential model{layers::Dense(4, {.activation = "tanh"}),
                           layers::Dense(1)};
  Adam adam{0.05};
  losses::MeanSquaredError loss;
  metrics::MeanAbsoluteError error;
  const data::Dataset validation = LineOfFit();
  std::vector<std::pair<int64_t, float>> steps;
  std::vector<train::Logs> epochs;
  train::LambdaCallback told{
      {.on_epoch_end = [this](train::Training&, int64_t,
                              train::Logs* logs) { epochs.push_back(*logs); },
       .on_step_end =
           [this](train::Training&, int64_t step, const Tensor& loss) {
             steps.emplace_back(step, loss.item<float>());
           }}};
};

TEST(FitByACoordinator, OfOneWorkerIsAsOfOneProcess) {
  TrainedByFit alone;
  data::Iterator batches(LineOfFit().Repeat());
  const train::Progress end =
      train::Fit(alone.model, alone.adam, alone.loss, batches, alone.Options());

  const TasksOfFit tasks(1);
  const ParameterServerStrategy strategy(tasks.spec);
  const ClusterCoordinator coordinator(strategy);
  EXPECT_EQ(coordinator.strategy().num_workers(), 1);
  const ParameterServerStrategy::Scope scope(strategy);
  TrainedByFit made;
  const train::Progress found = train::Fit(
      made.model, made.adam, made.loss, coordinator,
      coordinator.CreatePerWorkerDataset(LineOfFit().Repeat()), made.Options());
  EXPECT_EQ(made.Weights(), alone.Weights());
  EXPECT_EQ(made.steps, alone.steps);
  ASSERT_EQ(made.epochs.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(made.epochs[i].size(), 4u);  // loss and metric, and val_ of each
    for (const auto& [name, value] : made.epochs[i]) {
      // Means whose parts lie on several tasks may differ in the last bits.
      EXPECT_NEAR(value, alone.epochs[i].at(name), 1e-6) << name;
    }
  }
  EXPECT_EQ(found.step, end.step);
  EXPECT_EQ(found.logs, made.epochs[2]);
  EXPECT_EQ(made.adam.iterations().value().item<int64_t>(), 12);
}

TEST(FitByACoordinator, StepsOfSeveralWorkers) {
  const TasksOfFit tasks(2);
  const ParameterServerStrategy strategy(tasks.spec);
  const ClusterCoordinator coordinator(strategy);
  const ParameterServerStrategy::Scope scope(strategy);
  TrainedByFit made;
  const PerWorkerDataset batches = coordinator.CreatePerWorkerDataset(
      [](int worker) { return LineOfFit().Shuffle(5, worker).Repeat(); });
  const std::string folder = testing::TempDir() + "fit_by_a_coordinator";
  std::filesystem::remove_all(folder);
  Checkpoint checkpoint({{"model", made.model}, {"optimizer", made.adam}});
  CheckpointManager manager(checkpoint, folder, {.max_to_keep = 2});
  std::vector<int64_t> reports;
  const auto fit = [&](int64_t steps) {
    return train::Fit(made.model, made.adam, made.loss, coordinator, batches,
                      {.steps = steps,
                       .manager = &manager,
                       .save_every = 20,
                       .report_every = 10,
                       .verbose = false,
                       .on_report =
                           [&](const train::Progress& p) {
                             // All steps until here have run.
                             EXPECT_EQ(
                                 made.adam.iterations().value().item<int64_t>(),
                                 p.step);
                             reports.push_back(p.step);
                             return true;
                           },
                       .callbacks = {&made.told}});
  };
  const float before = fit(10).loss;
  EXPECT_LT(fit(50).loss, before / 2);
  EXPECT_EQ(reports, (std::vector<int64_t>{10, 20, 30, 40, 50}));
  EXPECT_EQ(manager.checkpoints().size(), 2u);
  ASSERT_EQ(made.steps.size(), 50u);
  for (int64_t i = 0; i < 50; ++i) EXPECT_EQ(made.steps[i].first, i + 1);
}

TEST(FitByACoordinator, Ends) {
  const TasksOfFit tasks(1);
  const ParameterServerStrategy strategy(tasks.spec);
  const ClusterCoordinator coordinator(strategy);
  const PerWorkerDataset batches =
      coordinator.CreatePerWorkerDataset(LineOfFit().Repeat());
  TrainedByFit here;
  std::optional<ParameterServerStrategy::Scope> scope(strategy);
  TrainedByFit made;
  const auto fit = [&](TrainedByFit& what, const PerWorkerDataset& dataset,
                       const train::FitOptions& options) {
    return ErrorOfCall([&] {
      train::Fit(what.model, what.adam, what.loss, coordinator, dataset,
                 options);
    });
  };
  const auto code = [&](const train::FitOptions& options) {
    return fit(made, batches, options).code();
  };
  // Nobody says when it ends.
  EXPECT_EQ(code({}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({.epochs = 2}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({.steps = 5, .steps_per_epoch = 5}),
            ErrorCode::kInvalidArgument);
  // Elements do not fit.
  EXPECT_EQ(code({.steps = 5, .inputs = 3}), ErrorCode::kInvalidArgument);
  // The optimizer's numbers lie in this process.
  const Error e = fit(here, batches, {.steps = 5});
  EXPECT_TRUE(Says(e, "in the strategy's scope")) << e.what();
  // Data end, and what a callback throws: the coordinator is as before.
  const PerWorkerDataset once = coordinator.CreatePerWorkerDataset(LineOfFit());
  EXPECT_EQ(fit(made, once, {.steps = 9, .verbose = false}).code(),
            ErrorCode::kOutOfRange);
  EXPECT_TRUE(coordinator.Done());
  train::LambdaCallback throws(
      {.on_step_end = [](train::Training&, int64_t, const Tensor&) {
        throw Error(ErrorCode::kDataLoss, "mine");
      }});
  EXPECT_EQ(fit(made, batches,
                {.steps = 40, .verbose = false, .callbacks = {&throws}})
                .code(),
            ErrorCode::kDataLoss);
  EXPECT_TRUE(coordinator.Done());
  // A callback stops it; steps that were begun have run.
  const int64_t before = made.adam.iterations().value().item<int64_t>();
  train::LambdaCallback stops(
      {.on_step_end = [&](train::Training& t, int64_t step, const Tensor&) {
        t.stop = step == before + 2;
      }});
  const auto end = train::Fit(
      made.model, made.adam, made.loss, coordinator, batches,
      {.steps = before + 100, .verbose = false, .callbacks = {&stops}});
  EXPECT_GE(end.step, before + 2);
  EXPECT_LT(end.step, before + 20);
  EXPECT_EQ(made.adam.iterations().value().item<int64_t>(), end.step);
}

#endif  // HR_GRPC_TESTS

}  // namespace
}  // namespace headrace::tf::distribute
