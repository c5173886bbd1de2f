// A client of the data service: opens an iteration, and reads from all its
// tasks.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "data/dataset.h"
#include "distributed/channels.h"
#include "distributed/data_service/element_wire.h"
#include "headrace/data_service.pb.h"

namespace headrace::distributed::data_service {

struct ReaderOptions {
  std::string dispatcher;      // "host:port"
  ServiceIteration iteration;  // what is opened
  int64_t consumer = -1;       // of coordinated reads
  int64_t most_outstanding =
      -1;                   // elements asked for and not yet given; -1: 16
  bool local_only = false;  // tasks of this process' workers alone
  std::string trainer;      // of a shared cache
};

// Thread-safe. Answers come on the transport's threads; a thread of its own
// asks the dispatcher what tasks there are.
class Reader : public std::enable_shared_from_this<Reader> {
 public:
  static StatusOr<std::shared_ptr<Reader>> Open(
      ReaderOptions options, std::shared_ptr<Channels> channels);

  // The next element; waits as CheckStop allows, and as long as the dispatcher
  // can be reached. An error of the pipeline is one of this call, and the next
  // goes on behind it.
  Status Next(Element* out, bool* end);
  // Cancels what is under way, and tells the dispatcher. Waits for nobody.
  void Close();

 private:
  struct Task {
    ServiceTask what;
    bool asked = false;
    bool ended = false;
    Clock::time_point again;  // not before
  };

  struct Round {
    enum { kAsked, kAgain, kThere, kSkipped } state = kAsked;
    StatusOr<Element> element = Element();
    Clock::time_point again;
  };

  Reader(ReaderOptions options, std::shared_ptr<Channels> channels);
  void Beat();
  Status BeatOnce();
  void TakeNews(const ClientHeartbeatResponse& news);
  // Asks tasks for as many elements as there is room for. Calls are made
  // outside of the lock.
  void AskMore();
  bool ChooseTask(GetElementsRequest* request, std::string* address)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool FindRound(int64_t round, Task** task)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int64_t most() const;
  bool ChooseRound(GetElementsRequest* request, std::string* address)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Answered(int64_t number, const GetElementsRequest& request,
                const Answer& answer);
  // `task`: whose they are; null where it is gone.
  void Accept(Task* task, StatusOr<ReadElements> elements)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What a round that came, or did not, means for it.
  void AcceptRound(int64_t round, StatusOr<ReadElements> elements)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool TakeReady(StatusOr<Element>* out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool AtEnd() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool in_rounds() const { return options_.iteration.num_consumers() > 0; }

  const ReaderOptions options_;
  const std::shared_ptr<Channels> channels_;
  int64_t client_id_ = 0;
  CancellationToken token_;
  Mutex mutex_;
  CondVar changed_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  Status failed_ ABSL_GUARDED_BY(mutex_);  // the service did, not the pipeline
  std::map<int64_t, Task> tasks_ ABSL_GUARDED_BY(mutex_);
  int64_t last_asked_ ABSL_GUARDED_BY(mutex_) = 0;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  // Under way; null: about to be.
  std::map<int64_t, std::shared_ptr<ClientCall>> calls_ ABSL_GUARDED_BY(mutex_);
  int64_t next_call_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t outstanding_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<StatusOr<Element>> ready_ ABSL_GUARDED_BY(mutex_);
  // Of coordinated reads: those asked for, by number; which is given next,
  // which is asked for next, and where to stop.
  std::map<int64_t, Round> rounds_ ABSL_GUARDED_BY(mutex_);
  int64_t round_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t next_round_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t block_round_ ABSL_GUARDED_BY(mutex_) = -1;
};

}  // namespace headrace::distributed::data_service
