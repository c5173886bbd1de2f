// One step of a session: its parts on all tasks at the same time.
#pragma once

#include <list>
#include <string>
#include <utility>
#include <vector>

#include "base/cancellation.h"
#include "distributed/master/tasks.h"

namespace headrace::distributed {

struct StepPart {
  StepPart(const Task& t, const std::string& g) : task(&t), graph(g) {}

  const Task* task;
  std::string graph;                                     // its handle there
  std::vector<std::pair<std::string, Tensor>> feeds;     // by key
  std::vector<std::pair<std::string, Tensor*>> fetches;  // and where to
  // What the part of this process takes from it, which may come with its run.
  ExpectedKeysPtr brings;
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
  void Start(StepPart& part, Calls& calls);
  // The same by RunAndPull.
  void StartAndTake(StepPart& part, std::shared_ptr<ManyTaker> taker,
                    tensorflow::RunGraphRequest request, CallOptions options,
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
