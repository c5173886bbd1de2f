#include "distributed/collective/membership.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "distributed/messages.h"
#include "distributed/request_ids.h"
#include "distributed/wire/methods.h"
#include "ops/queue/await_change.h"

namespace headrace::distributed {
namespace {

// How often a task is asked, at first and later, as a program that starts may
// wait for minutes.
constexpr std::chrono::milliseconds kAskEvery{50}, kAskLater{250};
constexpr std::chrono::seconds kAtFirst{3};
// How often a task says nothing until it is taken for gone: a machine with much
// else to do answers late.
constexpr int kMostSilent = 2;
// For so long who has asked is taken to be there, though it is not reached: it
// asks four times meanwhile, and a channel that has failed tries again.
constexpr std::chrono::seconds kAskedLately{1};
// A peer that tells of more would have the next number run over.
constexpr int64_t kMostGenerations = int64_t{1} << 62;

}  // namespace

int RankIn(const Generation& generation, const std::string& device,
           uint64_t incarnation) {
  for (int i = 0; i < generation.devices_size(); ++i) {
    if (generation.devices(i) == device && i < generation.incarnations_size() &&
        generation.incarnations(i) == incarnation) {
      return i;
    }
  }
  return -1;
}

std::string Membership::DeviceOf(const DeviceName& task) const {
  DeviceName name = task;
  name.type = "CPU";
  name.id = 0;
  return name.ToString();
}

Status Membership::BeginLocked(const GroupSearch& search) {
  const auto is_own = [this](const DeviceName& task) {
    return task.SameTask(options_.task);
  };
  const size_t count = search.tasks.size();
  if (std::count_if(search.tasks.begin(), search.tasks.end(), is_own) != 1) {
    return InvalidArgument(options_.task.ToString(),
                           " is not once among the tasks that may take part");
  }
  if (search.fewest < 1 || search.fewest > count) {
    return InvalidArgument("at least ", search.fewest, " of ", count,
                           " tasks cannot take part");
  }
  Group& group = groups_[search.group_key];
  if (group.own.seeks()) {
    return InvalidArgument(options_.task.ToString(), " seeks group ",
                           search.group_key, " already");
  }
  group.search = ++searches_;
  group.since = options_.now();
  GroupTask& own = group.own;
  own.set_group_key(static_cast<int32_t>(search.group_key));
  own.set_device(DeviceOf(options_.task));
  own.set_incarnation(options_.incarnation);
  own.set_seeks(true);
  own.set_left(false);
  group.peers.clear();
  group.refused = OkStatus();
  group.leads = std::nullopt;
  group.turned = Clock::time_point();
  group.tasks.clear();
  for (const DeviceName& task : search.tasks) {
    const std::string device = DeviceOf(task);
    group.tasks.insert(device);
    if (is_own(task)) continue;
    Peer& peer = group.peers[device];
    if (!AskedLately(group, device)) continue;
    const Asker& asker = group.askers[device];
    peer.state = Peer::State::kThere;
    peer.told = asker.told;
    peer.said = asker.at;
  }
  return OkStatus();
}

Status Membership::Begin(const GroupSearch& search) {
  MutexLock lock(mutex_);
  return BeginLocked(search);
}

Status Membership::WhyOver(const GroupSearch& search) {
  const Group& group = groups_[search.group_key];
  HR_RETURN_IF_ERROR(group.refused);
  if (OthersLeft(search)) {
    return absl::OutOfRangeError(
        absl::StrCat("members of group ", search.group_key,
                     " have done their work, and left"));
  }
  return options_.now() - group.since > search.timeout ? Late(search)
                                                       : OkStatus();
}

StatusOr<bool> Membership::Look(const GroupSearch& search) {
  {
    MutexLock lock(mutex_);
    groups_[search.group_key].news = false;
    if (Settle(search)) return true;
    HR_RETURN_IF_ERROR(WhyOver(search));
  }
  AskSome(search);
  return false;
}

Generation Membership::End(int64_t key) {
  std::map<std::string, Peer> peers;  // let go behind the lock
  Generation found;
  {
    MutexLock lock(mutex_);
    Group& group = groups_[key];
    group.own.set_seeks(false);
    group.own.clear_gone();
    group.search = 0;
    group.askers.clear();
    found = group.generation;
    peers.swap(group.peers);
  }
  for (auto& [device, peer] : peers) {
    if (peer.call) peer.call->Cancel();
  }
  return found;
}

StatusOr<Generation> Membership::Seek(const GroupSearch& search) {
  HR_RETURN_IF_ERROR(Begin(search));
  StatusOr<bool> found = Look(search);
  while (found.ok() && !*found) {
    Status s;
    {
      MutexLock lock(mutex_);
      if (!groups_[search.group_key].news) s = AwaitChange(mutex_, changed_);
    }
    if (s.ok()) {
      found = Look(search);
    } else {
      found = s;
    }
  }
  Generation generation = End(search.group_key);
  HR_RETURN_IF_ERROR(found.status());
  return generation;
}

std::vector<size_t> Membership::WhoToAsk(const GroupSearch& search,
                                         Clock::duration* every) {
  Group& group = groups_[search.group_key];
  const auto now = options_.now();
  *every = now - group.since < kAtFirst ? kAskEvery : kAskLater;
  const size_t count = search.tasks.size();
  std::vector<size_t> which;
  bool leads = false;
  std::optional<size_t> member;  // the first that is in a generation
  for (size_t i = 0; i < count && which.empty() && !leads; ++i) {
    leads = search.tasks[i].SameTask(options_.task);
    if (leads) break;
    const Peer& peer = group.peers[DeviceOf(search.tasks[i])];
    const bool seeks = peer.state == Peer::State::kThere && peer.told.seeks();
    // One that says nothing is waited for, for a moment.
    const bool may_seek =
        peer.state == Peer::State::kUnknown && now - peer.asked < kAskEvery;
    const bool is_new = peer.asked == Clock::time_point();
    if (seeks || may_seek || is_new) which.push_back(i);
    const bool is_in =
        peer.told.generation().number() != 0 && !peer.told.left();
    if (!member && peer.state == Peer::State::kThere && is_in) member = i;
  }
  // It seeks soon, as it hears that somebody does, and leads then.
  if (member && !leads && *member != which.back()) which.push_back(*member);
  if (leads && !group.leads) {
    group.leads = now;
    group.news = true;
  }
  if (!leads) group.leads = std::nullopt;
  for (size_t i = 0; leads && i < count; ++i) which.push_back(i);
  if (!leads && now - group.turned >= *every) {
    group.turned = now;
    group.turn = (group.turn + 1) % count;
    which.push_back(group.turn);
  }
  return which;
}

void Membership::AskSome(const GroupSearch& search) {
  Clock::duration every{};
  std::vector<size_t> which;
  {
    MutexLock lock(mutex_);
    which = WhoToAsk(search, &every);
  }
  for (const size_t i : which) {
    const DeviceName& task = search.tasks[i];
    if (!task.SameTask(options_.task)) Ask(search, task, every);
  }
}

void Membership::Ask(const GroupSearch& search, const DeviceName& task,
                     Clock::duration every) {
  const std::string device = DeviceOf(task);
  Bytes request;
  int64_t number = 0;
  {
    MutexLock lock(mutex_);
    Group& group = groups_[search.group_key];
    Peer& peer = group.peers[device];
    if (peer.call || options_.now() - peer.asked < every) return;
    peer.asked = options_.now();
    request = WriteMessage(group.own);
    number = group.search;
  }
  const auto channel = options_.channel_of(task);
  const auto told = [weak = weak_from_this(), key = search.group_key, number,
                     device](const ::headrace::distributed::Answer& answer) {
    if (const auto self = weak.lock()) {
      self->Told(key, number, device, answer);
    }
  };
  if (!channel) {
    return told(AnswerOf(NotFound("no such task in the cluster")));
  }
  CallOptions options;
  options.deadline = options_.now() + worker::kSeekGroup.deadline;
  auto call = channel->Start(worker::kSeekGroup.path, std::move(request),
                             options, told);
  MutexLock lock(mutex_);
  Group& group = groups_[search.group_key];
  Peer& peer = group.peers[device];
  // It may have been answered by now.
  if (peer.answered < peer.asked) peer.call = std::move(call);
}

Status Membership::CheckTold(const Group& group, const std::string& device,
                             const GroupTask& told) {
  const Generation& made = told.generation();
  // A task that never sought this group knows nothing of it.
  const bool knows = told.seeks() || told.left() || made.number() != 0;
  if (told.device() != device && (knows || !told.device().empty())) {
    return InvalidArgument(device, " says that it is ", told.device());
  }
  std::set<std::string> members(made.devices().begin(), made.devices().end());
  const bool has_members = made.devices_size() > 0;
  if (made.number() < 0 || made.number() > kMostGenerations ||
      (has_members && made.number() == 0) ||
      made.incarnations_size() != made.devices_size() ||
      static_cast<int>(members.size()) != made.devices_size()) {
    return InvalidArgument(device, " tells of a generation ", made.number(),
                           " of ", made.devices_size(), " devices and ",
                           made.incarnations_size(), " incarnations");
  }
  members.insert(told.gone().begin(), told.gone().end());
  for (const std::string& member : members) {
    if (group.tasks.contains(member)) continue;
    return InvalidArgument(device, " tells of ", member,
                           ", which is none of the tasks that may be in group ",
                           told.group_key());
  }
  return OkStatus();
}

void Membership::Told(int64_t key, int64_t search, const std::string& device,
                      const ::headrace::distributed::Answer& answer) {
  GroupTask told;
  Status s = StatusOf(answer);
  if (s.ok()) s = ReadMessage(answer.body, &told);
  std::shared_ptr<ClientCall> over;  // let go behind the lock
  {
    MutexLock lock(mutex_);
    Group& group = groups_[key];
    if (group.search != search) return;
    Note(group, device, s, std::move(told), &over);
  }
  TellNews(key);
}

void Membership::Note(Group& group, const std::string& device, Status s,
                      GroupTask told, std::shared_ptr<ClientCall>* over) {
  Peer& peer = group.peers[device];
  *over = std::move(peer.call);
  peer.call = nullptr;
  if (s.ok()) s = CheckTold(group, device, told);
  group.news = true;
  peer.answered = options_.now();
  changed_.NotifyAll();
  if (s.ok()) {
    peer.state = Peer::State::kThere;
    peer.silent = 0;
    peer.reached = true;
    peer.said = peer.answered;
    peer.told = std::move(told);
    return;
  }
  const bool not_reached =
      absl::IsUnavailable(s) || absl::IsDeadlineExceeded(s);
  if (not_reached && !peer.reached && AskedLately(group, device)) return;
  peer.why = std::string(s.message());
  if (absl::IsFailedPrecondition(s)) group.refused = s;
  const bool silent = absl::IsDeadlineExceeded(s);
  peer.silent = silent ? peer.silent + 1 : 0;
  if (!silent) {
    peer.state = Peer::State::kAway;
  } else if (peer.silent >= kMostSilent) {
    peer.state = Peer::State::kSilent;
  }
}

bool Membership::AskedLately(const Group& group,
                             const std::string& device) const {
  const auto asker = group.askers.find(device);
  return asker != group.askers.end() &&
         options_.now() - asker->second.at < kAskedLately;
}

bool Membership::Heard(Group& group, const GroupTask& asker) {
  const std::string& device = asker.device();
  group.askers[device] = {asker, options_.now()};
  if (!group.own.seeks()) return false;
  Peer& peer = group.peers[device];
  const GroupTask& told = peer.told;
  const bool is_known =
      peer.state == Peer::State::kThere && told.seeks() &&
      told.incarnation() == asker.incarnation() &&
      told.generation().number() == asker.generation().number();
  peer.state = Peer::State::kThere;
  peer.silent = 0;
  peer.said = options_.now();
  peer.told = asker;
  if (is_known) return false;
  group.news = true;
  changed_.NotifyAll();
  return true;
}

bool Membership::Settle(const GroupSearch& search) {
  Group& group = groups_[search.group_key];
  const GroupTask& own = group.own;
  for (const auto& [device, peer] : group.peers) {
    const Generation& made = peer.told.generation();
    // That of who seeks is over.
    if (!peer.told.seeks() && made.number() > own.generation().number() &&
        RankIn(made, own.device(), own.incarnation()) >= 0) {
      Enter(group, made);
      return true;
    }
  }
  if (!MayMake(search)) return false;
  Make(search);
  return true;
}

// The first of those that seek, and only when nobody is to be waited for.
bool Membership::MayMake(const GroupSearch& search) {
  Group& group = groups_[search.group_key];
  if (!group.leads) return false;
  std::set<std::string> gone(group.own.gone().begin(), group.own.gone().end());
  int64_t newest = group.own.generation().number();
  size_t seeking = 1;
  for (const auto& [device, peer] : group.peers) {
    if (peer.state != Peer::State::kThere) continue;
    gone.insert(peer.told.gone().begin(), peer.told.gone().end());
    if (!peer.told.seeks()) continue;
    ++seeking;
    newest = std::max(newest, peer.told.generation().number());
  }
  const bool late = options_.now() - group.since > options_.patience;
  bool own_passed = false;
  for (const DeviceName& task : search.tasks) {
    if (task.SameTask(options_.task)) {
      own_passed = true;
      continue;
    }
    const std::string device = DeviceOf(task);
    const Peer& peer = group.peers[device];
    // What it said before this task led may be long ago.
    const bool is_there = peer.state == Peer::State::kThere;
    const bool is_old = is_there ? peer.said < *group.leads - kAskEvery
                                 : peer.answered < *group.leads;
    if (is_old && (is_there || !gone.contains(device))) return false;
    switch (peer.state) {
      case Peer::State::kUnknown:
        // Who saw its connection break knows more than who waits for an answer.
        if (!gone.contains(device)) return false;
        break;
      case Peer::State::kThere:
        if (peer.told.seeks()) {
          if (!own_passed) return false;  // it is that one's to do
          break;
        }
        // One that was in no generation may come later.
        if (peer.told.left() || peer.told.generation().number() == 0) break;
        // A member that does not know yet that its group has ended, or of a
        // group that this task is to be taken into.
        if (!late || peer.told.generation().number() > newest) return false;
        break;
      case Peer::State::kSilent:
      case Peer::State::kAway:
        break;
    }
  }
  if (seeking < search.fewest) return false;
  return newest > 0 || seeking == search.tasks.size() ||
         options_.now() - group.since > search.all_within;
}

bool Membership::OthersLeft(const GroupSearch& search) {
  size_t may_come = 1;
  bool left = false;
  for (const auto& [device, peer] : groups_[search.group_key].peers) {
    const bool there = peer.state == Peer::State::kThere;
    left = left || (there && peer.told.left());
    if (peer.state == Peer::State::kUnknown || (there && !peer.told.left())) {
      ++may_come;
    }
  }
  return left && may_come < search.fewest;
}

void Membership::Make(const GroupSearch& search) {
  Group& group = groups_[search.group_key];
  Generation made;
  int64_t number = group.own.generation().number();
  for (const DeviceName& task : search.tasks) {
    const bool is_own = task.SameTask(options_.task);
    const Peer peer = is_own ? Peer() : group.peers[DeviceOf(task)];
    const GroupTask& told = is_own ? group.own : peer.told;
    if (!is_own && peer.state != Peer::State::kThere) continue;
    number = std::max(number, told.generation().number());
    if (!told.seeks()) continue;
    made.add_devices(told.device());
    made.add_incarnations(told.incarnation());
  }
  made.set_number(number + 1);
  made.set_group(static_cast<uint64_t>(NewRequestId()));
  Enter(group, std::move(made));
}

void Membership::Enter(Group& group, Generation generation) {
  group.own.mutable_generation()->set_number(generation.number());
  group.generation = std::move(generation);
}

Status Membership::Late(const GroupSearch& search) {
  Group& group = groups_[search.group_key];
  std::vector<std::string> known;
  for (const auto& [device, peer] : group.peers) {
    std::string text = absl::StrCat(device, " ");
    switch (peer.state) {
      case Peer::State::kUnknown:
        absl::StrAppend(&text, peer.asked == Clock::time_point()
                                   ? "was not asked"
                                   : "has not answered");
        break;
      case Peer::State::kThere:
        absl::StrAppend(&text, peer.told.left()    ? "has left"
                               : peer.told.seeks() ? "is there"
                                                   : "does not seek a group");
        break;
      case Peer::State::kSilent:
      case Peer::State::kAway:
        absl::StrAppend(&text, "is not there (", peer.why, ")");
        break;
    }
    known.push_back(std::move(text));
  }
  const std::chrono::duration<double> waited = options_.now() - group.since;
  return absl::DeadlineExceededError(absl::StrCat(
      DeviceOf(options_.task), " waited ",
      absl::StrFormat("%.1f", waited.count()), " s for ", search.fewest, " of ",
      search.tasks.size(), " tasks to make group ", search.group_key,
      ", behind generation ", group.own.generation().number(), ": ",
      absl::StrJoin(known, "; ")));
}

void Membership::Leave(int64_t key) {
  MutexLock lock(mutex_);
  groups_[key].own.set_left(true);
}

bool Membership::HasLeft(int64_t key) {
  MutexLock lock(mutex_);
  const auto at = groups_.find(key);
  return at != groups_.end() && at->second.own.left();
}

void Membership::Gone(int64_t key, const std::string& device) {
  {
    MutexLock lock(mutex_);
    const auto at = groups_.find(key);
    if (at == groups_.end()) return;
    at->second.own.add_gone(device);
    changed_.NotifyAll();
  }
  TellNews(key);
}

void Membership::Answer(const std::shared_ptr<ServerCall>& call,
                        const Bytes& bytes) {
  GroupTask asker;
  if (Status s = ReadMessage(bytes, &asker); !s.ok()) {
    return call->Finish(AnswerOf(s));
  }
  GroupTask own;
  Status ends;
  bool is_stranger = false, is_told = false, is_news = false;
  {
    MutexLock lock(mutex_);
    const auto at = groups_.find(asker.group_key());
    if (at != groups_.end()) {
      own = at->second.own;
      is_stranger = !at->second.tasks.contains(asker.device()) ||
                    asker.device() == own.device();
    }
    if (!is_stranger && !own.seeks() && own.generation().number() > 0) {
      const Generation& generation = at->second.generation;
      const bool is_member =
          RankIn(generation, asker.device(), asker.incarnation()) >= 0;
      const bool knows = asker.generation().number() >= generation.number();
      // A member that has not been told of this generation is told now. One
      // from outside is let in by the first member, who can be reached by all
      // that make the next generation.
      is_told = is_member && !knows;
      if (is_told) {
        *own.mutable_generation() = generation;
      } else if (own.left()) {
        // Nobody is let in.
      } else if (is_member) {
        ends = Aborted(asker.device(), " seeks the generation behind ",
                       generation.number(), " of group ", asker.group_key());
      } else if (generation.devices(0) == own.device()) {
        ends = Aborted(asker.device(), " joins group ", asker.group_key(),
                       " behind generation ", generation.number());
      }
    }
    if (at != groups_.end() && !is_stranger && !is_told && asker.seeks() &&
        CheckTold(at->second, asker.device(), asker).ok()) {
      is_news = Heard(at->second, asker);
    }
  }
  if (is_stranger) {
    return call->Finish(AnswerOf(InvalidArgument(
        asker.device(), " is none of the tasks that may be in group ",
        asker.group_key())));
  }
  if (is_news) TellNews(asker.group_key());
  if (!ends.ok()) options_.end(asker.group_key(), ends);
  call->Finish(AnswerOf(OkStatus(), WriteMessage(own)));
}

}  // namespace headrace::distributed
