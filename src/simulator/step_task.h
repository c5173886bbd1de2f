// A task of a simulated cluster that runs its parts of steps: nodes in the
// order of their inputs, values that cross by the worker's methods.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "distributed/partition.h"
#include "simulator/world.h"

namespace headrace::simulator {

// A part, as steps go through it.
struct PartPlan {
  struct Node {
    std::string name, op;
    int inputs = 0;            // that it waits for
    std::vector<int> readers;  // who wait for it
    int64_t bytes = 0;         // of what a _Send gives
    std::string key, from;     // of _Send and _Recv; the task that gives
  };
  std::string task;
  std::vector<Node> nodes;
  // By the task that gives: the _Recv nodes of it, where there are several.
  // They are asked for together when a step begins.
  std::map<std::string, std::vector<int>> together;
};
PartPlan PlanOf(const distributed::Part& part,
                const std::map<std::string, int64_t>& bytes);

class StepTask {
 public:
  // What a node does that takes time, or waits; it calls the function when it
  // is done. Nothing else: it is done at once.
  using Does =
      std::function<bool(const std::string& task, const PartPlan::Node& node,
                         int64_t step, std::function<void()> done)>;

  // An error, which ends the simulation, is told in *failure.
  StepTask(World& world, const std::string& task, Does does, Status* failure);

  Status Listen();
  // It answers nobody any more.
  void Stop() { listener_ = nullptr; }
  // Which RunGraph may name.
  int AddPlan(PartPlan plan) {
    plans_.push_back(std::move(plan));
    return static_cast<int>(plans_.size()) - 1;
  }
  // As its master: a step of these parts, each a task and the number of its
  // plan there.
  void RunStep(int64_t step,
               const std::vector<std::pair<std::string, int>>& parts,
               std::function<void()> done);

  static std::string AddressOf(const std::string& task);

 private:
  struct Run;
  struct Value {
    bool is_there = false;
    int64_t bytes = 0;
    std::function<void(int64_t bytes)> wanted;
  };
  using Key = std::pair<int64_t, std::string>;
  using Call = std::shared_ptr<distributed::ServerCall>;

  void RunPart(int plan, int64_t step, std::function<void()> done);
  void Begin(const std::shared_ptr<Run>& run, int node);
  void Done(const std::shared_ptr<Run>& run, int node);
  void Give(const Key& key, int64_t bytes);
  void Wait(const Key& key, std::function<void(int64_t bytes)> wanted);
  // A value by itself.
  void Receive(const PartPlan::Node& node, int64_t step,
               std::function<void()> done);
  void Pull(const PartPlan::Node& node, int64_t step,
            std::function<void()> done);
  // All these values of one task.
  void ReceiveTogether(const std::shared_ptr<Run>& run, const std::string& from,
                       const std::vector<int>& nodes);
  void Came(const std::shared_ptr<Run>& run, int node);
  void AnswerRun(const Call& call, const distributed::Bytes& request);
  void AnswerReceive(const Call& call, const distributed::Bytes& request);
  void AnswerPull(const Call& call, const distributed::Bytes& request);
  void AnswerPullMany(const Call& call, const distributed::Bytes& request);
  distributed::Channel& To(const std::string& task);
  // What the answer to a call is read by; an error ends the simulation.
  std::function<void(const distributed::Answer&)> Checked(
      std::function<void(const distributed::Answer&)> f);

  World& world_;
  const std::string task_;
  const Does does_;
  Status* const failure_;
  const std::unique_ptr<distributed::Transport> transport_;
  std::unique_ptr<distributed::Listener> listener_;
  std::map<std::string, std::shared_ptr<distributed::Channel>> channels_;
  std::vector<PartPlan> plans_;
  std::map<Key, Value> values_;
  std::set<std::string> large_;  // keys whose last value came in parts
};

}  // namespace headrace::simulator
