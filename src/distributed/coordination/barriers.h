// Places where tasks wait until all have come, as TensorFlow's coordination
// service has them. A barrier has a name, and is met at again and again: each
// time by the next number of its counter.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "distributed/coordination/task_id.h"
#include "distributed/event_loop.h"
#include "distributed/transport.h"

namespace headrace::distributed {

struct BarrierLimits {
  // Barriers that are remembered; those that ended first are forgotten first.
  size_t barriers = 4096;
  size_t waiting = 65536;  // calls at all of them
  size_t name = 1024;      // bytes of one
  // Longer deadlines than this are taken for it, as sums of time have an end.
  std::chrono::hours longest{24 * 365};
};

// Thread-safe. Who waits takes no thread; all deadlines together take one, from
// the first barrier on. Calls are answered behind the lock.
class Barriers : public std::enable_shared_from_this<Barriers> {
 public:
  using MakeLoop = std::function<StatusOr<std::unique_ptr<EventLoop>>()>;

  // `tasks`: who may come.
  Barriers(const std::set<TaskId>& tasks, MakeLoop make_loop,
           BarrierLimits limits = {})
      : limits_(limits),
        tasks_(tasks.begin(), tasks.end()),
        make_loop_(std::move(make_loop)) {}

  // By path; null services give the paths alone.
  static std::map<std::string, Method> Methods(std::shared_ptr<Barriers> b);

  // Barriers at which the task is awaited end with an error, now and until it
  // is back; or, where it left by its own will, those of now.
  void Failed(const TaskId& task, const Status& why, Ending* then);
  void Left(const TaskId& task, Ending* then);
  void Back(const TaskId& task);
  // Who waits gets the error, and who would wait from now on.
  void Stop(const Status& why);

 private:
  using Call = std::shared_ptr<ServerCall>;
  // Tasks by their places in tasks_, in order.
  using Places = std::vector<int>;
  struct Barrier {
    // Null where it was cancelled before anybody came.
    std::shared_ptr<const Places> tasks;
    int64_t counter = 0;
    bool over = false;
    Status result;             // where it is over
    std::set<int> reached;     // who has come, though the caller may be gone
    std::map<int, Call> held;  // who waits
    int first = -1;            // who came first
    EventLoop::Event deadline;
    std::list<std::string>::iterator ended;  // its place in ended_, if over
  };
  using At = std::map<std::string, Barrier>::iterator;

  Status CheckName(const std::string& name) const;
  // The place of a task; -1 for a stranger.
  int PlaceOf(const TaskId& task) const;
  // Those that a request names, all where it names none. Null where one is
  // named twice.
  StatusOr<std::shared_ptr<const Places>> PlacesOf(
      const tensorflow::BarrierRequest& request) const;
  Status Joined(const tensorflow::BarrierRequest& request, const Call& call,
                Ending* then) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StatusOr<At> FindOrMake(const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What is wrong with the request at this barrier.
  Status Check(const tensorflow::BarrierRequest& request, const Barrier& b,
               int source, const std::shared_ptr<const Places>& tasks) const;
  void Begin(At at, std::chrono::milliseconds patience)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(At at, const Status& result, Ending* then)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndAllWith(int place, const std::string& why, Ending* then)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Late(const std::string& name, int64_t counter);

  void Reach(const tensorflow::BarrierRequest& request, const Call& call);
  Status Cancel(const tensorflow::CancelBarrierRequest& request);
  void Drop(const std::string& name, int place, const Call& gone);

  const BarrierLimits limits_;
  const std::vector<TaskId> tasks_;  // sorted
  const MakeLoop make_loop_;
  Mutex mutex_;
  std::unique_ptr<EventLoop> loop_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Barrier> barriers_ ABSL_GUARDED_BY(mutex_);
  std::list<std::string> ended_ ABSL_GUARDED_BY(mutex_);  // the oldest first
  size_t held_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<int, Status> failed_ ABSL_GUARDED_BY(mutex_);
  Status stopped_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace headrace::distributed
