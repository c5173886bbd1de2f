// Epochs, validation and callbacks of the training loop.
#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"
#include "headrace/headrace.h"

namespace tf = headrace::tf;
namespace data = tf::data;
namespace layers = tf::layers;
namespace train = tf::train;

namespace {

// y = 2 x, 5 batches of 8.
data::Dataset Lines() {
  std::vector<float> x, y;
  for (int i = 0; i < 40; ++i) {
    x.push_back(static_cast<float>(i) / 20 - 1);
    y.push_back(2 * x.back());
  }
  return data::Dataset::FromTensorSlices(
             {tf::Tensor::From(x, {40, 1}), tf::Tensor::From(y, {40, 1})})
      .Batch(8);
}

// Sets what the later callbacks watch.
struct Script : train::Callback {
  explicit Script(std::vector<double> v) : values(std::move(v)) {}
  void OnEpochEnd(train::Training& t, int64_t epoch,
                  train::Logs* logs) override {
    (*logs)["watched"] = values.at(epoch);
    rates.push_back(t.optimizer.learning_rate().value().item<float>());
    weights.push_back(t.model.variables()[0].value().item<float>());
  }
  std::vector<double> values;
  std::vector<float> rates, weights;
};

struct Trained {
  layers::Dense model{1};
  tf::SGD sgd{0.1};
  train::Progress Fit(const train::FitOptions& options) {
    return train::Fit(model, sgd, tf::losses::MeanSquaredError(), Lines(),
                      options);
  }
};

TEST(Epochs, AreCountedAndValidated) {
  Trained t;
  tf::metrics::MeanAbsoluteError error;
  const data::Dataset test = Lines().Take(2);
  std::vector<int64_t> epochs;
  const train::Progress last = t.Fit({.epochs = 3,
                                      .metrics = {&error},
                                      .verbose = false,
                                      .on_report =
                                          [&](const train::Progress& p) {
                                            epochs.push_back(p.epoch);
                                            return true;
                                          },
                                      .validation = &test});
  EXPECT_EQ(epochs, (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(last.step, 15);
  EXPECT_EQ(last.logs.size(), 4u);
  EXPECT_GT(last.logs.at("val_loss"), 0);
  EXPECT_EQ(last.logs.at("loss"), last.loss);
  EXPECT_EQ(last.logs.count("val_" + error.name()), 1u);
}

TEST(Epochs, OfSomeStepsGoOnWhereTheStepsAre) {
  Trained t;
  data::Iterator batches(Lines().Repeat());
  const tf::losses::MeanSquaredError loss;
  const train::FitOptions options = {
      .epochs = 2, .steps_per_epoch = 7, .verbose = false};
  train::Fit(t.model, t.sgd, loss, batches, {.steps = 10, .verbose = false});
  std::vector<int64_t> epochs;
  train::FitOptions more = options;
  more.on_report = [&](const train::Progress& p) {
    epochs.push_back(p.epoch);
    return true;
  };
  EXPECT_EQ(train::Fit(t.model, t.sgd, loss, batches, more).step, 14);
  EXPECT_EQ(epochs, (std::vector<int64_t>{1}));
  EXPECT_THROW(train::Fit(t.model, t.sgd, loss, batches, {.epochs = 2}),
               tf::Error);
  EXPECT_THROW(t.Fit({.epochs = 2, .report_every = 3}), tf::Error);
  EXPECT_THROW(t.Fit({.steps_per_epoch = 3}), tf::Error);
  EXPECT_THROW(t.Fit({.inputs = 0}), tf::Error);
  EXPECT_THROW(t.Fit({.inputs = 2}), tf::Error);
}

TEST(Callbacks, StopEarly) {
  Trained t;
  Script script({5, 4, 4.5, 4.2, 1});
  train::EarlyStopping stopping(
      {.monitor = "watched", .patience = 2, .restore_best_weights = true});
  const auto last =
      t.Fit({.epochs = 5, .verbose = false, .callbacks = {&script, &stopping}});
  EXPECT_EQ(last.epoch, 3);
  EXPECT_EQ(stopping.stopped_epoch(), 3);
  EXPECT_EQ(stopping.best_epoch(), 1);
  EXPECT_EQ(t.model.variables()[0].value().item<float>(), script.weights[1]);
  EXPECT_THROW(train::EarlyStopping({.mode = "most"}), tf::Error);
}

TEST(Callbacks, SetTheRate) {
  Trained t;
  Script script({5, 5, 5, 5, 5});
  train::ReduceLROnPlateau plateau(
      {.monitor = "watched", .factor = 0.5, .patience = 2, .min_lr = 0.04});
  t.Fit({.epochs = 5, .verbose = false, .callbacks = {&script, &plateau}});
  EXPECT_EQ(script.rates, (std::vector<float>{.1f, .1f, .1f, .05f, .05f}));
  EXPECT_EQ(t.sgd.learning_rate().value().item<float>(), 0.04f);
  train::LearningRateScheduler schedule(
      [](int64_t epoch, double rate) { return epoch == 0 ? 1.0 : rate / 2; });
  Script again({0, 0, 0});
  const auto last =
      t.Fit({.epochs = 3, .verbose = false, .callbacks = {&again, &schedule}});
  EXPECT_EQ(again.rates, (std::vector<float>{1, .5f, .25f}));
  EXPECT_EQ(last.logs.at("lr"), 0.25);
  EXPECT_THROW(train::ReduceLROnPlateau({.factor = 1}), tf::Error);
  EXPECT_THROW(train::LearningRateScheduler(nullptr), tf::Error);
}

TEST(Callbacks, KeepRecords) {
  const std::string folder = testing::TempDir() + "headrace_callbacks/";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  Trained t;
  Script script({3, 4, 2});
  tf::Checkpoint checkpoint({{"model", t.model}});
  train::ModelCheckpoint best(checkpoint, folder + "best-{epoch}",
                              {.monitor = "watched", .save_best_only = true});
  train::CSVLogger log(folder + "log.csv");
  t.Fit({.epochs = 3, .verbose = false, .callbacks = {&script, &best, &log}});
  EXPECT_TRUE(std::filesystem::exists(folder + "best-1.index"));
  EXPECT_FALSE(std::filesystem::exists(folder + "best-2.index"));
  EXPECT_TRUE(std::filesystem::exists(folder + "best-3.index"));
  std::ifstream file(folder + "log.csv");
  std::string line;
  std::getline(file, line);
  EXPECT_EQ(line, "epoch,loss,watched");
  int count = 0;
  while (std::getline(file, line)) ++count;
  EXPECT_EQ(count, 3);
  train::CSVLogger nowhere(folder + "missing/log.csv");
  EXPECT_THROW(t.Fit({.epochs = 1, .verbose = false, .callbacks = {&nowhere}}),
               tf::Error);
}

TEST(Callbacks, EndWhatHasNoNumbers) {
  Trained t;
  t.sgd.learning_rate().assign(tf::Tensor(1e30f));
  train::TerminateOnNaN watch;
  EXPECT_LT(t.Fit({.epochs = 3, .verbose = false, .callbacks = {&watch}}).step,
            15);
}

}  // namespace
