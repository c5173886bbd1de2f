// The training loop: reports, checkpoints, and going on.
#include <filesystem>

#include "gtest/gtest.h"
#include "headrace/headrace.h"

namespace tf = headrace::tf;
namespace data = tf::data;
namespace layers = tf::layers;

namespace {

// y = 2 x + 1, in batches of an order that the seed gives.
data::Dataset Lines() {
  std::vector<float> x, y;
  for (int i = 0; i < 40; ++i) {
    x.push_back(static_cast<float>(i) / 20 - 1);
    y.push_back(2 * x.back() + 1);
  }
  return data::Dataset::FromTensorSlices(
             {tf::Tensor::From(x, {40, 1}), tf::Tensor::From(y, {40, 1})})
      .Shuffle(40, 7)
      .Repeat()
      .Batch(8);
}

// A program that trains to `steps`, and what it ends with.
std::vector<float> Trained(const std::string& folder, int64_t steps,
                           bool async = false) {
  layers::Sequential model(
      layers::Dense(4, {.activation = "tanh",
                        .kernel_initializer = tf::initializers::HeNormal(1)}),
      layers::Dense(1, {.kernel_initializer = tf::initializers::HeNormal(2)}));
  tf::Adam adam(0.05);
  data::Iterator batches(Lines());
  tf::Checkpoint checkpoint(
      {{"model", model}, {"optimizer", adam}, {"batches", batches}});
  tf::CheckpointManager manager(checkpoint, folder, {.max_to_keep = 2});
  manager.restore_or_initialize();
  tf::train::Fit(model, adam, tf::losses::MeanSquaredError(), batches,
                 {.steps = steps,
                  .manager = &manager,
                  .save_every = 5,
                  .save_options = {.enable_async = async},
                  .verbose = false});
  EXPECT_EQ(adam.iterations().value().item<int64_t>(), steps);
  std::vector<float> weights;
  for (const tf::Variable& v : model.variables()) {
    for (const float w : v.value().vector<float>()) weights.push_back(w);
  }
  return weights;
}

TEST(Fit, GoesOnAsIfNothingHadHappened) {
  const std::string folder = testing::TempDir() + "headrace_fit/";
  std::filesystem::remove_all(folder);
  const std::vector<float> whole = Trained(folder + "whole", 23);
  Trained(folder + "parts", 11);
  EXPECT_EQ(Trained(folder + "parts", 23), whole);
  Trained(folder + "parts", 23);  // nothing is left to do
  EXPECT_EQ(Trained(folder + "async", 23, /*async=*/true), whole);
  EXPECT_EQ(tf::Checkpoint::latest(folder + "whole")
                .substr((folder + "whole").size()),
            "/ckpt-5");
}

TEST(Fit, ReportsAndEnds) {
  layers::Dense model(1);
  tf::SGD sgd(0.1);
  tf::metrics::MeanAbsoluteError error;
  std::vector<int64_t> steps;
  const tf::losses::MeanSquaredError loss;
  const auto last =
      tf::train::Fit(model, sgd, loss, Lines(),
                     {.metrics = {&error},
                      .report_every = 4,
                      .verbose = false,
                      .on_report = [&](const tf::train::Progress& p) {
                        steps.push_back(p.step);
                        EXPECT_EQ(p.metrics.size(), 1u);
                        return p.step < 100;
                      }});
  EXPECT_EQ(last.step, 100);
  EXPECT_EQ(steps.size(), 25u);
  EXPECT_LT(last.loss, 0.05);
  EXPECT_LT(tf::train::Evaluate(model, loss, Lines().Take(5), {&error}), 0.05);
  EXPECT_GT(error.result().item<float>(), 0);
  // Data that ends, ends the training.
  EXPECT_EQ(
      tf::train::Fit(model, sgd, loss, Lines().Take(3), {.verbose = false})
          .step,
      103);
  EXPECT_THROW(tf::train::Fit(model, sgd, loss, data::Dataset::Range(3)),
               tf::Error);
}

}  // namespace
