// Rings whose workers come and go: processes that are killed and come back.
#include <chrono>
#include <fstream>
#include <optional>
#include <thread>

#include "cc/cluster/test_tasks.h"

namespace headrace::tf::distribute {
namespace {

constexpr int64_t kSteps = 40, kShards = 12, kWidth = 50;

// A worker's variables and what it does with them.
struct Ring {
  explicit Ring(const ElasticStrategy& of, float first)
      : strategy(of), scope(of) {
    module.emplace();
    weights = module->Track(
        "weights",
        Variable(Fill(Tensor::From<int32_t>({kWidth}), Tensor(first))));
    state.emplace(
        of, std::vector<Checkpoint::Part>{{"module", *module}, {"sgd", sgd}});
  }

  // The same sum of micro-shards in their order, whoever takes part.
  void Step() {
    const auto [first, behind] = state->Share(kShards);
    std::vector<Tensor> parts;
    for (int64_t i = first; i < behind; ++i) {
      parts.push_back(gradient(
          Tensor(static_cast<float>(state->commits() % 7 * kShards + i))));
    }
    update(Pack(parts));
  }

  const ElasticStrategy& strategy;
  SGD sgd{0.01, 0.9};  // not of the scope: it is given sums
  ElasticStrategy::Scope scope;
  std::optional<Module> module;
  Variable weights;
  std::optional<ElasticState> state;
  TracedFunction<Tensor(Tensor)> gradient{[this](const Tensor& row) {
    GradientTape tape;
    const Tensor error = Sin(weights.value() * row) - 0.5f;
    const Tensor loss = Mean(error * error, Tensor(0));
    const std::vector<Variable> all = {weights};
    return tape.gradient(loss, all)[0].dense();
  }};
  TracedFunction<void(Tensor)> update{[this](const Tensor& parts) {
    sgd.Apply(Gradients{Gradient(Sum(strategy.AllGather(parts), Tensor(0)))},
              {weights});
  }};
};

TEST(Elastic, OfOneWorker) {
  const ElasticStrategy strategy{TaskConfig()};
  Ring ring(strategy, 1);
  EXPECT_EQ(ring.state->generation(), 0);
  EXPECT_EQ(ring.state->members(),
            std::vector<std::string>{"/job:worker/replica:0/task:0"});
  EXPECT_EQ(ring.state->Share(5), (std::pair<int64_t, int64_t>(0, 5)));
  const int64_t found = ring.state->Run([&] {
    while (ring.state->commits() < 3) {
      ring.Step();
      ring.state->Commit();
    }
    return ring.state->commits();
  });
  EXPECT_EQ(found, 3);
  const auto code = [](auto act) { return ErrorOfCall(act).code(); };
  EXPECT_EQ(code([&] { ring.state->Share(-1); }), ErrorCode::kInvalidArgument);
  // Errors that are not of other workers are thrown.
  EXPECT_EQ(code([&] {
              ring.state->Run([] { throw Error(ErrorCode::kDataLoss, "x"); });
            }),
            ErrorCode::kDataLoss);
  EXPECT_EQ(code([] { ElasticStrategy(TaskConfig(), {.min_workers = 2}); }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(
      code([] { ElasticStrategy(TaskConfig(), {.timeout_seconds = -1}); }),
      ErrorCode::kInvalidArgument);
}

#ifdef HR_GRPC_TESTS

std::string FolderOfTest() { return std::getenv("ELASTIC_FOLDER"); }

// What a process of the ring does: each step is a line of its file.
TEST(ClusterChild, DISABLED_ComesAndGoes) {
  const TaskConfig task = TaskConfig::FromEnvironment();
  const ElasticStrategy strategy(task, {.timeout_seconds = 60});
  // Others than the first worker begin with other values, and take its.
  Ring ring(strategy, 1 + static_cast<float>(task.index));
  const std::string own =
      FolderOfTest() + "/worker-" + std::to_string(task.index);
  ring.state->Run([&] {
    while (ring.state->commits() < kSteps) {
      ring.Step();
      ring.state->Commit();
      std::ofstream(own, std::ios::app)
          << ring.state->members().size() << std::endl;
      // Time for those to come that are being started.
      const bool all = ring.state->members().size() == 3;
      std::this_thread::sleep_for(std::chrono::milliseconds(all ? 20 : 300));
    }
  });
  Checkpoint({{"module", *ring.module}}).write(own + "-last");
}

// Waits until a worker has made a step for which `wanted` holds.
void AwaitStep(int worker, const std::function<bool(int, int)>& wanted) {
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (std::chrono::steady_clock::now() < until) {
    std::ifstream file(FolderOfTest() + "/worker-" + std::to_string(worker));
    int members = 0, lines = 0;
    while (file >> members) {
      if (wanted(++lines, members)) return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  FAIL() << "worker " << worker << " is not as far";
}

TEST(Elastic, WorkersDieAndComeBack) {
  std::string folder = testing::TempDir() + "/elastic_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  setenv("ELASTIC_FOLDER", folder.c_str(), 1);
  const std::string cluster = R"(TF_CONFIG={"cluster": {"worker": [")" +
                              FreeAddress() + R"(", ")" + FreeAddress() +
                              R"(", ")" + FreeAddress() +
                              R"("]}, "task": {"type": "worker", "index": )";
  const auto start = [&](int index) {
    return OtherWorker("ComesAndGoes", cluster + std::to_string(index) + "}}");
  };
  OtherWorker zero = start(0), two = start(2);
  std::optional<OtherWorker> one(start(1));
  AwaitStep(0, [](int line, int) { return line >= 8; });
  one.reset();  // killed
  AwaitStep(0, [](int, int members) { return members == 2; });
  one.emplace(start(1));
  EXPECT_EQ(zero.Wait(), 0);
  EXPECT_EQ(one->Wait(), 0);
  EXPECT_EQ(two.Wait(), 0);
  // It took part again, and the weights are those of one process.
  AwaitStep(1, [](int line, int members) { return line > 8 && members == 3; });
  const ElasticStrategy alone{TaskConfig()};
  Ring calm(alone, 1);
  calm.state->Run([&] {
    while (calm.state->commits() < kSteps) {
      calm.Step();
      calm.state->Commit();
    }
  });
  for (int worker = 0; worker < 3; ++worker) {
    Module last;
    const Variable weights = last.Track(
        "weights",
        Variable(Fill(Tensor::From<int32_t>({kWidth}), Tensor(0.0f))));
    Checkpoint saved({{"module", last}});
    saved.restore(folder + "/worker-" + std::to_string(worker) + "-last");
    EXPECT_EQ(weights.value().vector<float>(),
              calm.weights.value().vector<float>())
        << worker;
  }
}

#endif  // HR_GRPC_TESTS

}  // namespace
}  // namespace headrace::tf::distribute
