// Any bytes as what a peer tells of groups: as a request to a task that leads
// groups, seeks one and is a member of one, or as a peer's answer to it. The
// first byte says which; of answers, more of them may follow, each behind its
// length.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "distributed/collective/engine.h"
#include "distributed/messages.h"
#include "distributed/test_call.h"
#include "distributed/wire/methods.h"

namespace headrace::distributed {
namespace {

constexpr int64_t kOwnGroup = 1, kSoughtGroup = 2;

// A peer that answers each call with the next of these texts, and then is gone.
class Answers : public Channel {
 public:
  std::shared_ptr<ClientCall> Start(const std::string&, Bytes,
                                    const CallOptions&,
                                    std::function<void(Answer)> done) override {
    struct Call : ClientCall {
      void Cancel() override {}
    };
    Answer answer;
    {
      MutexLock lock(mutex_);
      if (next_ < texts_.size()) {
        answer.body = Bytes(texts_[next_++]);
      } else {
        answer.code = 14;  // Unavailable
      }
    }
    done(std::move(answer));
    return std::make_shared<Call>();
  }
  void Say(std::vector<std::string> texts) {
    MutexLock lock(mutex_);
    texts_ = std::move(texts);
    next_ = 0;
  }

 private:
  Mutex mutex_;
  std::vector<std::string> texts_ ABSL_GUARDED_BY(mutex_);
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
};

struct Harness {
  Harness() {
    RemoteCollectivesOptions o;
    o.task = DeviceName::OfTask("w", 0);
    o.leader = o.task;
    o.incarnation = 3;
    o.begin = o.part = std::chrono::milliseconds(20);
    o.rings = true;
    o.channel_of = [peer = peer](const DeviceName&) { return peer; };
    engine = RemoteCollectives::Make(std::move(o));
    methods = engine->Methods();
    for (const auto& [path, unused] : methods) paths.push_back(path);
  }
  const std::shared_ptr<Answers> peer = std::make_shared<Answers>();
  std::shared_ptr<RemoteCollectives> engine;
  Methods methods;
  std::vector<std::string> paths;
};

GroupSearch SearchOf(int64_t key) {
  GroupSearch search;
  search.group_key = key;
  for (int i = 0; i < 3; ++i) {
    search.tasks.push_back(DeviceName::OfTask("w", i));
  }
  search.fewest = 1;
  search.timeout = std::chrono::milliseconds(5);
  return search;
}

// What a task seeks by such answers is itself in it, among the tasks that may
// be, or an error.
void SeekBy(Harness& h, const std::string& bytes) {
  std::vector<std::string> texts;
  for (size_t at = 0; at < bytes.size();) {
    const size_t size = static_cast<uint8_t>(bytes[at]);
    texts.push_back(bytes.substr(at + 1, size));
    at += 1 + size;
  }
  h.peer->Say(std::move(texts));
  const auto found = h.engine->Regroup(SearchOf(kSoughtGroup));
  if (!found.ok()) return;
  if (found->number() <= 0 || found->devices_size() > 3 ||
      RankIn(*found, "/job:w/replica:0/task:0/device:CPU:0", 3) < 0) {
    std::abort();
  }
}

}  // namespace
}  // namespace headrace::distributed

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace::distributed;  // NOLINT
  if (size == 0) return 0;
  static Harness* const h = new Harness;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t which = data[0] % (h->paths.size() + 1);
  if (which == h->paths.size()) {
    SeekBy(*h, bytes);
  } else {
    // A generation that it is in alone, so that there is a group to talk about.
    h->peer->Say({});
    GroupSearch alone = SearchOf(kOwnGroup);
    alone.timeout =
        std::chrono::seconds(20);  // found at once, if it gets to run
    if (!h->engine->Regroup(alone).ok()) std::abort();
    const auto call = StartCall(h->methods, h->paths[which], bytes);
    // What waits for others, by right, waits until its caller goes.
    call->Cancel();
  }
  // Groups are not to pile up.
  h->engine->Forget(headrace::Aborted("a reset"));
  return 0;
}
