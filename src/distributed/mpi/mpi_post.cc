#include "distributed/mpi/mpi_post.h"

#include <utility>

#include "absl/strings/str_join.h"
#include "base/threads.h"
#include "distributed/collective/course.h"
#include "distributed/messages.h"

namespace headrace::distributed {
namespace {

// Of these messages; mpi_world.cc has 1, and parts have those behind.
constexpr int kPostTag = 0, kFirstPartTag = 2;
// What every MPI has at least.
constexpr int kLastTag = 32767;
// What is told of a call lies below 64 KB (turn.cc), but for a swapped payload.
constexpr int64_t kLongestMessage = (64 << 10) + kSwapped;
// Asks that no member's own call has met yet, as engine.cc has it.
constexpr size_t kMostAsks = 1 << 16;
// MPI moves messages only while somebody calls it, and the last part that a
// member gave may wait for that.
constexpr std::chrono::milliseconds kMoveEvery{5};

}  // namespace

MpiPost::MpiPost(std::shared_ptr<MpiWorld> world, std::string task)
    : world_(std::move(world)), task_(std::move(task)) {
  tasks_[world_->rank()] = task_;
}

StatusOr<std::unique_ptr<MpiPost>> MpiPost::Make(
    std::shared_ptr<MpiWorld> world, const DeviceName& task) {
  if (!world->Claim()) {
    return FailedPrecondition(
        "another task of this process is rank ", world->rank(),
        " of MPI's world: ", task.Task().ToString(),
        " needs a process of its own for collectives by MPI");
  }
  std::unique_ptr<MpiPost> made(
      new MpiPost(std::move(world), task.Task().ToString()));
  MpiMessage hello;
  hello.set_task(made->task_);
  for (int q = 0; q < made->world_->size(); ++q) {
    if (q == made->world_->rank()) continue;
    HR_RETURN_IF_ERROR(made->Tell(q, hello));
  }
  HR_ASSIGN_OR_RETURN(made->thread_,
                      StartThread([post = made.get()] { post->KeepMoving(); }));
  return made;
}

MpiPost::~MpiPost() {
  {
    MutexLock lock(mutex_);
    ends_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
  world_->Return();
}

void MpiPost::KeepMoving() {
  MutexLock lock(mutex_);
  while (!ends_ && PollLocked().ok()) changed_.WaitFor(mutex_, kMoveEvery);
}

Status MpiPost::Poll() {
  MutexLock lock(mutex_);
  return PollLocked();
}

Status MpiPost::PollLocked() {
  HR_RETURN_IF_ERROR(failure_);
  while (true) {
    Coming next;
    HR_ASSIGN_OR_RETURN(next.transfer,
                        world_->Receive(MpiLibrary::kAnySource, kPostTag,
                                        kLongestMessage, &next.source));
    if (!next.transfer) break;
    coming_.push_back(std::move(next));
  }
  for (auto it = coming_.begin(); it != coming_.end();) {
    StatusOr<bool> done = world_->Done(*it->transfer);
    if (done.ok() && *done) {
      const Status s = Read(it->source, it->transfer->bytes());
      if (!s.ok()) done = s;
    }
    failure_.Update(done.status());
    HR_RETURN_IF_ERROR(failure_);
    it = *done ? coming_.erase(it) : std::next(it);
  }
  for (auto it = told_.begin(); it != told_.end();) {
    const StatusOr<bool> done = world_->Done(**it);
    failure_.Update(done.status());
    HR_RETURN_IF_ERROR(failure_);
    it = *done ? told_.erase(it) : std::next(it);
  }
  return OkStatus();
}

Status MpiPost::Read(int source, const Bytes& bytes) {
  MpiMessage message;
  if (Status s = ReadMessage(bytes, &message); !s.ok()) {
    return InvalidArgument("rank ", source, " of MPI's world sent no message ",
                           "of a task of this version: ", s.message());
  }
  if (!message.has_ask()) return Introduce(source, message.task());
  if (asks_.size() >= kMostAsks) {
    return ResourceExhausted("too many calls wait for ", task_);
  }
  Ask ask;
  ask.source = source;
  ask.tag = message.tag();
  ask.swaps = message.swaps();
  ask.payload = Bytes(std::move(*message.mutable_payload()));
  ask.header = std::move(*message.mutable_ask());
  if (ask.tag < kFirstPartTag || ask.tag > kLastTag) {
    return InvalidArgument("rank ", source, " of MPI's world asks for tag ",
                           ask.tag);
  }
  const CollectiveHeader& h = ask.header;
  const Spot spot{h.group(), h.to(), h.instance_key(), h.step()};
  asks_.emplace(spot, std::move(ask));
  return OkStatus();
}

Status MpiPost::Introduce(int source, const std::string& task) {
  for (const auto& [rank, known] : tasks_) {
    if (known != task || rank == source) continue;
    return InvalidArgument("ranks ", rank, " and ", source,
                           " of MPI's world both say that they are ", task,
                           ": give each process of the job a task of its own");
  }
  const auto [at, added] = tasks_.emplace(source, task);
  if (added || at->second == task) return OkStatus();
  return InvalidArgument("rank ", source, " of MPI's world was ", at->second,
                         ", and says now that it is ", task);
}

StatusOr<std::optional<int>> MpiPost::RankOf(const DeviceName& task) {
  const std::string name = task.Task().ToString();
  MutexLock lock(mutex_);
  for (const auto& [rank, known] : tasks_) {
    if (known == name) return std::optional<int>(rank);
  }
  if (static_cast<int>(tasks_.size()) < world_->size()) {
    return std::optional<int>();
  }
  return InvalidArgument(
      "no process of MPI's world is ", name, ": its ranks are ",
      absl::StrJoin(tasks_, ", ", [](std::string* out, const auto& entry) {
        absl::StrAppend(out, entry.first, " ", entry.second);
      }));
}

std::string MpiPost::Unknown() {
  MutexLock lock(mutex_);
  std::string all;
  for (int q = 0; q < world_->size(); ++q) {
    if (tasks_.contains(q)) continue;
    absl::StrAppend(&all, all.empty() ? "rank " : ", rank ", q);
  }
  return all;
}

std::optional<MpiPost::Ask> MpiPost::Find(
    const Spot& spot, const std::function<bool(const Ask&)>& takes) {
  MutexLock lock(mutex_);
  const auto [begin, end] = asks_.equal_range(spot);
  for (auto it = begin; it != end; ++it) {
    if (!takes(it->second)) continue;
    std::optional<Ask> found = std::move(it->second);
    asks_.erase(it);
    return found;
  }
  return {};
}

Status MpiPost::Tell(int to, const MpiMessage& message) {
  HR_ASSIGN_OR_RETURN(auto transfer,
                      world_->Send(to, kPostTag, WriteMessage(message)));
  MutexLock lock(mutex_);
  told_.push_back(std::move(transfer));
  return OkStatus();
}

void MpiPost::Forget(uint64_t group) {
  MutexLock lock(mutex_);
  std::erase_if(
      asks_, [group](const auto& entry) { return entry.first.group == group; });
}

StatusOr<int> MpiPost::TakeTag(int from) {
  MutexLock lock(mutex_);
  std::set<int>& taken = tags_[from];
  int& last = last_tags_.try_emplace(from, kLastTag).first->second;
  if (static_cast<int>(taken.size()) > kLastTag - kFirstPartTag) {
    return ResourceExhausted("all ", taken.size(),
                             " tags of messages from rank ", from,
                             " of MPI's world are taken");
  }
  do {
    last = last == kLastTag ? kFirstPartTag : last + 1;
  } while (!taken.insert(last).second);
  return last;
}

void MpiPost::ReturnTag(int from, int tag) {
  MutexLock lock(mutex_);
  tags_[from].erase(tag);
}

}  // namespace headrace::distributed
