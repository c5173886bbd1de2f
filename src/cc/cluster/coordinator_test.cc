// A coordinator, servers of this process, and workers that are processes of
// their own where they die.
#include <chrono>
#include <thread>

#include "cc/cluster/test_tasks.h"

namespace headrace::tf::distribute {
namespace {

TEST(Partitioners, CountParts) {
  const auto parts = [](const Partitioner& p, const TensorShape& shape) {
    return p(shape, DType::kFloat32);
  };
  using List = std::vector<int64_t>;
  EXPECT_EQ(parts(partitioners::FixedShards(3), {7, 2}), (List{3, 1}));
  EXPECT_EQ(parts(partitioners::FixedShards(3), {2}), (List{2}));
  EXPECT_EQ(parts(partitioners::MinSize(8, 10), {9}), (List{5}));
  EXPECT_EQ(parts(partitioners::MinSize(8, 2), {9}), (List{2}));
  EXPECT_EQ(parts(partitioners::MaxSize(16), {9, 2}), (List{5, 1}));
  EXPECT_EQ(parts(partitioners::MaxSize(16, 2), {9, 2}), (List{2, 1}));
  EXPECT_EQ(ErrorOfCall([] { partitioners::FixedShards(0); }).code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(ErrorOfCall([] { partitioners::MinSize(0); }).code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(ErrorOfCall([] { partitioners::MaxSize(8, -1); }).code(),
            ErrorCode::kInvalidArgument);
}

TEST(ParameterServers, RefusesClustersAndTasks) {
  const auto error = [](const TaskConfig& task) {
    return ErrorOfCall([&] { ParameterServerStrategy{task}; });
  };
  const std::string a = FreeAddress(), b = FreeAddress(), c = FreeAddress();
  const ClusterSpec whole{{"ps", {a}}, {"worker", {b}}};
  const std::pair<TaskConfig, const char*> cases[] = {
      {{}, "no \"ps\""},
      {{.cluster = {{"ps", {a}}}}, "no \"worker\""},
      {{.cluster = whole, .job = "worker", .index = 0}, "worker:0"},
      {{.cluster = whole, .job = "ps", .index = 0}, "ps:0"},
      {{.cluster = {{"ps", {a}}, {"worker", {b}}, {"chief", {c, c}}}},
       "one chief"},
      {{.cluster = {{"ps", {"bad"}}, {"worker", {b}}}}, "\"bad\""},
  };
  for (const auto& [task, part] : cases) {
    const Error e = error(task);
    EXPECT_EQ(e.code(), ErrorCode::kInvalidArgument) << e.what();
    EXPECT_TRUE(Says(e, part)) << e.what();
  }
  // Nobody listens: servers are waited for, as long as was said.
  const Error e = ErrorOfCall(
      [&] { ParameterServerStrategy(whole, {.timeout_seconds = 0.3}); });
  EXPECT_TRUE(e.code() == ErrorCode::kUnavailable ||
              e.code() == ErrorCode::kDeadlineExceeded)
      << e.what();
}

#ifdef HR_GRPC_TESTS

// Two servers and two workers of this process.
struct Tasks {
  ClusterSpec spec{{"ps", {FreeAddress(), FreeAddress()}},
                   {"worker", {FreeAddress(), FreeAddress()}}};
  Server ps0{spec, "ps", 0}, ps1{spec, "ps", 1};
  Server worker0{spec, "worker", 0}, worker1{spec, "worker", 1};
};

// Elements (x, y) of a line, in batches of 4.
data::Dataset Line() {
  std::vector<float> xs, ys;
  for (int i = 0; i < 16; ++i) {
    xs.push_back(static_cast<float>(i) / 16);
    ys.push_back(2 * xs.back() - 1);
  }
  return data::Dataset::FromTensorSlices(
             {Tensor::From<float>(xs, {16, 1}),
              Tensor::From<float>(ys, {16, 1})})
      .Repeat()
      .Batch(4);
}

// A network and its optimizer, made where they are to lie.
struct Line2 {
  Line2() { SetRandomSeed(3); }
  layers::Sequential model{layers::Dense(4, {.activation = "tanh"}),
                           layers::Dense(1)};
  Adam adam{0.05};

  Tensor Train(const data::Element& batch) {
    GradientTape tape;
    const Tensor loss = Mean(Square(model(batch[0]) - batch[1]),
                             Tensor::From<int32_t>({0, 1}));
    const std::vector<Variable> all = model.trainable_variables();
    adam.Apply(tape.gradient(loss, all), all);
    return loss;
  }
};

TEST(ParameterServers, TrainsAsOneProcessDoes) {
  Line2 alone;
  auto step_alone = function(
      [&](const Tensor& x, const Tensor& y) { return alone.Train({x, y}); });
  data::Iterator batches(Line());
  data::Element batch;
  float loss_alone = 0;
  for (int i = 0; i < 20 && batches.Next(&batch); ++i) {
    loss_alone = step_alone(batch[0], batch[1]).item<float>();
  }

  const Tasks tasks;
  const ParameterServerStrategy strategy(tasks.spec);
  EXPECT_EQ(strategy.num_servers(), 2);
  EXPECT_EQ(strategy.num_workers(), 2);
  const ClusterCoordinator coordinator(strategy);
  const ParameterServerStrategy::Scope scope(strategy);
  Line2 made;
  auto step = function(
      [&](const Tensor& x, const Tensor& y) { return made.Train({x, y}); });
  data::Iterator again(Line());
  RemoteValue<Tensor> loss;
  for (int i = 0; i < 20 && again.Next(&batch); ++i) {
    loss = coordinator.Schedule(step, batch[0], batch[1]);
    coordinator.Join();  // one behind the other, as the process alone does
    EXPECT_TRUE(loss.IsSettled());
  }
  EXPECT_TRUE(coordinator.Done());
  EXPECT_EQ(loss.Fetch().item<float>(), loss_alone);
  const auto mine = made.model.variables(), other = alone.model.variables();
  ASSERT_EQ(mine.size(), 4u);
  for (size_t i = 0; i < mine.size(); ++i) {
    EXPECT_EQ(mine[i].value().vector<float>(), other[i].value().vector<float>())
        << i;
  }
}

#endif  // HR_GRPC_TESTS

}  // namespace
}  // namespace headrace::tf::distribute
