// How members of a group notice that one is gone: each one has a call open to
// the next.
#include <utility>

#include "distributed/collective/engine.h"
#include "distributed/messages.h"
#include "distributed/wire/methods.h"

namespace headrace::distributed {
namespace {

// How long a member that is there may take to be connected to.
constexpr std::chrono::seconds kConnects{3};

}  // namespace

// Each member asks the next one whether it is there, and says it to all where
// it is not.
void RemoteCollectives::Watch(const GroupRef& group, int64_t key, int rank) {
  Watched w;
  {
    MutexLock lock(mutex_);
    if (!group->watching.insert(rank).second) return;
    const int after = static_cast<int>((rank + 1) % group->size);
    w.next = group->devices[after];
    if (w.next.SameTask(options_.task)) return;
    w.name = MemberText(*group->names, after);
    w.request.set_group(group->id);
    w.request.set_group_key(static_cast<int32_t>(key));
    w.request.set_from(rank);
  }
  StartWatch(group, w, /*is_first=*/true);
}

// A channel that has just failed to connect says for a second that its peer is
// away, as it did when a member that is there now was asked too early: the
// first call waits for a connection.
void RemoteCollectives::StartWatch(const GroupRef& group, const Watched& w,
                                   bool is_first) {
  const auto channel = ChannelTo(w.next);
  if (!channel) return;
  CallOptions options;
  if (is_first) {
    options.wait_for_ready = true;
    options.deadline = options_.now() + kConnects;
  }
  auto call = channel->Start(
      worker::kWatchGroup.path, WriteMessage(w.request), options,
      [weak = weak_from_this(), group, w, is_first](const Answer& answer) {
        const auto self = weak.lock();
        if (!self) return;
        {
          // Where the group has ended this task let go of the call itself: what
          // is under way keeps its grace.
          MutexLock lock(self->mutex_);
          if (!group->status.ok()) return;
        }
        if (is_first && absl::IsDeadlineExceeded(StatusOf(answer))) {
          return self->StartWatch(group, w, /*is_first=*/false);
        }
        self->WatchEnded(group, w, answer);
      });
  bool is_over;
  {
    MutexLock lock(mutex_);
    is_over = !group->status.ok();
    if (!is_over) group->watches.push_back(call);
  }
  if (is_over) call->Cancel();
}

void RemoteCollectives::WatchEnded(const GroupRef& group, const Watched& w,
                                   const Answer& answer) {
  const int64_t key = w.request.group_key();
  const int rank = w.request.from();
  const Status s = StatusOf(answer);
  if (absl::IsUnavailable(s)) membership_->Gone(key, w.next.ToString());
  if (s.ok()) {
    WatchGroupResponse left;
    const bool soon =
        ReadMessage(answer.body, &left).ok() && group->changes && !left.done();
    return EndGroup(group, key,
                    Unavailable(w.name, " has left: its program ended"), rank,
                    soon ? kGrace : kGraceOfLeft);
  }
  EndGroup(group, key,
           Status(s.code(), absl::StrCat(w.name, " is gone: ", s.message())),
           rank, absl::IsUnavailable(s) ? kGrace : kNoGrace);
}

}  // namespace headrace::distributed
