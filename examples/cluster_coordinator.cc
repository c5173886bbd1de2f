// Trains a small network on scanned digits by parameter servers and workers
// that do what a coordinator schedules, in C++. TF_CONFIG says which task this
// process is:
//
//   "ps", "worker"   serves until it is ended
//   "chief", or none is the coordinator
//
// Servers and workers may as well be Python's
// (tf.distribute.Server(...).join()) or started by `headrace run`.
//
// --steps N: that are scheduled (400); --epochs N: train::Fit has them
// scheduled instead, in so many epochs; --data F: the digits; --weights F
// writes the weights there as a checkpoint. The last line is "test accuracy:
// 0.9xx".
#include <headrace/headrace.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace tf = headrace::tf;
using tf::data::Dataset;
using tf::distribute::ClusterCoordinator;
using tf::distribute::ParameterServerStrategy;
using tf::distribute::TaskConfig;
using tf::distribute::WorkerIterator;

constexpr int64_t kSeed = 17, kRows = 32, kRow = 65;
constexpr float kRate = 0.2f;

// Pixels, 0 to 1, and digits of rows; every fifth row is for tests.
Dataset Digits(const std::string& path, bool for_tests, int64_t rows) {
  return Dataset::FixedLengthRecord({path}, kRow)
      .Enumerate()
      .Filter([=](const tf::Tensor& number, const tf::Tensor&) {
        const tf::Tensor fifth =
            tf::Equal(tf::FloorMod(number, tf::Tensor(int64_t{5})),
                      tf::Tensor(int64_t{4}));
        return for_tests ? fifth : tf::LogicalNot(fifth);
      })
      .Map([](const tf::Tensor&, const tf::Tensor& row) {
        return tf::data::Element{row};
      })
      .Batch(rows)
      .Map([](const tf::Tensor& some) {
        const auto parts =
            tf::SplitV(tf::DecodeRaw(some, tf::DType::kUint8),
                       tf::Tensor::From<int32_t>({64, 1}), tf::Tensor(1), 2);
        return tf::data::Element{
            tf::Cast(parts[0], tf::DType::kFloat32) / 16,
            tf::Cast(tf::Squeeze(parts[1], {.squeeze_dims = {1}}),
                     tf::DType::kInt32)};
      });
}

double TestAccuracy(tf::layers::Sequential& model, const std::string& data) {
  double right = 0, all = 0;
  for (const tf::data::Element& e : Digits(data, /*for_tests=*/true, 10000)) {
    const tf::Tensor found = tf::ArgMax(model(e[0]), tf::Tensor(1));
    const std::vector<int64_t> digits = found.vector<int64_t>();
    const std::vector<int32_t> wanted = e[1].vector<int32_t>();
    for (size_t i = 0; i < digits.size(); ++i) right += digits[i] == wanted[i];
    all += static_cast<double>(digits.size());
  }
  return right / all;
}

void Coordinate(const TaskConfig& task, const std::string& data, int64_t steps,
                int64_t epochs, const std::string& weights) {
  const ParameterServerStrategy strategy(task);
  const ClusterCoordinator coordinator(strategy);
  const ParameterServerStrategy::Scope scope(strategy);
  tf::SetRandomSeed(kSeed);
  tf::layers::Sequential model(tf::layers::Dense(48, {.activation = "relu"}),
                               tf::layers::Dense(10));
  tf::SGD sgd(kRate);
  // Each gradient is applied as it comes.
  auto step = tf::function([&](const WorkerIterator& batches) {
    const tf::data::Element batch = batches.Next();
    tf::GradientTape tape;
    const tf::Tensor loss = tf::Mean(
        tf::SparseSoftmaxCrossEntropyWithLogits(model(batch[0]), batch[1]).loss,
        tf::Tensor(0));
    const auto variables = model.trainable_variables();
    sgd.Apply(tape.gradient(loss, variables), variables);
    return loss;
  });
  // Each worker goes along the digits in an order of its own.
  const auto digits = coordinator.CreatePerWorkerDataset([&](int worker) {
    return Digits(data, /*for_tests=*/false, kRows)
        .Shuffle(100, kSeed + worker)
        .Repeat();
  });
  if (epochs > 0) {
    tf::metrics::SparseCategoricalAccuracy accuracy;
    tf::train::Fit(
        model, sgd,
        tf::losses::SparseCategoricalCrossentropy({.from_logits = true}),
        coordinator, digits,
        {.epochs = epochs,
         .steps_per_epoch = steps / epochs,
         .metrics = {&accuracy}});
  } else {
    const WorkerIterator batches = digits.Begin();
    tf::distribute::RemoteValue<tf::Tensor> loss;
    for (int64_t i = 0; i < steps; ++i) {
      loss = coordinator.Schedule(step, batches);
    }
    coordinator.Join();
    std::printf("the last loss: %.3f\n",
                static_cast<double>(loss.Fetch().item<float>()));
  }
  if (!weights.empty()) tf::Checkpoint({{"model", model}}).write(weights);
  std::printf("test accuracy: %.4f\n", TestAccuracy(model, data));
}

int main(int argc, char** argv) {
  std::string data = "examples/data/digits.bin", weights;
  int64_t steps = 400, epochs = 0;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i], value = argv[i + 1];
    if (flag == "--steps") steps = std::atoll(value.c_str());
    if (flag == "--epochs") epochs = std::atoll(value.c_str());
    if (flag == "--data") data = value;
    if (flag == "--weights") weights = value;
  }
  try {
    const TaskConfig task = TaskConfig::FromEnvironment();
    if (task.job == "ps" || task.job == "worker") {
      tf::distribute::Server(task).Join();
    } else {
      Coordinate(task, data, steps, epochs, weights);
    }
  } catch (const tf::Error& e) {
    std::fprintf(stderr, "cluster_coordinator: %s\n", e.what());
    return 1;
  }
  return 0;
}
