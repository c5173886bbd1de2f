// Groups that are made anew, by generations.
#include <utility>

#include "distributed/collective/engine.h"

namespace headrace::distributed {

void RemoteCollectives::StartRing() {
  RingOptions ring;
  ring.task = options_.task;
  ring.incarnation = options_.incarnation;
  ring.leader = options_.leader;
  ring.channel_of = [weak = weak_from_this()](
                        const DeviceName& task) -> std::shared_ptr<Channel> {
    const auto self = weak.lock();
    return self ? self->ChannelTo(task) : nullptr;
  };
  ring.groups = leader_;
  ring.patience = options_.begin;
  ring.speaks = options_.rings;
  ring_ = std::make_shared<RingCollectives>(std::move(ring));
}

void RemoteCollectives::StartMembership() {
  Membership::Options o;
  o.task = options_.task;
  o.incarnation = options_.incarnation;
  o.channel_of = options_.channel_of;
  o.patience = options_.part;
  o.now = options_.now;
  o.news = options_.news;
  o.end = [weak = weak_from_this()](int64_t key, const Status& why) {
    if (const auto self = weak.lock()) self->EndByKey(key, why);
  };
  membership_ = std::make_shared<Membership>(std::move(o));
}

void RemoteCollectives::EndByKey(int64_t key, const Status& why) {
  GroupRef group;
  {
    MutexLock lock(mutex_);
    const auto at = groups_.find(key);
    if (at == groups_.end() || at->second->id == 0) return;
    group = at->second;
  }
  EndGroup(group, key, why, 0, std::chrono::milliseconds(0));
}

Status RemoteCollectives::GroupStatus(int64_t key) {
  MutexLock lock(mutex_);
  if (!aborted_.ok()) return aborted_;
  const auto at = groups_.find(key);
  // New calls fail at once, whatever grace those under way have.
  return at == groups_.end() ? OkStatus() : at->second->status;
}

RemoteCollectives::GroupRef RemoteCollectives::Renew(int64_t key) {
  EndByKey(key, Aborted("a member makes the group anew"));
  auto group = std::make_shared<Group>();
  group->changes = true;
  MutexLock lock(mutex_);
  // What peers ask that know the next generation already waits in it.
  groups_[key] = group;
  return group;
}

Status RemoteCollectives::Install(const GroupRef& group, int64_t key,
                                  const Generation& found, int* rank) {
  JoinGroupResponse response;
  response.set_group(found.group());
  *response.mutable_devices() = found.devices();
  GroupMember member;
  member.group_key = key;
  member.group_size = found.devices_size();
  std::vector<std::function<void()>> then;
  {
    MutexLock lock(mutex_);
    if (!aborted_.ok()) return aborted_;
    group->size = member.group_size;
    HR_RETURN_IF_ERROR(Complete(*group, response));
    HR_ASSIGN_OR_RETURN(*rank, RankOf(*group, member));
    for (const auto& arrival : std::exchange(group->early, {})) {
      Place(*group, arrival, &then);
    }
  }
  for (const auto& f : then) f();
  return OkStatus();
}

StatusOr<Generation> RemoteCollectives::Regrouped(const GroupRef& group,
                                                  const GroupSearch& search,
                                                  StatusOr<Generation> found) {
  int rank = 0;
  Status s = found.status();
  if (s.ok()) s = Install(group, search.group_key, *found, &rank);
  if (!s.ok()) {
    EndGroup(group, search.group_key, s, 0, std::chrono::milliseconds(0));
    return s;
  }
  Watch(group, search.group_key, rank);
  return found;
}

StatusOr<Generation> RemoteCollectives::Regroup(const GroupSearch& search) {
  {
    MutexLock lock(mutex_);
    if (!aborted_.ok()) return aborted_;
  }
  const GroupRef group = Renew(search.group_key);
  return Regrouped(group, search, membership_->Seek(search));
}

Status RemoteCollectives::BeginRegroup(const GroupSearch& search) {
  {
    MutexLock lock(mutex_);
    if (!aborted_.ok()) return aborted_;
  }
  const GroupRef group = Renew(search.group_key);
  HR_RETURN_IF_ERROR(membership_->Begin(search));
  MutexLock lock(mutex_);
  sought_[search.group_key] = group;
  return OkStatus();
}

StatusOr<std::optional<Generation>> RemoteCollectives::TryRegroup(
    const GroupSearch& search) {
  StatusOr<bool> found = membership_->Look(search);
  if (found.ok() && !*found) return std::nullopt;
  StatusOr<Generation> generation = membership_->End(search.group_key);
  if (!found.ok()) generation = found.status();
  GroupRef group;
  {
    MutexLock lock(mutex_);
    group = std::move(sought_[search.group_key]);
    sought_.erase(search.group_key);
  }
  if (!group) return InvalidArgument("no search of that group has begun");
  HR_ASSIGN_OR_RETURN(generation,
                      Regrouped(group, search, std::move(generation)));
  return std::optional<Generation>(*std::move(generation));
}

StatusOr<std::shared_ptr<Turn>> RemoteCollectives::BeginTurn(
    const CollectiveCall& call, int rank, int step, std::set<int> askers,
    std::function<void()> came) {
  GroupRef group;
  {
    MutexLock lock(mutex_);
    HR_ASSIGN_OR_RETURN(group, FindOrMake(call.member));
    if (group->id == 0) return FailedPrecondition("the group has no members");
  }
  return Begin(group, call, rank, step, std::move(askers), std::move(came));
}

Status RemoteCollectives::UnderWay(int64_t key) {
  MutexLock lock(mutex_);
  const auto at = groups_.find(key);
  return at == groups_.end() ? OkStatus() : StatusOfGroup(*at->second);
}

}  // namespace headrace::distributed
