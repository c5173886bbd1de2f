// A worker that trains a small network on scanned digits by the tasks of a
// cluster, in C++: it takes its place beside workers of cluster_digits.py or
// of its own kind. Which task it is, TF_CONFIG says.
//
//   cluster_digits ring [--replicas N]
//       weights on each worker, gradients summed; a worker's batches may be
//       divided among replicas
//   cluster_digits elastic
//       the same ring, whose workers may end and come back while others train
//   cluster_digits servers --graph F
//       each gradient as it comes, to the variables on parameter servers: F is
//       what `cluster_digits.py graph` wrote
//
// --steps N: in all, by servers those of all workers together (400);
// --data F: the digits; --weights F writes its weights there as a checkpoint.
// The last line is "trained N steps".
#include <headrace/headrace.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace tf = headrace::tf;
using tf::data::Dataset;
using tf::distribute::MultiWorkerMirroredStrategy;
using tf::distribute::ReduceOp;
using tf::distribute::TaskConfig;

constexpr int64_t kSeed = 17, kRows = 32, kRow = 65;
constexpr float kRate = 0.2f;

struct Arguments {
  std::string way, graph, weights, data = "examples/data/digits.bin";
  int64_t steps = 400;
  int replicas = 1;
};

// Batches of 64 pixels (0 to 1) and digits, without end: every so many rows
// are this worker's.
Dataset Batches(const std::string& path, int workers, int rank) {
  return Dataset::FixedLengthRecord({path}, kRow)
      .Shard(workers, rank)
      .Shuffle(2000, kSeed)
      .Repeat()
      .Batch(kRows)
      .Map([](const tf::Tensor& rows) {
        const tf::Tensor bytes = tf::DecodeRaw(rows, tf::DType::kUint8);
        const auto parts = tf::SplitV(bytes, tf::Tensor::From<int32_t>({64, 1}),
                                      tf::Tensor(1), 2);
        return tf::data::Element{
            tf::Cast(parts[0], tf::DType::kFloat32) / 16,
            tf::Cast(tf::Squeeze(parts[1], {.squeeze_dims = {1}}),
                     tf::DType::kInt32)};
      });
}

void Save(const std::string& path, tf::Module& weights) {
  if (path.empty()) return;
  tf::Checkpoint checkpoint({{"weights", weights}});
  checkpoint.write(path);
}

// The network's weights, in the order in which all workers make them.
struct Weights {
  Weights() {
    tf::SetRandomSeed(kSeed);
    const auto make = [&](const char* name, const tf::Tensor& value) {
      all.push_back(module.Track(name, tf::Variable(value, name)));
    };
    make("hidden_w", tf::initializers::RandomNormal(0, 0.125)({64, 48}));
    make("hidden_b", tf::initializers::Zeros()({48}));
    make("out_w", tf::initializers::RandomNormal(0, 0.125)({48, 10}));
    make("out_b", tf::initializers::Zeros()({10}));
  }

  tf::Gradients GradientsOf(const tf::data::Element& rows) const {
    tf::GradientTape tape;
    const tf::Tensor hidden =
        tf::Relu(tf::MatMul(rows[0], all[0].value()) + all[1].value());
    const tf::Tensor logits =
        tf::MatMul(hidden, all[2].value()) + all[3].value();
    const tf::Tensor loss =
        tf::Mean(tf::SparseSoftmaxCrossEntropyWithLogits(logits, rows[1]).loss,
                 tf::Tensor(0));
    return tape.gradient(loss, all);
  }

  // A step by the mean of all replicas' gradients.
  auto StepOf(const MultiWorkerMirroredStrategy& strategy) const {
    return tf::function([this, &strategy](const tf::Tensor& pixels,
                                          const tf::Tensor& digits) {
      const auto parts = strategy.Split({pixels, digits});
      const auto found = strategy.Run(
          [&](int replica) { return GradientsOf(parts[replica]); });
      tf::Gradients sums = found[0];
      for (size_t r = 1; r < found.size(); ++r) {
        for (size_t i = 0; i < all.size(); ++i) {
          sums[i] = sums[i].dense() + found[r][i].dense();
        }
      }
      const tf::Gradients means = strategy.AllReduce(ReduceOp::kMean, sums);
      for (size_t i = 0; i < all.size(); ++i) {
        all[i].assign_sub(means[i].dense() *
                          (kRate / static_cast<float>(strategy.replicas())));
      }
    });
  }

  tf::Module module;
  std::vector<tf::Variable> all;
};

int TrainInRing(const Arguments& arguments) {
  const MultiWorkerMirroredStrategy strategy({}, arguments.replicas);
  std::optional<Weights> weights;
  {
    // All begin with the first worker's values.
    const MultiWorkerMirroredStrategy::Scope scope(strategy);
    weights.emplace();
  }
  auto step = weights->StepOf(strategy);
  tf::data::Iterator batches(
      Batches(arguments.data, strategy.size(), strategy.rank()));
  tf::data::Element batch;
  for (int64_t i = 0; i < arguments.steps && batches.Next(&batch); ++i) {
    step(batch[0], batch[1]);
  }
  Save(arguments.weights, weights->module);
  std::printf("trained %lld steps\n", static_cast<long long>(arguments.steps));
  return 0;
}

int TrainElastic(const Arguments& arguments) {
  const tf::distribute::ElasticStrategy strategy(
      {.replicas = arguments.replicas});
  Weights weights;
  auto step = weights.StepOf(strategy);
  tf::distribute::ElasticState state(strategy, {{"weights", weights.module}});
  state.Run([&] {
    // Each generation of workers divides the rows among its own.
    tf::data::Iterator batches(
        Batches(arguments.data, strategy.size(), strategy.rank()));
    tf::data::Element batch;
    while (state.commits() < arguments.steps && batches.Next(&batch)) {
      step(batch[0], batch[1]);
      state.Commit();
    }
  });
  Save(arguments.weights, weights.module);
  std::printf("trained %lld steps, in generation %lld\n",
              static_cast<long long>(state.commits()),
              static_cast<long long>(state.generation()));
  return 0;
}

int TrainByServers(const Arguments& arguments) {
  const TaskConfig task = TaskConfig::FromEnvironment();
  const tf::distribute::Server server(task);
  std::ifstream file(arguments.graph, std::ios::binary);
  std::stringstream graph;
  graph << file.rdbuf();
  if (!file) {
    std::fprintf(stderr, "cluster_digits: cannot read the graph of %s\n",
                 arguments.graph.c_str());
    return 1;
  }
  // Other workers come and go as they like.
  const tf::distribute::Session session(
      server.target(), graph.str(),
      {.device_filters = {"/job:ps",
                          "/job:worker/task:" + std::to_string(task.index)}});
  const int workers = static_cast<int>(task.cluster.tasks("worker").size());
  tf::data::Iterator batches(Batches(arguments.data, workers, task.index));
  tf::data::Element batch;
  int64_t step = 0;
  // The first worker, of Python, initializes the variables.
  while (!session.Run({}, {"all_initialized"})[0].item<bool>()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  while (step < arguments.steps && batches.Next(&batch)) {
    session.Run({{"pixels", batch[0]}, {"digits", batch[1]}}, {}, {"update"});
    step = session.Run({}, {"step"})[0].item<int64_t>();
  }
  std::printf("trained %lld steps\n", static_cast<long long>(step));
  return 0;
}

int main(int argc, char** argv) {
  Arguments arguments;
  bool good = argc > 1;
  if (good) arguments.way = argv[1];
  for (int i = 2; good && i < argc; i += 2) {
    const std::string flag = argv[i];
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    good = !value.empty();
    if (flag == "--steps") {
      arguments.steps = std::atoll(value.c_str());
    } else if (flag == "--data") {
      arguments.data = value;
    } else if (flag == "--weights") {
      arguments.weights = value;
    } else if (flag == "--replicas") {
      arguments.replicas = std::atoi(value.c_str());
    } else if (flag == "--graph") {
      arguments.graph = value;
    } else {
      good = false;
    }
  }
  good = good && (arguments.way == "ring" || arguments.way == "elastic" ||
                  (arguments.way == "servers" && !arguments.graph.empty()));
  if (!good) {
    std::fprintf(stderr,
                 "usage: cluster_digits ring|elastic|servers [--graph FILE] "
                 "[--replicas N] [--steps N] [--data FILE] [--weights FILE]\n");
    return 2;
  }
  try {
    return arguments.way == "ring"      ? TrainInRing(arguments)
           : arguments.way == "elastic" ? TrainElastic(arguments)
                                        : TrainByServers(arguments);
  } catch (const tf::Error& e) {
    std::fprintf(stderr, "cluster_digits: %s\n", e.what());
    return 1;
  }
}
