// Several replicas in a worker.
#include <functional>
#include <optional>

#include "cc/cluster/test_tasks.h"

namespace headrace::tf::distribute {
namespace {

void ExpectNear(const std::vector<Variable>& found,
                const std::vector<Variable>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) {
    const std::vector<float> a = found[i].value().vector<float>();
    const std::vector<float> b = wanted[i].value().vector<float>();
    ASSERT_EQ(a.size(), b.size());
    for (size_t k = 0; k < a.size(); ++k) EXPECT_NEAR(a[k], b[k], 1e-5) << i;
  }
}

data::Dataset Rows() {
  std::vector<float> x, y;
  for (int i = 0; i < 24; ++i) {
    x.push_back(static_cast<float>(i % 7) / 7 - 0.5f);
    if (i % 2 == 0) y.push_back(x.back() * 3);
  }
  return data::Dataset::FromTensorSlices(
      {Tensor::From<float>(x, {12, 2}), Tensor::From<float>(y, {12, 1})});
}

struct Net {
  Net() {
    SetRandomSeed(5);
    model.Build({4, 2});
  }
  layers::Sequential model{layers::Dense(4, {.activation = "tanh"}),
                           layers::Dense(1)};
  Adam adam{0.05};
};

TEST(Replicas, TrainAsOneProcessDoesByHand) {
  const MirroredStrategy strategy(3);
  EXPECT_EQ(strategy.replicas(), 3);
  EXPECT_EQ(strategy.num_replicas(), 3);
  EXPECT_EQ(strategy.size(), 1);
  Net alone;
  std::optional<MirroredStrategy::Scope> scope(strategy);
  Net shared;
  scope.reset();
  const auto loss_of = [](Net& net, const data::Element& rows, int replicas) {
    GradientTape tape;
    const Tensor error = net.model(rows[0]) - rows[1];
    const Tensor loss = Mean(error * error, Tensor::From<int32_t>({0, 1})) /
                        static_cast<float>(replicas);
    const auto variables = net.model.trainable_variables();
    net.adam.Apply(tape.gradient(loss, variables), variables);
    return loss;
  };
  auto step_alone = function([&](const Tensor& x, const Tensor& y) {
    return loss_of(alone, {x, y}, 1);
  });
  const auto by_replicas = [&](const Tensor& x, const Tensor& y) {
    const auto parts = strategy.Split({x, y});
    return strategy.Reduce(ReduceOp::kSum, strategy.Run([&](int r) {
      return loss_of(shared, parts[r], 3);
    }));
  };
  auto step = function(by_replicas);
  int turn = 0;
  for (const data::Element& e : Rows().Batch(6).Repeat(3)) {
    const float wanted = step_alone(e[0], e[1]).item<float>();
    // At once, and traced.
    const Tensor found =
        turn++ % 2 ? by_replicas(e[0], e[1]) : step(e[0], e[1]);
    EXPECT_NEAR(found.item<float>(), wanted, 1e-5);
  }
  EXPECT_EQ(shared.adam.iterations().value().item<int64_t>(), turn);
  ExpectNear(shared.model.variables(), alone.model.variables());
}

TEST(Replicas, TrainAsOneProcessDoesByFit) {
  Net alone;
  const MirroredStrategy strategy(2);
  std::optional<MirroredStrategy::Scope> scope(strategy);
  Net shared;
  metrics::MeanAbsoluteError error;
  scope.reset();
  metrics::MeanAbsoluteError error_alone;
  const losses::MeanSquaredError loss;
  const auto fit = [&](Net& net, metrics::Metric* metric) {
    return train::Fit(net.model, net.adam, loss, Rows().Batch(4),
                      {.epochs = 3, .metrics = {metric}, .verbose = false});
  };
  const train::Progress wanted = fit(alone, &error_alone);
  const train::Progress found = fit(shared, &error);
  EXPECT_EQ(found.step, wanted.step);
  EXPECT_NEAR(found.loss, wanted.loss, 1e-5);
  EXPECT_NEAR(found.metrics[0], wanted.metrics[0], 1e-5);
  ExpectNear(shared.model.variables(), alone.model.variables());
  // Batches that cannot be divided.
  const Error e = ErrorOfCall([&] {
    train::Fit(shared.model, shared.adam, loss, Rows().Batch(1),
               {.verbose = false});
  });
  EXPECT_EQ(e.code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(Says(e, "1 rows for 2 replicas")) << e.what();
}

TEST(Replicas, SumsOfSlicesAndParts) {
  const MirroredStrategy strategy(2);
  const MirroredStrategy::Scope scope(strategy);
  const Variable table(Fill(Tensor::From<int32_t>({4, 2}), Tensor(9.0f)));
  const Variable one(Tensor(1.0f)), two(Tensor(2.0f));
  SGD sgd(0.5), other(1);
  // Each replica has rows of its own, and row 1 is of both.
  strategy.Run([&](int r) {
    GradientTape tape;
    const Tensor rows =
        GatherV2(table, Tensor::From<int32_t>({1, 1 + r}), Tensor(0));
    // The first one alone uses `one`.
    Tensor loss = Sum(rows, Tensor::From<int32_t>({0, 1})) + two.value();
    if (r == 0) loss = loss * one.value();
    const std::vector<Variable> all = {table, one, two};
    sgd.Apply(tape.gradient(loss, all), all);
    // Nothing has changed yet.
    EXPECT_EQ(two.value().item<float>(), 2);
    other.Apply({Gradient(Tensor(0.25f))}, {two});
  });
  EXPECT_EQ(table.value().vector<float>(),
            (std::vector<float>{9, 9, 7.5, 7.5, 8.5, 8.5, 9, 9}));
  EXPECT_EQ(one.value().item<float>(), 1 - 0.5f * 38);
  EXPECT_EQ(two.value().item<float>(), 2 - 0.5f * 2 - 0.5f);
  EXPECT_EQ(sgd.iterations().value().item<int64_t>(), 1);

  const auto parts = strategy.Split({Tensor::From<float>({1, 2, 3, 4, 5})});
  EXPECT_EQ(parts[0][0].vector<float>(), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(parts[1][0].vector<float>(), (std::vector<float>{4, 5}));
  EXPECT_EQ(strategy.Reduce(ReduceOp::kMean, {Tensor(1.0f), Tensor(2.0f)})
                .item<float>(),
            1.5f);
}

TEST(Replicas, WhatIsRefused) {
  const MirroredStrategy strategy(2);
  const Variable v(Tensor(1.0f)), w(Tensor(1.0f));
  SGD outside(1);
  const MirroredStrategy::Scope scope(strategy);
  SGD sgd(1);
  const auto code_of = [&](const std::function<void(int)>& code) {
    return ErrorOfCall([&] { strategy.Run(code); }).code();
  };
  const Gradients g{Gradient(Tensor(1.0f))};
  EXPECT_EQ(code_of([&](int) { outside.Apply(g, {v}); }),
            ErrorCode::kFailedPrecondition);
  EXPECT_EQ(code_of([&](int) { strategy.Run([](int) {}); }),
            ErrorCode::kFailedPrecondition);
  EXPECT_EQ(
      code_of([&](int) { strategy.AllReduce(ReduceOp::kSum, Tensor(1.0f)); }),
      ErrorCode::kFailedPrecondition);
  EXPECT_EQ(code_of([&](int r) { sgd.Apply(g, {r == 0 ? v : w}); }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&](int r) {
              if (r == 0) sgd.Apply(g, {v});
            }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&](int r) {
              if (r == 1) sgd.Apply(g, {v});
            }),
            ErrorCode::kInvalidArgument);
  // What was left to the end is dropped, and later steps are as ever.
  EXPECT_EQ(v.value().item<float>(), 1);
  strategy.Run([&](int) { sgd.Apply(g, {v}); });
  EXPECT_EQ(v.value().item<float>(), -1);
  const auto code = [](auto act) { return ErrorOfCall(act).code(); };
  EXPECT_EQ(code([] { MirroredStrategy{0}; }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code([&] { strategy.Split({Tensor(1.0f)}); }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(code([&] {
              strategy.Split({Tensor::From<float>({1, 2}),
                              Tensor::From<float>({1, 2, 3})});
            }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(code([&] { strategy.Reduce(ReduceOp::kSum, {Tensor(1.0f)}); }),
            ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace headrace::tf::distribute
