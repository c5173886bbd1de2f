#include "simulator/servers.h"

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <utility>

#include "simulator/step_task.h"
#include "simulator/sync_state.h"

namespace headrace::simulator {
namespace {

constexpr int kMostWorkers = 1 << 13, kMostServers = 1 << 10,
              kMostSteps = 1 << 20;
constexpr double kMostTime = 30 * 24 * 3600.0;

class Training {
 public:
  Training(World& world, const ServersRun& run)
      : world_(world),
        run_(run),
        state_(run.graph.servers, run.graph.workers, run.graph.wanted),
        random_(run.seed) {}

  ~Training() {
    ends_ = true;
    for (const auto& [name, task] : tasks_) task->Stop();
    world_.Drain();
  }

  Status Prepare() {
    masters_.resize(run_.graph.workers + 1);
    for (int w = 0; w <= run_.graph.workers; ++w) {
      // The last one is the chief's queue runner.
      const int worker = w < run_.graph.workers ? w : -1;
      HR_ASSIGN_OR_RETURN(const CutStep cut, CutSyncStep(run_.graph, worker));
      for (const distributed::Part& part : cut.parts) {
        const std::string task = part.task.ToString();
        HR_ASSIGN_OR_RETURN(StepTask * at, TaskOf(task));
        masters_[w].parts.emplace_back(task,
                                       at->AddPlan(PlanOf(part, cut.bytes)));
      }
      HR_ASSIGN_OR_RETURN(masters_[w].task, TaskOf(cut.task));
    }
    return OkStatus();
  }

  void Start() {
    // As the hook of the optimizer's chief gives out.
    state_.Enqueue(run_.graph.wanted);
    for (size_t i = 0; i < masters_.size(); ++i) Run(static_cast<int>(i));
  }
  bool over() const {
    return made_.size() >= static_cast<size_t>(run_.steps) || !failure_.ok();
  }
  const Status& failure() const { return failure_; }

  ServersTimes Times(Clock::time_point began) {
    ServersTimes times;
    times.first = Seconds(made_.front() - began);
    times.step = Seconds(made_.back() - made_[1]) /
                 static_cast<double>(made_.size() - 2);
    times.applied = state_.applied;
    times.dropped = state_.dropped;
    for (const auto& [name, task] : tasks_) {
      if (!name.starts_with("/job:ps")) continue;
      const auto& traffic = world_.links().Of(StepTask::AddressOf(name));
      times.server_link =
          std::max({times.server_link, traffic.out, traffic.in});
    }
    times.server_link /= Seconds(made_.back() - began);
    return times;
  }

 private:
  struct Master {
    StepTask* task = nullptr;
    std::vector<std::pair<std::string, int>> parts;
  };

  StatusOr<StepTask*> TaskOf(const std::string& name) {
    auto& task = tasks_[name];
    if (!task) {
      task = std::make_unique<StepTask>(
          world_, name,
          [this](const std::string& at, const PartPlan::Node& node,
                 int64_t step, std::function<void()> done) {
            return Does(at, node, step, std::move(done));
          },
          &failure_);
      HR_RETURN_IF_ERROR(task->Listen());
    }
    return task.get();
  }

  // Steps of one master follow each other.
  void Run(int master) {
    if (ends_) return;
    const int64_t step = next_step_++;
    owners_[step] = master;
    if (master < run_.graph.workers) {
      local_[step] = state_.LocalStep(master);
    }
    Master& m = masters_[master];
    m.task->RunStep(step, m.parts, [this, master, step] {
      owners_.erase(step);
      local_.erase(step);
      world_.loop().Soon([this, master] { Run(master); });
    });
  }

  bool Does(const std::string& at, const PartPlan::Node& node, int64_t step,
            std::function<void()> done) {
    const int owner = owners_.at(step);
    if (node.name == "forward") {
      world_.In(Compute(owner), std::move(done));
    } else if (node.op == "ResourceAccumulatorApplyGradient") {
      const int server = ServerOf(node);
      const double work = static_cast<double>(ShareOf(run_.graph, server)) *
                          world_.links().model().merge_work;
      world_.links().Work(
          StepTask::AddressOf(at), work,
          [this, server, local = local_.at(step), done = std::move(done)] {
            state_.Apply(server, local);
            done();
          });
    } else if (node.op == "ResourceAccumulatorTakeGradient") {
      state_.Take(ServerOf(node), run_.graph.wanted, std::move(done));
    } else if (node.op == "QueueDequeueV2") {
      state_.Dequeue(owner, std::move(done));
    } else if (node.op == "QueueEnqueueManyV2") {
      state_.Enqueue(run_.graph.workers);
      return false;
    } else if (node.op == "AssignAddVariableOp") {
      ++state_.steps;
      made_.push_back(world_.Now());
      return false;
    } else {
      return false;
    }
    return true;
  }

  static int ServerOf(const PartPlan::Node& node) {
    return std::stoi(node.name.substr(node.name.rfind('_') + 1));
  }
  double Compute(int worker) {
    std::uniform_real_distribution<double> vary(-run_.jitter, run_.jitter);
    const double slow = run_.slow.empty() ? 1 : run_.slow[worker];
    return run_.compute * slow * (1 + vary(random_));
  }

  World& world_;
  const ServersRun run_;
  SyncState state_;
  std::mt19937_64 random_;
  std::map<std::string, std::unique_ptr<StepTask>> tasks_;
  std::vector<Master> masters_;
  Status failure_;
  bool ends_ = false;
  int64_t next_step_ = 1;
  std::map<int64_t, int> owners_;        // of steps under way
  std::map<int64_t, int64_t> local_;     // the global step that each knows
  std::vector<Clock::time_point> made_;  // when each step was
};

Status CheckServers(const ServersRun& run) {
  const SyncGraphOptions& g = run.graph;
  if (g.workers < 1 || g.workers > kMostWorkers || g.servers < 1 ||
      g.servers > kMostServers) {
    return InvalidArgument(g.workers, " workers and ", g.servers,
                           " servers, of 1 to ", kMostWorkers, " and ",
                           kMostServers);
  }
  if (g.wanted < 1 || g.wanted > g.workers) {
    return InvalidArgument(g.wanted, " gradients of ", g.workers, " workers");
  }
  if (g.bytes < 4 * g.servers || g.bytes > int64_t{1} << 40) {
    return InvalidArgument("variables of ", g.bytes, " bytes");
  }
  if (run.steps < 3 || run.steps > kMostSteps || run.compute < 0 ||
      run.jitter < 0 || run.jitter > 1) {
    return InvalidArgument("steps, or their work, that cannot be");
  }
  if (!run.slow.empty() && run.slow.size() != static_cast<size_t>(g.workers)) {
    return InvalidArgument(run.slow.size(), " slow workers of ", g.workers);
  }
  return OkStatus();
}

}  // namespace

StatusOr<ServersTimes> SimulateServers(const LinkModel& link,
                                       const ServersRun& run) {
  HR_RETURN_IF_ERROR(CheckServers(run));
  HR_ASSIGN_OR_RETURN(const auto world, World::Make(link, run.seed));
  Training training(*world, run);
  HR_RETURN_IF_ERROR(training.Prepare());
  const Clock::time_point began = world->Now();
  training.Start();
  HR_RETURN_IF_ERROR(
      world->RunUntil([&] { return training.over(); }, kMostTime));
  HR_RETURN_IF_ERROR(training.failure());
  return training.Times(began);
}

}  // namespace headrace::simulator
