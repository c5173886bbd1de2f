// The coordinator of python/tests/distribute/test_with_cpp_workers.py, whose
// servers and workers are Python's:
//
//   coordinator alone|servers|table PREFIX
//
// alone, servers: trains a small network, in this process or by the cluster of
// TF_CONFIG, one step behind the other, writes its weights to the checkpoint
// PREFIX, and prints the last loss. table: restores a variable in three parts
// from PREFIX, doubles it and writes it to PREFIX-doubled.
#include <headrace/headrace.h>

#include <cstdio>
#include <string>

namespace tf = headrace::tf;
using tf::distribute::ClusterCoordinator;
using tf::distribute::ParameterServerStrategy;
using tf::distribute::WorkerIterator;

namespace {

constexpr int kSteps = 12;

// One batch again and again: it does not matter which worker takes it.
tf::data::Dataset Batches() {
  std::vector<float> x, y;
  for (int i = 0; i < 8; ++i) {
    x.push_back(0.125f * static_cast<float>(i));
    if (i % 2 == 0) y.push_back(0.25f * static_cast<float>(i) - 1);
  }
  return tf::data::Dataset::FromTensors({tf::Tensor::From<float>(x, {4, 2}),
                                         tf::Tensor::From<float>(y, {4, 1})})
      .Map([](const tf::Tensor& x, const tf::Tensor& y) {
        return tf::data::Element{x - 0.5f, y};
      })
      .Repeat();
}

struct Trained {
  Trained() {
    tf::SetRandomSeed(11);
    dense = std::make_unique<tf::layers::Sequential>(
        tf::layers::Dense(3, {.activation = "tanh"}), tf::layers::Dense(1));
  }
  tf::Tensor Step(const tf::data::Element& batch) {
    tf::GradientTape tape;
    const tf::Tensor error = (*dense)(batch[0]) - batch[1];
    const tf::Tensor loss =
        tf::Mean(error * error, tf::Tensor::From<int32_t>({0, 1}));
    const auto variables = dense->trainable_variables();
    adam.Apply(tape.gradient(loss, variables), variables);
    return loss;
  }
  std::unique_ptr<tf::layers::Sequential> dense;
  tf::Adam adam{0.1};
};

void Report(Trained& trained, float loss, const std::string& prefix) {
  tf::Checkpoint({{"module", *trained.dense}}).write(prefix);
  std::printf("%.9g\n", static_cast<double>(loss));
}

void TrainAlone(const std::string& prefix) {
  Trained trained;
  auto step = tf::function([&](const tf::Tensor& x, const tf::Tensor& y) {
    return trained.Step({x, y});
  });
  tf::data::Iterator batches(Batches());
  tf::data::Element batch;
  tf::Tensor loss;
  for (int i = 0; i < kSteps && batches.Next(&batch); ++i) {
    loss = step(batch[0], batch[1]);
  }
  Report(trained, loss.item<float>(), prefix);
}

void TrainByServers(const std::string& prefix) {
  const ParameterServerStrategy strategy;
  const ClusterCoordinator coordinator(strategy);
  const ParameterServerStrategy::Scope scope(strategy);
  Trained trained;
  auto step = tf::function([&](const WorkerIterator& batches) {
    return trained.Step(batches.Next());
  });
  const WorkerIterator batches =
      coordinator.CreatePerWorkerDataset(Batches()).Begin();
  tf::distribute::RemoteValue<tf::Tensor> loss;
  for (int i = 0; i < kSteps; ++i) {
    loss = coordinator.Schedule(step, batches);
    coordinator.Join();
  }
  Report(trained, loss.Fetch().item<float>(), prefix);
}

void DoubleATable(const std::string& prefix) {
  const ParameterServerStrategy strategy(
      {.variable_partitioner = tf::distribute::partitioners::FixedShards(3)});
  tf::distribute::ShardedVariable table = strategy.MakeSharded(
      tf::Fill(tf::Tensor::From<int32_t>({5, 2}), tf::Tensor(0.0f)), "table");
  tf::Checkpoint files({{"table", table}});
  // Others may have counted no saves.
  files.restore(prefix, /*partial=*/true);
  table.assign_add(table.value());
  files.write(prefix + "-doubled");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    const std::string way = argv[1];
    way == "alone"   ? TrainAlone(argv[2])
    : way == "table" ? DoubleATable(argv[2])
                     : TrainByServers(argv[2]);
  } catch (const tf::Error& e) {
    std::fprintf(stderr, "coordinator: %s\n", e.what());
    return 1;
  }
  return 0;
}
