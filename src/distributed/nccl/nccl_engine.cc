#include "distributed/nccl/nccl_engine.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"
#include "distributed/group/calls_of_members.h"
#include "ops/queue/await_change.h"

namespace headrace::distributed {
namespace {

using Clock = std::chrono::steady_clock;

// What members tell each other has one size: two bytes of its length, and it.
// The longest are a shape of 64 dimensions and an error's text.
constexpr int64_t kRow = 1024, kLengthBytes = 2;
constexpr size_t kLongestText = 512;
// Instances of what members tell each other, apart from those of programs,
// which are below 2^48 (communicators.cc).
constexpr int64_t kMeets = int64_t{1} << 61, kAgrees = int64_t{1} << 62;

}  // namespace

StatusOr<std::vector<std::string>> NcclCollectives::Told(
    const CollectiveCall& call, int64_t instance, const std::string& text) {
  const auto length = static_cast<int64_t>(text.size());
  if (length > kRow - kLengthBytes) {
    return InvalidArgument("what is told of ", CallText(call), " has ", length,
                           " bytes, of ", kRow - kLengthBytes,
                           " at most by NCCL");
  }
  CollectiveCall gather;
  gather.kind = CollectiveKind::kGather;
  gather.member = call.member;
  gather.instance_key = instance;
  gather.dtype = DType::kUint8;
  gather.shape = Shape{call.member.group_size, kRow};
  HR_ASSIGN_OR_RETURN(gather.input,
                      Tensor::Allocate(DType::kUint8, Shape{1, kRow}));
  auto* row = static_cast<unsigned char*>(gather.input.raw());
  std::memset(row, 0, kRow);
  row[0] = static_cast<unsigned char>(length & 0xff);
  row[1] = static_cast<unsigned char>(length >> 8);
  std::memcpy(row + kLengthBytes, text.data(), text.size());
  HR_ASSIGN_OR_RETURN(const Tensor all, options_.own->Run(gather));
  std::vector<std::string> rows;
  for (int64_t r = 0; r < call.member.group_size; ++r) {
    const auto* at = static_cast<const unsigned char*>(all.raw()) + r * kRow;
    const int64_t size = at[0] + 256 * at[1];
    if (size > kRow - kLengthBytes) {
      return InvalidArgument("rank ", r, " tells ", size, " bytes of ", kRow);
    }
    rows.emplace_back(reinterpret_cast<const char*>(at) + kLengthBytes, size);
  }
  return rows;
}

NcclGroup::Patience NcclCollectives::PatienceOf(
    const CollectiveCall& call, const GroupMembers& members) const {
  NcclGroup::Patience patience;
  patience.time = distributed::PatienceOf(call.member, options_.patience);
  patience.late = [call_text = CallText(call), names = members.names,
                   rank = members.rank](std::chrono::duration<double> waited) {
    return DeadlineExceeded(
        "Collective has timed out during execution: ", MemberText(*names, rank),
        " waited ", absl::StrFormat("%.1f", waited.count()),
        " s for NCCL and the other ", names->size() - 1, " members in ",
        call_text);
  };
  return patience;
}

// --- who ---

StatusOr<std::unique_ptr<NcclGroup>> NcclCollectives::MeetNow(
    const CollectiveCall& call, const GroupMembers& members) {
  const auto library = options_.library();
  NcclMember own;
  own.set_host(options_.host);
  if (!library.ok()) {
    own.set_missing(
        std::string(library.status().message().substr(0, kLongestText)));
  } else {
    own.set_gpus((*library)->gpus());
    if (members.rank == 0) {
      HR_ASSIGN_OR_RETURN(*own.mutable_id(), (*library)->NewId());
    }
  }
  HR_ASSIGN_OR_RETURN(const auto rows,
                      Told(call, kMeets, own.SerializeAsString()));
  std::vector<NcclMember> all(rows.size());
  int have = 0, before = 0;
  for (size_t r = 0; r < rows.size(); ++r) {
    if (!all[r].ParseFromString(rows[r])) {
      return InvalidArgument(MemberText(*members.names, static_cast<int>(r)),
                             " says nothing of NCCL that is understood");
    }
    have += all[r].missing().empty() ? 1 : 0;
    const bool here = all[r].host() == own.host();
    before += here && static_cast<int>(r) < members.rank ? 1 : 0;
  }
  if (have == 0) return std::unique_ptr<NcclGroup>();
  for (size_t r = 0; r < all.size(); ++r) {
    if (all[r].missing().empty()) continue;
    return FailedPrecondition("CommunicationImplementation.NCCL: ",
                              MemberText(*members.names, static_cast<int>(r)),
                              " has no NCCL (", all[r].missing(), "), which ",
                              have, " of the ", all.size(), " members have");
  }
  if (before >= own.gpus()) {
    return FailedPrecondition("CommunicationImplementation.NCCL: ",
                              MemberText(*members.names, members.rank),
                              " is member ", before + 1, " of the group on ",
                              own.host(), ", which has ", own.gpus(),
                              " GPUs: each member needs one");
  }
  NcclGroup::Options options;
  options.library = *library;
  options.gpu = before;
  options.rank = members.rank;
  options.size = static_cast<int>(all.size());
  options.id = all[0].id();
  options.over = members.status;
  return NcclGroup::Make(std::move(options), PatienceOf(call, members));
}

StatusOr<bool> NcclCollectives::Meet(const CollectiveCall& call,
                                     const GroupMembers& members,
                                     const GroupRef& group) {
  using State = Group::State;
  {
    MutexLock lock(mutex_);
    // The members' first calls may be several threads'.
    while (group->state == State::kMeets) {
      HR_RETURN_IF_ERROR(AwaitChange(mutex_, changed_));
    }
    if (group->state == State::kOver) return group->why;
    if (group->state != State::kNew) return group->state == State::kByGpus;
    group->state = State::kMeets;
  }
  auto met = MeetNow(call, members);
  MutexLock lock(mutex_);
  changed_.NotifyAll();
  if (!met.ok()) {
    group->state = State::kOver;
    group->why = met.status();
    return met.status();
  }
  group->gpus = *std::move(met);
  group->state = group->gpus ? State::kByGpus : State::kOtherwise;
  return group->gpus != nullptr;
}

// --- what ---

Status NcclCollectives::Agree(const CollectiveCall& call,
                              const GroupMembers& members, int64_t made,
                              int64_t* place, int* source) {
  NcclCall own;
  *own.mutable_call() = HeaderOf(call, members.group, members.rank, 0, 0);
  own.set_gives(call.input.has_buffer());
  own.set_place(made);
  HR_ASSIGN_OR_RETURN(const auto rows, Told(call, kAgrees ^ call.instance_key,
                                            own.SerializeAsString()));
  std::vector<int> sources;
  for (int r = 0; r < static_cast<int>(rows.size()); ++r) {
    NcclCall told;
    if (!told.ParseFromString(rows[r])) {
      return InvalidArgument(MemberText(*members.names, r),
                             " says nothing of its call that is understood");
    }
    HR_ASSIGN_OR_RETURN(const CollectiveCall its, CallOf(told.call()));
    if (Status s = CheckAgreement(call, its, (*members.names)[r]); !s.ok()) {
      return DisagreeError(s, *members.names, members.rank, r);
    }
    if (told.gives()) sources.push_back(r);
    if (r == 0) *place = told.place();
  }
  if (call.kind != CollectiveKind::kBroadcast) return OkStatus();
  HR_RETURN_IF_ERROR(CheckSources(call.instance_key, sources,
                                  static_cast<int64_t>(rows.size())));
  *source = sources[0];
  return OkStatus();
}

// --- in turn ---

Status NcclCollectives::AwaitTurn(const CollectiveCall& call,
                                  const GroupMembers& members, Group& group,
                                  int64_t place) {
  const NcclGroup::Patience patience = PatienceOf(call, members);
  const Clock::time_point since = Clock::now();
  MutexLock lock(mutex_);
  while (true) {
    HR_RETURN_IF_ERROR(group.why);
    if (group.next == place) return OkStatus();
    if (place < group.next) {
      return Internal(CallText(call), " has place ", place,
                      " in its group's order, which is at ", group.next);
    }
    {
      MutexUnlock open(mutex_);
      HR_RETURN_IF_ERROR(members.status());
    }
    if (Clock::now() - since > patience.time) {
      return patience.late(Clock::now() - since);
    }
    HR_RETURN_IF_ERROR(AwaitChange(mutex_, changed_));
  }
}

StatusOr<Tensor> NcclCollectives::RunByGpus(const CollectiveCall& call,
                                            const GroupMembers& members,
                                            Group& group) {
  int64_t made = 0, place = 0;
  int source = 0;
  {
    MutexLock lock(mutex_);
    if (members.rank == 0) made = group.made++;
  }
  HR_RETURN_IF_ERROR(Agree(call, members, made, &place, &source));
  HR_RETURN_IF_ERROR(AwaitTurn(call, members, group, place));
  HR_ASSIGN_OR_RETURN(Tensor result,
                      group.gpus->Run(call, source, PatienceOf(call, members)));
  MutexLock lock(mutex_);
  ++group.next;
  changed_.NotifyAll();
  return result;
}

StatusOr<Tensor> NcclCollectives::Run(const CollectiveCall& call) {
  // NCCL has no all-to-all.
  if (!call.nccl || call.kind == CollectiveKind::kAllToAll) {
    return options_.otherwise->Run(call);
  }
  HR_ASSIGN_OR_RETURN(const GroupMembers members,
                      options_.own->MembersOf(call.member));
  if (members.names->size() == 1) return ResultAlone(call);
  const std::pair<int64_t, int> key(call.member.group_key, members.rank);
  GroupRef group, last;  // ends behind the lock
  {
    MutexLock lock(mutex_);
    GroupRef& kept = groups_[key];
    if (!kept || kept->number != members.group) {
      last = std::exchange(kept, std::make_shared<Group>());
      kept->number = members.group;
    }
    group = kept;
  }
  const StatusOr<bool> by_gpus = Meet(call, members, group);
  if (by_gpus.ok() && !*by_gpus) return options_.otherwise->Run(call);
  StatusOr<Tensor> result =
      by_gpus.ok() ? RunByGpus(call, members, *group) : by_gpus.status();
  if (result.ok()) return result;
  // Others would wait for ever for a member that went away.
  members.end(result.status());
  MutexLock lock(mutex_);
  group->state = Group::State::kOver;
  group->why.Update(result.status());
  changed_.NotifyAll();
  // It ends, and its communicator, with the last call that is in it.
  if (groups_[key] == group) groups_.erase(key);
  return result;
}

}  // namespace headrace::distributed
