// PullTensors, between tasks of ours: a step asks another task once for all
// that it takes from there, and gets what is there as it comes, many tensors a
// message. A thousand small variables cost one call, where RecvTensor needs a
// thousand.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "distributed/transport.h"
#include "distributed/worker/pull.h"
#include "distributed/worker/steps.h"
#include "distributed/worker/worker.h"
#include "headrace/worker.pb.h"

namespace headrace::distributed {

// The tensors of one call on their way here. Parts come one by one, and the end
// behind them.
class ManyTaker : public std::enable_shared_from_this<ManyTaker> {
 public:
  using Done = std::function<void(size_t key, StatusOr<SentValue>)>;
  // Those at these places among the keys; large ones are asked for by calls of
  // their own, by `channel`.
  ManyTaker(std::shared_ptr<Channel> channel, int64_t step,
            ExpectedKeysPtr expected, std::vector<size_t> places,
            std::shared_ptr<LargeValues> large, Done done);

  std::vector<std::string> keys() const;
  // A part, or why it is none: then no further one may come.
  Status Take(const Bytes& part);
  // What the answer has is the last part. `done` is called for those that did
  // not come, with the error, which is the answer's where that is one. OK where
  // all came.
  Status End(const Answer& answer);
  // Ends the calls for large ones.
  void Cancel();

 private:
  const std::string& KeyAt(size_t place) const {
    return expected_->keys[place].text;
  }
  Status TakeAll(const Bytes& part);
  void TakeLarge(size_t place);

  const std::shared_ptr<Channel> channel_;
  const int64_t step_;
  const ExpectedKeysPtr expected_;
  const std::vector<size_t> places_;  // of what is asked for
  const std::shared_ptr<LargeValues> known_;
  const Done done_;
  std::vector<bool> is_there_;
  Status broken_;
  Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  // What ends the calls for large ones.
  std::map<size_t, std::function<void()>> large_ ABSL_GUARDED_BY(mutex_);
};

// For what the step sends under these keys; `done` is called once for each,
// with its place among them. Those that are known to be large are asked for by
// themselves, at once; null where that is all. `end`: what ends it.
std::shared_ptr<ManyTaker> TakeMany(const std::shared_ptr<Channel>& channel,
                                    int64_t step,
                                    const ExpectedKeysPtr& expected,
                                    const std::shared_ptr<LargeValues>& large,
                                    const ManyTaker::Done& done,
                                    std::function<void()>* end);

// The same, by a call that is begun here. What ends it.
std::function<void()> PullMany(
    const std::shared_ptr<Channel>& channel, int64_t step,
    const ExpectedKeysPtr& expected, const std::shared_ptr<LargeValues>& large,
    const std::function<void(size_t key, StatusOr<SentValue>)>& done);

// The methods of the side that gives. `run` is the run that sends the values:
// its error is the call's, and `stop`, which may be called on any thread, ends
// it. RunAndGive's may wait; where it ends soon, the values wait for that, and
// come with the answer. BeginAndGive's is begun, calls what it is given when it
// has ended, and returns when it would wait: until then the values wait.
void AnswerPullMany(const std::shared_ptr<Worker>& worker,
                    const std::shared_ptr<ServerCall>& call,
                    const Bytes& request);
void RunAndGive(const std::shared_ptr<Worker>& worker,
                const std::shared_ptr<ServerCall>& call,
                PullTensorsRequest request, bool ends_soon,
                std::function<void()> stop, const std::function<Status()>& run);
void BeginAndGive(
    const std::shared_ptr<Worker>& worker,
    const std::shared_ptr<ServerCall>& call, PullTensorsRequest request,
    std::function<void()> stop,
    const std::function<void(std::function<void(const Status&)>)>& run);

}  // namespace headrace::distributed
