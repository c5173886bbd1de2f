#include "distributed/group/leader.h"

#include <set>

#include "absl/strings/str_format.h"
#include "base/device_name.h"
#include "distributed/messages.h"
#include "distributed/request_ids.h"

namespace headrace::distributed {
namespace {

// What sorts as ranks do.
StatusOr<std::string> PlaceOf(const JoinGroupRequest& request) {
  if (request.rank() >= 0) return absl::StrFormat("%010d", request.rank());
  DeviceName name;
  if (!DeviceName::Parse(request.device(), &name) || !name.full()) {
    return InvalidArgument("a member of a group has no device: ",
                           request.device());
  }
  return absl::StrFormat("%s/%010d/%s/%010d", *name.job, *name.task, *name.type,
                         *name.id);
}

std::string NameOfMember(const JoinGroupRequest& request) {
  if (request.rank() < 0) return absl::StrCat("Device ", request.device());
  return absl::StrCat("Rank ", request.rank(), " (", request.device(), ")");
}

// What a group, a member and a call that waits take beside their texts, as
// whoever asks has the leader keep them.
constexpr size_t kOfGroup = 256, kOfMember = 512, kOfCall = 1024;

// Of a member, and of its name in the answer.
size_t BytesOf(const JoinGroupRequest& request,
               const tensorflow::DeviceAttributes* attributes) {
  const size_t more = attributes ? 2 * attributes->SpaceUsedLong() : 0;
  return kOfMember + 3 * request.device().size() + more;
}

void EndAll(const std::vector<std::shared_ptr<ServerCall>>& calls,
            const Status& why) {
  for (const auto& call : calls) call->Finish(AnswerOf(why));
}

}  // namespace

void GroupLeader::Join(const JoinGroupRequest& request,
                       std::shared_ptr<ServerCall> call) {
  JoinAs(request, nullptr, std::move(call));
}

void GroupLeader::Join(const tensorflow::CompleteGroupRequest& request,
                       std::shared_ptr<ServerCall> call) {
  const tensorflow::DeviceAttributes& device = request.device_attributes();
  DeviceName name;
  if (!DeviceName::Parse(device.name(), &name) || !name.full() ||
      *name.type != request.device_type()) {
    return call->Finish(AnswerOf(InvalidArgument(
        "a member of a group of devices of type ", request.device_type(),
        " is no such device: ", device.name())));
  }
  JoinGroupRequest same;
  same.set_group_key(request.group_key());
  same.set_group_size(request.group_size());
  same.set_rank(-1);
  same.set_device(device.name());
  same.set_incarnation(device.incarnation());
  JoinAs(same, &device, std::move(call));
}

void GroupLeader::JoinAs(const JoinGroupRequest& request,
                         const tensorflow::DeviceAttributes* attributes,
                         std::shared_ptr<ServerCall> call) {
  if (request.group_size() <= 0 || request.rank() >= request.group_size()) {
    return call->Finish(AnswerOf(InvalidArgument(NameOfMember(request),
                                                 " joins a group of size ",
                                                 request.group_size())));
  }
  Calls waiting, replaced;
  std::shared_ptr<const Bytes> whole;
  Status s;
  {
    MutexLock lock(mutex_);
    const auto at = groups_.find(request.group_key());
    const size_t more = kOfCall + BytesOf(request, attributes);
    if (at == groups_.end() || !at->second.whole) s = CheckRoom(request, more);
    if (s.ok()) {
      Group& group = groups_[request.group_key()];
      s = Add(group, request, attributes, call, &waiting, &replaced);
      whole = group.whole;
      // Of a group that cannot be.
      if (!s.ok() && !whole) Erase(request.group_key());
    }
  }
  EndAll(replaced, Aborted(NameOfMember(request), " was started again"));
  if (!s.ok()) {
    waiting.push_back(std::move(call));
    return EndAll(waiting, s);
  }
  if (whole) {
    waiting.push_back(std::move(call));
    for (const auto& c : waiting) c->Finish(AnswerOf(OkStatus(), *whole));
    return;
  }
  call->OnCancel([self = weak_from_this(), key = request.group_key(),
                  held = std::weak_ptr<ServerCall>(call)] {
    const auto leader = self.lock();
    const auto gone = held.lock();
    if (leader && gone) leader->Remove(key, gone);
  });
}

Bytes GroupLeader::AnswerOfWhole(const JoinGroupRequest& request,
                                 const Group& group) {
  if (!group.rings) {
    JoinGroupResponse whole;
    whole.set_group(static_cast<uint64_t>(NewRequestId()));
    for (const auto& [unused, m] : group.members) whole.add_devices(m.device);
    return WriteMessage(whole);
  }
  tensorflow::CompleteGroupResponse whole;
  whole.set_group_key(request.group_key());
  whole.set_group_size(request.group_size());
  std::set<std::string> tasks;
  for (const auto& [unused, m] : group.members) {
    *whole.add_device_attributes() = m.attributes;
    whole.set_device_type(m.attributes.device_type());
    DeviceName name;
    DeviceName::Parse(m.device, &name);
    tasks.insert(name.Task().ToString());
  }
  whole.set_num_tasks(static_cast<int32_t>(tasks.size()));
  return WriteMessage(whole);
}

StatusOr<int> GroupLeader::RankIn(int64_t group_key,
                                  const std::string& device) {
  MutexLock lock(mutex_);
  const auto at = groups_.find(group_key);
  if (at == groups_.end()) {
    return FailedPrecondition(
        "group ", group_key,
        " not found. This normally means the server has restarted");
  }
  if (at->second.rings && at->second.whole) {
    int rank = 0;
    for (const auto& [unused, member] : at->second.members) {
      if (member.device == device) return rank;
      ++rank;
    }
  }
  return InvalidArgument("device ", device, " is in no group ", group_key);
}

Status GroupLeader::CheckRoom(const JoinGroupRequest& request, size_t more) {
  const bool is_new = !groups_.contains(request.group_key());
  if ((!is_new || groups_.size() < limits_.groups) &&
      bytes_ + more + (is_new ? kOfGroup : 0) <= limits_.bytes) {
    return OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      NameOfMember(request), " cannot join group ", request.group_key(),
      ": the task that leads keeps ", groups_.size(), " groups and ", bytes_,
      " bytes of them, and may keep ", limits_.groups, " and ", limits_.bytes,
      ". A reset of the cluster's containers forgets them"));
}

Status GroupLeader::CheckMember(const Group& group,
                                const JoinGroupRequest& request, bool rings,
                                const std::string& place) {
  if (group.size != request.group_size()) {
    return Internal(NameOfMember(request), " is joining a group with size",
                    request.group_size(), ", but that group has size ",
                    group.size, " (group_key=", request.group_key(), ")");
  }
  if (group.rings != rings) {
    return InvalidArgument(
        NameOfMember(request), group.rings ? " does not speak" : " speaks",
        " TensorFlow's messages, as the other members of group ",
        request.group_key(), group.rings ? " do" : " do not",
        ": all members are to ask for CommunicationImplementation.RING, those "
        "of Headrace with HEADRACE_TENSORFLOW_PEERS=1, or none");
  }
  if (group.ranked != (request.rank() >= 0)) {
    return InvalidArgument(
        "group_key ", request.group_key(), " is that of members which ",
        group.ranked ? "have ranks of their own" : "are devices",
        "; take another one for these");
  }
  const auto at = group.members.find(place);
  if (at != group.members.end() && at->second.device != request.device()) {
    return InvalidArgument("Duplicate ranks specified for group members: rank ",
                           request.rank(), " is ", at->second.device, " and ",
                           request.device());
  }
  if (!group.whole) return OkStatus();
  if (at == group.members.end()) {
    return Internal(NameOfMember(request),
                    " is joining a group that is already full (group_key=",
                    request.group_key(), ")");
  }
  if (at->second.incarnation == request.incarnation()) return OkStatus();
  return Aborted(
      NameOfMember(request),
      " was restarted, and the group (group_key=", request.group_key(),
      ") is that of its earlier life: restart all members");
}

// `waiting`: who gets the answer, or the error, beside `call`. `replaced`:
// calls of an earlier life of the member.
Status GroupLeader::Add(Group& group, const JoinGroupRequest& request,
                        const tensorflow::DeviceAttributes* attributes,
                        const std::shared_ptr<ServerCall>& call, Calls* waiting,
                        Calls* replaced) {
  // Less is as much more as wraps around.
  const auto keep = [&](size_t more) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    group.bytes += more;
    bytes_ += more;
  };
  if (group.members.empty()) {
    group.size = request.group_size();
    group.ranked = request.rank() >= 0;
    group.rings = attributes != nullptr;
    if (group.bytes == 0) keep(kOfGroup);
  }
  HR_ASSIGN_OR_RETURN(const std::string place, PlaceOf(request));
  if (Status s = CheckMember(group, request, attributes != nullptr, place);
      !s.ok()) {
    if (!group.whole) *waiting = TakeWaiting(group);
    return s;
  }
  if (group.whole) return OkStatus();
  Member& member = group.members[place];
  // A restarted one comes again; nobody has been told of the first.
  if (member.incarnation != request.incarnation()) {
    *replaced = std::exchange(member.calls, {});
    keep(-(kOfCall * replaced->size()));
  }
  const size_t now = BytesOf(request, attributes);
  keep(now - member.bytes);
  member.bytes = now;
  member.device = request.device();
  member.incarnation = request.incarnation();
  if (attributes != nullptr) member.attributes = *attributes;
  if (static_cast<int>(group.members.size()) < group.size) {
    member.calls.push_back(call);
    keep(kOfCall);
    return OkStatus();
  }
  group.whole = std::make_shared<const Bytes>(AnswerOfWhole(request, group));
  *waiting = TakeWaiting(group);
  return OkStatus();
}

GroupLeader::Calls GroupLeader::TakeWaiting(Group& group) {
  Calls waiting;
  for (auto& [place, member] : group.members) {
    for (auto& c : std::exchange(member.calls, {})) {
      waiting.push_back(std::move(c));
    }
  }
  group.bytes -= waiting.size() * kOfCall;
  bytes_ -= waiting.size() * kOfCall;
  return waiting;
}

void GroupLeader::Erase(int64_t group_key) {
  const auto at = groups_.find(group_key);
  bytes_ -= at->second.bytes;
  groups_.erase(at);
}

void GroupLeader::Remove(int64_t group_key,
                         const std::shared_ptr<ServerCall>& call) {
  MutexLock lock(mutex_);
  const auto at = groups_.find(group_key);
  if (at == groups_.end() || at->second.whole) return;
  Group& group = at->second;
  for (auto it = group.members.begin(); it != group.members.end(); ++it) {
    Member& member = it->second;
    if (std::erase(member.calls, call) == 0) continue;
    size_t less = kOfCall;
    const bool is_gone = member.calls.empty();
    if (is_gone) less += member.bytes;
    group.bytes -= less;
    bytes_ -= less;
    // It may come again, or another one in its place.
    if (is_gone) group.members.erase(it);
    break;
  }
  if (group.members.empty()) Erase(group_key);
}

void GroupLeader::Forget(const Status& why) {
  Calls waiting;
  {
    MutexLock lock(mutex_);
    for (auto& [key, group] : groups_) {
      for (auto& c : TakeWaiting(group)) waiting.push_back(std::move(c));
    }
    groups_.clear();
    bytes_ = 0;
  }
  EndAll(waiting, why);
}

size_t GroupLeader::groups() {
  MutexLock lock(mutex_);
  return groups_.size();
}

size_t GroupLeader::bytes() {
  MutexLock lock(mutex_);
  return bytes_;
}

}  // namespace headrace::distributed
