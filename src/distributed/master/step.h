// One step of a session: its parts on all tasks at the same time.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/cancellation.h"
#include "distributed/master/tasks.h"
#include "distributed/messages.h"
#include "distributed/worker/paused_run.h"
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

// It is written before it runs; when it has begun, it is a call under way.
class Step : public ClientCall, public std::enable_shared_from_this<Step> {
 public:
  Step(Worker& worker, const std::string& session, int64_t number)
      : worker_(worker), session_(session), number_(number) {}

  StepPart& Add(const Task& task, const std::string& graph) {
    return parts_.emplace_back(task, graph);
  }
  void Add(StepPart part) { parts_.push_back(std::move(part)); }

  // The part of this process' own worker runs on this thread, unless that may
  // pause. The first error, which ends the other parts.
  Status Run();
  // Whether it holds no thread while it waits, by Begin.
  bool MayBegin();
  // The same as Run: `ended` is called once, on whichever thread, perhaps at
  // once. Nothing is listened to but Cancel. The worker must live until then.
  void Begin(const Later& later, std::function<void(const Status&)> ended);
  void Cancel() override;
  void TakeStats(tensorflow::StepStats* stats);

  bool trace = false, is_partial = false, is_last = false;

 private:
  class Given;
  // Has all of it begin; the part of this process, if that does not pause, is
  // over then.
  void BeginAll(const Later& later);
  // At once, or, where values go with it, when these are there, amid the part
  // of this process.
  void Begin(StepPart& part);
  // By RunAndPull where values come (`taker`) or go with it; else both are
  // null.
  void Start(StepPart& part, const std::shared_ptr<ManyTaker>& taker,
             Given* given);
  void StartAndTake(StepPart& part, const std::shared_ptr<ManyTaker>& taker,
                    RunAndPullRequest request, CallOptions options);
  // A deadline's error, with the tasks whose answers it did not wait for.
  Status NameSilent(const Status& s) const;
  // The part of this process' own worker, null where there is none.
  StepPart* Own();
  GraphRun RunOf(StepPart& part) const;
  bool MayPause(const StepPart& own) const;
  Status RunHere(StepPart& part);
  void BeginHere(StepPart& part, const Later& later);
  // Behind it: what it says, and what it gave to others.
  Status EndOfOwn(StepPart& part, Status s, GraphRunResult result);

  Worker& worker_;
  const std::string session_;
  const int64_t number_;
  std::list<StepPart> parts_;
  bool own_pauses_ = false;
  std::vector<std::shared_ptr<Given>> given_;
  CancellationToken token_;  // of what runs here; outlives the calls
  Calls calls_;
};

}  // namespace headrace::distributed
