#include "distributed/collective/engine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "distributed/collective/course.h"
#include "distributed/collective/ways.h"
#include "distributed/group/awaited.h"
#include "distributed/group/calls_of_members.h"
#include "distributed/messages.h"
#include "distributed/wire/methods.h"
#include "ops/queue/await_change.h"

namespace headrace::distributed {
namespace {

// Of a task that stops, for peers to take what they are to get: peers that
// share a processor may be seconds behind. A stop of the program ends it.
constexpr std::chrono::seconds kLingers{10};
// Calls that a member's own has not met yet: of strangers, and of peers that
// are ahead.
constexpr size_t kMostEarly = 4096;
// Collectives of a group that go on at the same time, or that peers say do.
constexpr size_t kMostSpots = 1 << 16;

Status AbortedBy(const Status& why) {
  return Status(why.code(),
                absl::StrCat("Collective ops is aborted by: ", why.message(),
                             "\nThe error could be from a previous "
                             "operation. Restart your program to reset."));
}

void RunAll(const std::vector<std::function<void()>>& then) {
  for (const auto& f : then) f();
}

// A turn whose peers are reached over channels.
class TurnOverChannels : public Side {
 public:
  using ChannelOf = std::function<std::shared_ptr<Channel>(int rank)>;
  TurnOverChannels(std::shared_ptr<Turn> turn, ChannelOf channel_of)
      : turn_(std::move(turn)), channel_of_(std::move(channel_of)) {}
  void Give(int to, Bytes part, bool last) override {
    turn_->Give(to, std::move(part), last);
  }
  void Ask(int from, bool swaps, Bytes payload) override {
    channels_.push_back(channel_of_(from));
    turn_->Ask(from, *channels_.back(), swaps, std::move(payload));
  }
  StatusOr<Bytes> Take(int from) override { return turn_->Take(from); }
  void Leave() override { turn_->Leave(); }

 private:
  const std::shared_ptr<Turn> turn_;
  const ChannelOf channel_of_;
  std::vector<std::shared_ptr<Channel>> channels_;  // that it asked over
};

}  // namespace

// --- groups ---

std::string RemoteCollectives::DeviceOf(const GroupMember& member) const {
  DeviceName name = options_.task;
  name.type = "CPU";
  name.id = member.processor;
  return name.ToString();
}

std::string RemoteCollectives::NameOf(const GroupMember& member) const {
  if (member.rank < 0) return absl::StrCat("Device ", DeviceOf(member));
  return absl::StrCat("Rank ", member.rank, " (", DeviceOf(member), ")");
}

Status RemoteCollectives::StatusOfGroup(const Group& group) {
  if (group.status.ok() || options_.now() < group.ended) return OkStatus();
  return AbortedBy(group.status);
}

StatusOr<RemoteCollectives::GroupRef> RemoteCollectives::FindOrMake(
    const GroupMember& m) {
  if (!aborted_.ok()) return AbortedBy(aborted_);
  GroupRef& group = groups_[m.group_key];
  if (!group) {
    group = std::make_shared<Group>();
    group->size = m.group_size;
    group->ranked = m.rank >= 0;
  }
  HR_RETURN_IF_ERROR(group->status.ok() ? OkStatus()
                                        : AbortedBy(group->status));
  if (group->ranked != (m.rank >= 0)) {
    return InvalidArgument(
        "group_key ", m.group_key, " is that of members which ",
        group->ranked ? "have ranks of their own" : "are devices",
        "; take another one for these");
  }
  if (group->size != m.group_size) {
    return Internal(NameOf(m), " is joining a group with size", m.group_size,
                    ", but that group has size ", group->size,
                    " (group_key=", m.group_key, ")");
  }
  return group;
}

Status RemoteCollectives::AskLeader(const GroupMember& m,
                                    JoinGroupResponse* response) {
  JoinGroupRequest request;
  request.set_group_key(static_cast<int32_t>(m.group_key));
  request.set_group_size(static_cast<int32_t>(m.group_size));
  request.set_rank(m.rank);
  request.set_device(DeviceOf(m));
  request.set_incarnation(options_.incarnation);
  const std::shared_ptr<Channel> channel = ChannelTo(options_.leader);
  if (!channel) {
    return InvalidArgument("No worker known as ", options_.leader.ToString(),
                           ", which is to lead groups");
  }
  CallOptions options;
  const auto patience = PatienceOf(m, options_.begin);
  options.deadline = options_.now() + patience;
  options.wait_for_ready = true;
  StatusOr<Answer> answer = Answer();
  Status s;
  do {
    answer = AnswerTo(*channel, worker::kJoinGroup.path, WriteMessage(request),
                      options);
    HR_RETURN_IF_ERROR(answer.status());
    s = StatusOf(*answer);
    // A leader that is being started, or started again, is waited for.
  } while (absl::IsUnavailable(s) && options_.now() < options.deadline &&
           WaitToAskAgain().ok());
  if (absl::IsDeadlineExceeded(s)) {
    return absl::DeadlineExceededError(absl::StrCat(
        "Collective has timed out waiting for other workers. ", NameOf(m),
        " waited ", absl::StrFormat("%.1f", patience.count() / 1e3),
        " s for the ", m.group_size, " members of group ", m.group_key, " at ",
        options_.leader.ToString(), ": ", s.message()));
  }
  if (absl::IsUnimplemented(s)) {
    // Members with ranks TensorFlow's leader refuses, all at once.
    if (m.rank >= 0 && options_.rings) HR_RETURN_IF_ERROR(ring_->Join(m));
    return absl::UnimplementedError(absl::StrCat(
        options_.leader.ToString(),
        ", which is to lead groups, is TensorFlow's: all members are to ask "
        "for CommunicationImplementation.RING (",
        s.message(), ")"));
  }
  HR_RETURN_IF_ERROR(s);
  return ReadMessage(answer->body, response);
}

Status RemoteCollectives::Complete(Group& group,
                                   const JoinGroupResponse& response) {
  std::vector<DeviceName> devices;
  for (const std::string& text : response.devices()) {
    DeviceName name;
    if (!DeviceName::Parse(text, &name) || !name.full()) {
      return InvalidArgument("a member of a group is no device: ", text);
    }
    devices.push_back(std::move(name));
  }
  if (response.group() == 0 ||
      static_cast<int64_t>(devices.size()) != group.size) {
    return InvalidArgument("the leader tells of ", devices.size(),
                           " members of a group of ", group.size);
  }
  if (group.id != 0) {
    return group.id == response.group()
               ? OkStatus()
               : Aborted("the leader of the group was restarted");
  }
  group.id = response.group();
  group.names = std::make_shared<const MemberNames>(response.devices().begin(),
                                                    response.devices().end());
  group.devices = std::move(devices);
  return OkStatus();
}

StatusOr<int> RemoteCollectives::RankOf(const Group& group,
                                        const GroupMember& m) {
  if (m.rank >= 0) return m.rank;
  const std::string own = DeviceOf(m);
  for (size_t i = 0; i < group.names->size(); ++i) {
    if ((*group.names)[i] == own) return static_cast<int>(i);
  }
  return Internal(
      NameOf(m),
      " is joining a group that is already full (group_key=", m.group_key, ")");
}

Status RemoteCollectives::JoinGroup(const GroupMember& m, GroupRef* group,
                                    int* rank) {
  {
    MutexLock lock(mutex_);
    HR_ASSIGN_OR_RETURN(*group, FindOrMake(m));
    if ((*group)->id != 0) {
      HR_ASSIGN_OR_RETURN(*rank, RankOf(**group, m));
      if ((*group)->watching.contains(*rank)) return OkStatus();
    }
    if (m.rank >= 0 && !(*group)->joining.insert(m.rank).second) {
      return InvalidArgument(
          "Duplicate ranks specified for group members. Received ranks: ",
          m.rank, ",", m.rank);
    }
  }
  JoinGroupResponse response;
  Status s = AskLeader(m, &response);
  Ending then;
  {
    MutexLock lock(mutex_);
    (*group)->joining.erase(m.rank);
    if (s.ok()) s = Complete(**group, response);
    if (s.ok()) {
      const StatusOr<int> found = RankOf(**group, m);
      s = found.status();
      if (found.ok()) *rank = *found;
    }
    if (s.ok()) s = StatusOfGroup(**group);
    if (s.ok()) {
      for (const auto& arrival : std::exchange((*group)->early, {})) {
        Place(**group, arrival, &then);
      }
    }
  }
  RunAll(then);
  if (s.ok()) Watch(*group, m.group_key, *rank);
  return s;
}

StatusOr<GroupMembers> RemoteCollectives::MembersOf(const GroupMember& member) {
  GroupRef group;
  GroupMembers members;
  HR_RETURN_IF_ERROR(JoinGroup(member, &group, &members.rank));
  members.status = [self = shared_from_this(), group] {
    MutexLock lock(self->mutex_);
    return self->StatusOfGroup(*group);
  };
  members.end = [self = shared_from_this(), group, key = member.group_key,
                 rank = members.rank](const Status& why) {
    self->EndGroup(group, key, why, rank, kNoGrace);
  };
  MutexLock lock(mutex_);
  members.group = group->id;
  members.names = group->names;
  members.devices = group->devices;
  return members;
}

Status RemoteCollectives::Join(const GroupMember& member) {
  GroupRef group;
  int rank = 0;
  return JoinGroup(member, &group, &rank);
}

// --- ends ---

void RemoteCollectives::End(Group& group, int64_t key, const Status& why,
                            int from, bool tells,
                            std::chrono::milliseconds grace, Ending* then) {
  const Clock::time_point at = options_.now() + grace;
  const bool first = group.status.ok();
  // What ends now ends whatever was under way when the group's grace was over.
  if (!first && group.ended <= at && grace != kNoGrace) return;
  if (first) group.status = why;
  group.ended = first ? at : std::min(group.ended, at);
  changed_.NotifyAll();
  for (auto& watch : std::exchange(group.watches, {})) {
    then->push_back([watch] { watch->Cancel(); });
  }
  if (grace == kNoGrace) {
    const Status told = AbortedBy(group.status);
    for (auto& [place, spot] : group.spots) {
      for (const auto& turn : spot.turns) {
        then->push_back([turn, told] { turn->Fail(told); });
      }
      for (const auto& arrival : spot.early) {
        then->push_back(
            [arrival, told] { arrival->call->Finish(AnswerOf(told)); });
      }
      spot.early.clear();
    }
    for (const auto& arrival : std::exchange(group.early, {})) {
      then->push_back(
          [arrival, told] { arrival->call->Finish(AnswerOf(told)); });
    }
  }
  if (!tells || !first) return;
  EndGroupRequest request;
  request.set_group(group.id);
  request.set_group_key(static_cast<int32_t>(key));
  request.set_from(from);
  request.set_code(static_cast<int>(why.code()));
  request.set_message(std::string(why.message()));
  request.set_grace_ms(static_cast<int32_t>(grace.count()));
  const Bytes bytes = WriteMessage(request);
  std::set<std::string> told;
  for (const DeviceName& device : group.devices) {
    const DeviceName task = device.Task();
    if (task.SameTask(options_.task)) continue;
    if (!told.insert(task.ToString()).second) continue;
    ++telling_;
    then->push_back([this, task, bytes] { Tell(task, bytes); });
  }
}

void RemoteCollectives::Tell(const DeviceName& task, const Bytes& bytes) {
  CallOptions options;
  options.deadline = options_.now() + worker::kEndGroup.deadline;
  const auto told = [self = shared_from_this()](const Answer&) {
    MutexLock lock(self->mutex_);
    --self->telling_;
    self->changed_.NotifyAll();
  };
  const auto channel = ChannelTo(task);
  if (!channel) return told({});
  channel->Start(worker::kEndGroup.path, bytes, options, told);
}

void RemoteCollectives::EndGroup(const GroupRef& group, int64_t key,
                                 const Status& why, int from,
                                 std::chrono::milliseconds grace) {
  Ending then;
  {
    MutexLock lock(mutex_);
    End(*group, key, why, from, /*tells=*/true, grace, &then);
  }
  RunAll(then);
}

void RemoteCollectives::Abort(const Status& why) {
  Ending then;
  ring_->Abort(why);
  {
    MutexLock lock(mutex_);
    aborted_ = why;
    for (auto& [key, group] : groups_) {
      End(*group, key, why, 0, /*tells=*/true, kNoGrace, &then);
    }
  }
  RunAll(then);
}

void RemoteCollectives::Forget(const Status& why) {
  Ending then;
  leader_->Forget(why);
  ring_->Forget(why);
  {
    MutexLock lock(mutex_);
    for (auto& [key, group] : std::exchange(groups_, {})) {
      End(*group, key, why, 0, /*tells=*/true, kNoGrace, &then);
    }
  }
  RunAll(then);
}

void RemoteCollectives::Stop() {
  const Clock::time_point until = options_.now() + kLingers;
  {
    MutexLock lock(mutex_);
    const auto owes = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      if (telling_ > 0 || ring_->Owes()) return true;
      for (const auto& [key, group] : groups_) {
        const bool goes_on =
            group->status.ok() || options_.now() < group->ended;
        if (goes_on && !group->spots.empty()) return true;
      }
      return false;
    };
    while (owes() && options_.now() < until) {
      if (!AwaitChange(mutex_, changed_).ok()) break;
    }
  }
  StopNow();
}

void RemoteCollectives::StopNow() {
  struct Watcher {
    std::shared_ptr<ServerCall> call;
    int64_t key;
    Status status;
  };
  std::vector<Watcher> watchers;
  std::unique_ptr<Listener> listener;
  {
    MutexLock lock(mutex_);
    for (auto& [key, group] : groups_) {
      for (auto& w : std::exchange(group->watchers, {})) {
        watchers.push_back({std::move(w), key, group->status});
      }
    }
  }
  for (const auto& [call, key, status] : watchers) {
    WatchGroupResponse response;
    response.set_done(membership_->HasLeft(key));
    call->Finish(AnswerOf(status, WriteMessage(response)));
  }
  Ending then;
  leader_->Forget(Aborted("the leader of the group is stopped"));
  ring_->Abort(Unavailable("the server is stopped"));
  {
    MutexLock lock(mutex_);
    aborted_ = Unavailable("the server is stopped");
    for (auto& [key, group] : groups_) {
      End(*group, key, aborted_, 0, /*tells=*/false, kNoGrace, &then);
    }
    listener = std::move(listener_);
    own_ = nullptr;
  }
  RunAll(then);
  if (listener) listener->Stop(options_.now());
}

// --- calls ---

StatusOr<std::shared_ptr<Turn>> RemoteCollectives::Begin(
    const GroupRef& group, const CollectiveCall& call, int rank, int step,
    std::set<int> askers, std::function<void()> came) {
  const SpotKey key{rank, call.instance_key, step, call.odd_round};
  SpotKey others = key;
  others.odd_round = !key.odd_round;
  Turn::Options options;
  options.call = call;
  options.call.input = Tensor();
  options.step = step;
  options.rank = rank;
  options.askers = std::move(askers);
  options.begin = PatienceOf(call.member, options_.begin);
  options.part = PatienceOf(call.member, options_.part);
  options.came = std::move(came);
  options.over = [this, group] {
    MutexLock lock(mutex_);
    return StatusOfGroup(*group);
  };
  options.settled = [weak = weak_from_this(), group, key] {
    if (const auto self = weak.lock()) self->Settle(group, key);
  };
  Ending then;
  std::shared_ptr<Turn> turn;
  {
    MutexLock lock(mutex_);
    HR_RETURN_IF_ERROR(group->status.ok() ? OkStatus()
                                          : AbortedBy(group->status));
    options.group = group->id;
    options.names = group->names;
    for (const SpotKey& k : {key, others}) {
      const auto at = group->spots.find(k);
      if (at == group->spots.end() || at->second.turns.empty() ||
          at->second.turns.back()->left()) {
        continue;
      }
      return InvalidArgument(
          NameOf(call.member), " takes part in group ", call.member.group_key,
          " by two calls at the same time; give each member a logical device "
          "of its own (tf.config.set_logical_device_configuration), or a rank");
    }
    Spot& spot = group->spots[key];
    turn = std::make_shared<Turn>(std::move(options));
    spot.turns.push_back(turn);
    for (const auto& arrival : std::exchange(spot.early, {})) {
      Place(*group, arrival, &then);
    }
  }
  RunAll(then);
  return turn;
}

void RemoteCollectives::Settle(const GroupRef& group, const SpotKey& key) {
  std::deque<std::shared_ptr<Turn>> over;  // end behind the lock
  MutexLock lock(mutex_);
  const auto at = group->spots.find(key);
  if (at == group->spots.end()) return;
  auto& turns = at->second.turns;
  for (auto it = turns.begin(); it != turns.end();) {
    if (!(*it)->settled()) {
      ++it;
      continue;
    }
    over.push_back(std::move(*it));
    it = turns.erase(it);
  }
  if (turns.empty() && at->second.early.empty()) {
    group->spots.erase(at);
    changed_.NotifyAll();
  }
}

void RemoteCollectives::TellTurn(const GroupMember& member,
                                 int64_t instance_key, const LoopTurn& turn) {
  if (options_.rings) ring_->TellTurn(member, instance_key, turn);
}

StatusOr<Tensor> RemoteCollectives::Run(const CollectiveCall& asked) {
  if (options_.rings && asked.ring) return ring_->Run(asked);
  CollectiveCall call = asked;
  GroupRef group;
  int rank = 0;
  HR_RETURN_IF_ERROR(JoinGroup(call.member, &group, &rank));
  if (group->size == 1) return ResultAlone(call);
  bool began = false;
  const Meeting meeting{
      call, rank, static_cast<int>(group->size),
      [&](int step, std::set<int> askers) -> StatusOr<std::shared_ptr<Side>> {
        HR_ASSIGN_OR_RETURN(auto turn,
                            Begin(group, call, rank, step, std::move(askers),
                                  /*came=*/nullptr));
        began = true;
        return std::make_shared<TurnOverChannels>(std::move(turn), [&](int of) {
          return ChannelTo(group->devices[of]);
        });
      }};
  for (const DeviceName& device : group->devices) {
    if (ChannelTo(device)) continue;
    return InvalidArgument("No worker known as ", device.ToString());
  }
  {
    MutexLock lock(mutex_);
    call.odd_round = group->rounds[rank].Next(call.instance_key);
  }
  StatusOr<Tensor> result = GoTogether(meeting);
  // Others would wait for ever for a member that went away.
  if (!result.ok() && began) {
    EndGroup(group, call.member.group_key, result.status(), rank, kNoGrace);
  } else if (!result.ok()) {
    MutexLock lock(mutex_);  // it was no call that others met
    group->rounds[rank].Next(call.instance_key);
  }
  return result;
}

void RemoteCollectives::Disagree(Group& group, Status why,
                                 const Arrival& arrival, Ending* then) {
  why = DisagreeError(why, *group.names, arrival.header.to(),
                      arrival.header.from());
  then->push_back([call = arrival.call, why] { call->Finish(AnswerOf(why)); });
  End(group, arrival.header.group_key(), why, arrival.header.to(),
      /*tells=*/true, kNoGrace, then);
}

void RemoteCollectives::Place(Group& group,
                              const std::shared_ptr<Arrival>& arrival,
                              Ending* then) {
  const CollectiveHeader& h = arrival->header;
  const auto refuse = [&](Status why) {
    then->push_back([arrival, why] { arrival->call->Finish(AnswerOf(why)); });
  };
  if (h.group() != group.id) {
    return refuse(Aborted("a member of another life of group ", h.group_key(),
                          ": restart all members"));
  }
  if (h.from() < 0 || h.from() >= group.size || h.to() < 0 ||
      h.to() >= group.size || h.from() == h.to() ||
      !group.devices[h.to()].SameTask(options_.task)) {
    return refuse(InvalidArgument("rank ", h.from(), " asks rank ", h.to(),
                                  " of a group of ", group.size));
  }
  if (Status s = StatusOfGroup(group); !s.ok()) return refuse(s);
  const StatusOr<CollectiveCall> call = CallOf(h);
  if (!call.ok()) return refuse(call.status());
  const SpotKey key{h.to(), h.instance_key(), h.step(), h.odd_round()};
  if (group.spots.size() >= kMostSpots && !group.spots.contains(key)) {
    return refuse(absl::ResourceExhaustedError(
        absl::StrCat("too many collectives of group ", h.group_key())));
  }
  Spot& spot = group.spots[key];
  for (const auto& turn : spot.turns) {
    if (turn->HasAsked(h.from())) continue;
    const Status agrees =
        turn->left() && !turn->Expects(h.from())
            ? Internal("it is over")
            : CheckAgreement(turn->call(), *call, (*group.names)[h.from()]);
    if (agrees.ok() && turn->Claim(h.from())) {
      then->push_back([turn, arrival] {
        turn->Arrive(arrival->header.from(), arrival->call,
                     std::move(arrival->payload), arrival->swaps);
      });
      return;
    }
    if (!agrees.ok() && !turn->left()) {
      return Disagree(group, agrees, *arrival, then);
    }
  }
  if (spot.early.size() >= kMostEarly) {
    return refuse(absl::ResourceExhaustedError(
        absl::StrCat("too many calls wait for rank ", h.to())));
  }
  spot.early.push_back(arrival);
}

// A caller that goes away is waited for no more, and leaves nothing behind.
void RemoteCollectives::DropIfGone(const std::shared_ptr<Arrival>& arrival) {
  arrival->call->OnCancel([weak = weak_from_this(),
                           held = std::weak_ptr<Arrival>(arrival)] {
    const auto self = weak.lock();
    const auto gone = held.lock();
    if (!self || !gone) return;
    MutexLock lock(self->mutex_);
    gone->gone = true;
    const CollectiveHeader& h = gone->header;
    const auto found = self->groups_.find(h.group_key());
    if (found == self->groups_.end()) return;
    Group& group = *found->second;
    std::erase(group.early, gone);
    const auto spot =
        group.spots.find({h.to(), h.instance_key(), h.step(), h.odd_round()});
    if (spot == group.spots.end()) return;
    std::erase(spot->second.early, gone);
    if (!spot->second.turns.empty() || !spot->second.early.empty()) return;
    group.spots.erase(spot);
    self->changed_.NotifyAll();
  });
}

// --- what other tasks call ---

StatusOr<RemoteCollectives::GroupRef> RemoteCollectives::MemberGroup(
    uint64_t id, int64_t key, int from) {
  const auto at = groups_.find(key);
  if (at == groups_.end()) {
    return aborted_.ok() ? InvalidArgument("no member of group ", key,
                                           " is at ", options_.task.ToString())
                         : AbortedBy(aborted_);
  }
  const GroupRef& group = at->second;
  if (group->id != 0 && group->id != id) {
    return Aborted("rank ", from, " is of another life of group ", key,
                   ": restart all members");
  }
  return group;
}

void RemoteCollectives::AnswerAsk(std::shared_ptr<ServerCall> call,
                                  const Bytes& bytes, bool swaps) {
  auto arrival = std::make_shared<Arrival>();
  Status s = SplitHeader(bytes, &arrival->header, &arrival->payload);
  arrival->call = call;
  arrival->swaps = swaps;
  Ending then;
  if (s.ok() && arrival->payload.size() > kSwapped) {
    s = InvalidArgument("a member sent ", arrival->payload.size(),
                        " bytes with its call, of ", kSwapped, " at most");
  }
  if (s.ok()) {
    DropIfGone(arrival);
    MutexLock lock(mutex_);
    const auto group =
        MemberGroup(arrival->header.group(), arrival->header.group_key(),
                    arrival->header.from());
    s = group.status();
    if (arrival->gone) {
      s = absl::CancelledError("the caller is gone");
    } else if (s.ok() && (*group)->id != 0) {
      Place(**group, arrival, &then);
    } else if (s.ok() && (*group)->early.size() < kMostEarly) {
      // It knows all members, which this task is yet to be told.
      (*group)->early.push_back(arrival);
    } else if (s.ok()) {
      s = absl::ResourceExhaustedError("too many calls of a group to come");
    }
  }
  if (!s.ok()) call->Finish(AnswerOf(s));
  RunAll(then);
}

void RemoteCollectives::AnswerWatch(const std::shared_ptr<ServerCall>& call,
                                    const Bytes& bytes) {
  WatchGroupRequest request;
  Status s = ReadMessage(bytes, &request);
  if (s.ok()) {
    MutexLock lock(mutex_);
    const auto group =
        MemberGroup(request.group(), request.group_key(), request.from());
    s = group.status();
    if (s.ok()) s = StatusOfGroup(**group);
    if (s.ok() && (*group)->watchers.size() >= kMostEarly) {
      s = absl::ResourceExhaustedError("too many watch a group");
    }
    if (s.ok()) (*group)->watchers.push_back(call);
  }
  if (!s.ok()) return call->Finish(AnswerOf(s));
  call->OnCancel([weak = weak_from_this(), key = request.group_key(),
                  held = std::weak_ptr<ServerCall>(call)] {
    const auto self = weak.lock();
    const auto gone = held.lock();
    if (!self || !gone) return;
    MutexLock lock(self->mutex_);
    const auto group = self->groups_.find(key);
    if (group != self->groups_.end()) std::erase(group->second->watchers, gone);
  });
}

void RemoteCollectives::AnswerEnd(const std::shared_ptr<ServerCall>& call,
                                  const Bytes& bytes) {
  EndGroupRequest request;
  Status s = ReadMessage(bytes, &request);
  Ending then;
  if (s.ok()) {
    MutexLock lock(mutex_);
    const auto group =
        MemberGroup(request.group(), request.group_key(), request.from());
    s = group.status();
    const bool known = request.code() > 0 && request.code() <= 16;
    if (s.ok() && (*group)->id == request.group()) {
      End(**group, request.group_key(),
          Status(known ? static_cast<absl::StatusCode>(request.code())
                       : absl::StatusCode::kUnknown,
                 request.message()),
          request.from(), /*tells=*/false,
          std::clamp(std::chrono::milliseconds(request.grace_ms()), kNoGrace,
                     kGraceOfLeft),
          &then);
    }
  }
  RunAll(then);
  call->Finish(AnswerOf(s, s.ok() ? WriteMessage(Nothing()) : Bytes()));
}

std::map<std::string, Method> RemoteCollectives::Methods() {
  const auto self = shared_from_this();
  using Call = std::shared_ptr<ServerCall>;
  std::map<std::string, Method> methods = ring_->Methods();
  methods[worker::kJoinGroup.path] = [self](Call call, const Bytes& bytes) {
    JoinGroupRequest request;
    const Status s = ReadMessage(bytes, &request);
    if (!s.ok()) return call->Finish(AnswerOf(s));
    self->leader_->Join(request, std::move(call));
  };
  methods[worker::kWatchGroup.path] = [self](const Call& call,
                                             const Bytes& bytes) {
    self->AnswerWatch(call, bytes);
  };
  methods[worker::kEndGroup.path] = [self](const Call& call,
                                           const Bytes& bytes) {
    self->AnswerEnd(call, bytes);
  };
  methods[worker::kSeekGroup.path] = [self](const Call& call,
                                            const Bytes& bytes) {
    self->membership_->Answer(call, bytes);
  };
  methods[worker::kSwapParts.path] = [self](Call call, const Bytes& bytes) {
    self->AnswerAsk(std::move(call), bytes, /*swaps=*/true);
  };
  methods[worker::kPullParts.path] = [self](Call call, const Bytes& bytes) {
    self->AnswerAsk(std::move(call), bytes, /*swaps=*/false);
  };
  return methods;
}

std::shared_ptr<Channel> RemoteCollectives::ChannelTo(
    const DeviceName& device) {
  if (!device.SameTask(options_.task)) {
    return options_.channel_of(device.Task());
  }
  MutexLock lock(mutex_);
  if (own_ || !aborted_.ok()) return own_;
  auto network = LocalNetwork::Create();
  if (!network.ok()) return nullptr;
  network_ = *std::move(network);
  inner_ = network_->Of("own:1");
  ListenOptions listen;
  listen.address = "own:1";
  listen.methods = Methods();
  std::string error;
  listener_ = inner_->Listen(std::move(listen), &error);
  if (listener_) own_ = inner_->Connect("own:1", {});
  return own_;
}

}  // namespace headrace::distributed
