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
  Calls waiting;
  std::shared_ptr<const Bytes> whole;
  Status s;
  {
    MutexLock lock(mutex_);
    Group& group = groups_[request.group_key()];
    s = Add(group, request, attributes, call, &waiting);
    whole = group.whole;
    // Of a group that cannot be.
    if (!s.ok() && !whole) groups_.erase(request.group_key());
  }
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
  if (at != groups_.end() && at->second.rings && at->second.whole) {
    int rank = 0;
    for (const auto& [unused, member] : at->second.members) {
      if (member.device == device) return rank;
      ++rank;
    }
  }
  return InvalidArgument("device ", device, " is in no group ", group_key);
}

// `waiting`: who gets the answer, or the error, beside `call`.
Status GroupLeader::Add(Group& group, const JoinGroupRequest& request,
                        const tensorflow::DeviceAttributes* attributes,
                        const std::shared_ptr<ServerCall>& call,
                        Calls* waiting) {
  const bool ranked = request.rank() >= 0;
  const bool is_new = group.members.empty();
  if (is_new) {
    group.size = request.group_size();
    group.ranked = ranked;
    group.rings = attributes != nullptr;
  }
  const auto take_waiting = [&] {
    for (auto& [place, member] : group.members) {
      for (auto& c : std::exchange(member.calls, {})) {
        waiting->push_back(std::move(c));
      }
    }
  };
  HR_ASSIGN_OR_RETURN(const std::string place, PlaceOf(request));
  if (group.size != request.group_size()) {
    if (!group.whole) take_waiting();
    return Internal(NameOfMember(request), " is joining a group with size",
                    request.group_size(), ", but that group has size ",
                    group.size, " (group_key=", request.group_key(), ")");
  }
  if (group.rings != (attributes != nullptr)) {
    if (!group.whole) take_waiting();
    return InvalidArgument(
        NameOfMember(request), group.rings ? " does not speak" : " speaks",
        " TensorFlow's messages, as the other members of group ",
        request.group_key(), group.rings ? " do" : " do not",
        ": all members are to ask for CommunicationImplementation.RING, those "
        "of Headrace with HEADRACE_TENSORFLOW_PEERS=1, or none");
  }
  if (group.ranked != ranked) {
    if (!group.whole) take_waiting();
    return InvalidArgument(
        "group_key ", request.group_key(), " is that of members which ",
        group.ranked ? "have ranks of their own" : "are devices",
        "; take another one for these");
  }
  const auto at = group.members.find(place);
  if (at != group.members.end() && at->second.device != request.device()) {
    if (!group.whole) take_waiting();
    return InvalidArgument("Duplicate ranks specified for group members: rank ",
                           request.rank(), " is ", at->second.device, " and ",
                           request.device());
  }
  if (group.whole) {
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
  Member& member = group.members[place];
  member.device = request.device();
  // A restarted one comes again; nobody has been told of the first.
  if (member.incarnation != request.incarnation()) member.calls.clear();
  member.incarnation = request.incarnation();
  if (attributes != nullptr) member.attributes = *attributes;
  if (static_cast<int>(group.members.size()) < group.size) {
    member.calls.push_back(call);
    return OkStatus();
  }
  group.whole = std::make_shared<const Bytes>(AnswerOfWhole(request, group));
  take_waiting();
  return OkStatus();
}

void GroupLeader::Remove(int64_t group_key,
                         const std::shared_ptr<ServerCall>& call) {
  MutexLock lock(mutex_);
  const auto at = groups_.find(group_key);
  if (at == groups_.end() || at->second.whole) return;
  auto& members = at->second.members;
  for (auto it = members.begin(); it != members.end(); ++it) {
    if (std::erase(it->second.calls, call) == 0) continue;
    // It may come again, or another one in its place.
    if (it->second.calls.empty()) members.erase(it);
    break;
  }
  if (members.empty()) groups_.erase(at);
}

void GroupLeader::Forget(const Status& why) {
  Calls waiting;
  {
    MutexLock lock(mutex_);
    for (auto& [key, group] : groups_) {
      for (auto& [place, member] : group.members) {
        waiting.insert(waiting.end(), member.calls.begin(), member.calls.end());
      }
    }
    groups_.clear();
  }
  EndAll(waiting, why);
}

}  // namespace headrace::distributed
