// One step of a session: its parts on all tasks at the same time.
#pragma once

#include <list>
#include <string>
#include <utility>
#include <vector>

#include "base/cancellation.h"
#include "distributed/master/tasks.h"
#include "headrace/worker.pb.h"

namespace headrace::distributed {

struct StepPart {
  StepPart(const Task& t, const std::string& g) : task(&t), graph(g) {}

  const Task* task;
  std::string graph;                                     // its handle there
  std::vector<std::pair<std::string, Tensor>> feeds;     // by key
  std::vector<std::pair<std::string, Tensor*>> fetches;  // and where to
  // What the part of this process takes from it, which may come with its run,
  // and what it gives it before it waits, which may go with its run.
  ExpectedKeysPtr brings, given;
  tensorflow::StepStats stats;
  bool has_answered = false;  // the other task, before the step had an error
};

// For one thread.
class Step {
 public:
  Step(Worker& worker, const std::string& session, int64_t number)
      : worker_(worker), session_(session), number_(number) {}

  StepPart& Add(const Task& task, const std::string& graph) {
    return parts_.emplace_back(task, graph);
  }
  void Add(StepPart part) { parts_.push_back(std::move(part)); }

  // The part of this process' own worker runs on this thread. The first error,
  // which ends the other parts.
  Status Run();
  void TakeStats(tensorflow::StepStats* stats);

  bool trace = false, is_partial = false, is_last = false;

 private:
  class Given;
  // At once, or, where values go with it, when these are there, amid the part
  // of this process: then what waits for them.
  std::shared_ptr<Given> Begin(StepPart& part, Calls& calls);
  // By RunAndPull where values come (`taker`) or go with it; else both are
  // null.
  void Start(StepPart& part, const std::shared_ptr<ManyTaker>& taker,
             Given* given, Calls& calls);
  void StartAndTake(StepPart& part, const std::shared_ptr<ManyTaker>& taker,
                    RunAndPullRequest request, CallOptions options,
                    Calls& calls);
  // A deadline's error, with the tasks whose answers it did not wait for.
  Status NameSilent(const Status& s) const;
  Status RunHere(StepPart& part, const CancellationToken* token);

  Worker& worker_;
  const std::string session_;
  const int64_t number_;
  std::list<StepPart> parts_;
};

}  // namespace headrace::distributed
