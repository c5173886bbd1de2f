// Who is in a group whose members come and go: by generations, which tasks
// agree on by asking each other.
//
// The first of those that are there and seek makes the next generation, once
// all that are there seek, and tells it as its answer. So it asks all tasks of
// its cluster again and again; the others ask the tasks before them until they
// know who that is, and then that one, the first that is there and does not
// seek yet, and one more, in turn: what so many ask grows as they do, not as
// their square. Members of a generation that are asked by a task from outside
// end their group, so that they come to seek, too.
//
// Who asks is there, and what it says with its question is as good as an
// answer: a task that comes again is reached later than it reaches others, as
// channels to it have failed and wait before they try again.
//
// Tasks tell each other the number of their last generation. Its members are
// told only to who is one of them and has not got it: a list of a thousand with
// each question and answer would fill the links of those who are asked.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/device_name.h"
#include "base/mutex.h"
#include "distributed/transport.h"
#include "headrace/collective.pb.h"

namespace headrace::distributed {

// What a task seeks.
struct GroupSearch {
  int64_t group_key = 0;
  // All tasks that may take part, this one among them. Ranks are in this order.
  std::vector<DeviceName> tasks;
  // Fewer make no generation. At most half of the tasks: where the network is
  // cut in two, both halves may go on, each with a state of its own.
  size_t fewest = 1;
  // How long the first generation waits for all tasks.
  std::chrono::milliseconds all_within{0};
  std::chrono::milliseconds timeout{0};
};

// Of one task. Thread-safe.
class Membership : public std::enable_shared_from_this<Membership> {
 public:
  struct Options {
    DeviceName task;
    uint64_t incarnation = 0;
    std::function<std::shared_ptr<Channel>(const DeviceName& task)> channel_of;
    // Has the task's group of that key end, so that its members seek.
    std::function<void(int64_t key, const Status& why)> end;
    // How long a task that is there may take until it seeks, too.
    std::chrono::milliseconds patience{60'000};
    std::function<Clock::time_point()> now = Clock::now;
    // Where somebody uses Look: called when it may find something new, on any
    // thread. May be empty.
    std::function<void(int64_t key)> news;
  };
  explicit Membership(Options options) : options_(std::move(options)) {}

  // Waits for the generation that this task is in, as CheckStop allows.
  // InvalidArgument for a search that cannot be, or while another one is under
  // way; FailedPrecondition where a task is of another version; OutOfRange
  // where members have left (Leave) and too few remain; DeadlineExceeded, which
  // says what is known of each task.
  StatusOr<Generation> Seek(const GroupSearch& search);
  // The same for who does not wait: Begin, Look until it is true or an error,
  // at news and each time that AwaitChange would, then End.
  Status Begin(const GroupSearch& search);
  // Asks whom it is time to ask; whether a generation is found.
  StatusOr<bool> Look(const GroupSearch& search);
  // The generation that the task is in then.
  Generation End(int64_t key);
  // The task takes no part in it any more.
  void Leave(int64_t key);
  bool HasLeft(int64_t key);
  // A member's connection broke.
  void Gone(int64_t key, const std::string& device);
  // What other tasks call.
  void Answer(const std::shared_ptr<ServerCall>& call, const Bytes& bytes);

 private:
  // What is known of another task.
  struct Peer {
    enum class State { kUnknown, kThere, kSilent, kAway };
    State state = State::kUnknown;
    int silent = 0;  // how often in a row
    GroupTask told;
    std::string why;  // it is not there
    Clock::time_point asked, answered;
    Clock::time_point said;  // `told`, as its answer or with its question
    bool reached = false;    // it has answered
    std::shared_ptr<ClientCall> call;  // under way
  };
  // One that asked this task, as it sought the group.
  struct Asker {
    GroupTask told;
    Clock::time_point at;
  };
  struct Group {
    GroupTask own;  // as it is told: of its generation the number alone
    Generation generation;
    std::map<std::string, Peer> peers;  // by device
    std::map<std::string, Asker> askers;
    std::set<std::string> tasks;  // devices of all that may take part
    // Of the search under way, for answers that come late.
    int64_t search = 0;
    Clock::time_point since;  // it began
    Status refused;           // by a task of another version
    bool news = false;        // an answer that was not looked at
    // Since when it is this task's to ask all, where it is.
    std::optional<Clock::time_point> leads;
    // The next one to be asked in turn, by its place among the tasks, and when.
    size_t turn = 0;
    Clock::time_point turned;
  };

  Status BeginLocked(const GroupSearch& search)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Why a search is over without a generation.
  Status WhyOver(const GroupSearch& search)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TellNews(int64_t key) {
    if (options_.news) options_.news(key);
  }
  // Asks those whose turn it is (see above).
  void AskSome(const GroupSearch& search);
  // By their places among the tasks.
  std::vector<size_t> WhoToAsk(const GroupSearch& search,
                               Clock::duration* every)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Ask(const GroupSearch& search, const DeviceName& task,
           Clock::duration every);
  // Why a task cannot have told that of itself.
  static Status CheckTold(const Group& group, const std::string& device,
                          const GroupTask& told);
  void Told(int64_t key, int64_t search, const std::string& device,
            const ::headrace::distributed::Answer& answer);
  // That one asks this task; whether that is news.
  bool Heard(Group& group, const GroupTask& asker)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether that one asked this task a moment ago.
  bool AskedLately(const Group& group, const std::string& device) const;
  // What came of asking that one.
  void Note(Group& group, const std::string& device, Status s, GroupTask told,
            std::shared_ptr<ClientCall>* over)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes over a generation that another task made with this one in it, or
  // makes one where that is this task's to do. False: neither.
  bool Settle(const GroupSearch& search) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayMake(const GroupSearch& search) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether there are too few, and members have left.
  bool OthersLeft(const GroupSearch& search)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Make(const GroupSearch& search) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void Enter(Group& group, Generation generation);
  Status Late(const GroupSearch& search) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string DeviceOf(const DeviceName& task) const;

  const Options options_;
  Mutex mutex_;
  CondVar changed_;
  int64_t searches_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<int64_t, Group> groups_ ABSL_GUARDED_BY(mutex_);
};

// The rank of a device of that life in a generation; -1: it is not in it.
int RankIn(const Generation& generation, const std::string& device,
           uint64_t incarnation);

}  // namespace headrace::distributed
