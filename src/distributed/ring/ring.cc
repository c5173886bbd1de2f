#include "distributed/ring/ring.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "distributed/group/awaited.h"
#include "distributed/group/calls_of_members.h"
#include "distributed/messages.h"
#include "distributed/request_ids.h"
#include "distributed/service.h"
#include "distributed/wire/buf_codec.h"
#include "distributed/wire/methods.h"
#include "tensor/tensor_proto.h"

namespace headrace::distributed {
namespace {

// What is remembered of a member's collectives: graphs name them anew in each
// step, and ask the leader about each.
constexpr size_t kInstances = 1024;
// Of a processor, as tasks tell it of theirs.
constexpr int64_t kProcessorBytes = 256 << 20;

Status AbortedBy(const Status& why) {
  return Status(why.code(),
                absl::StrCat("Collective ops is aborted by: ", why.message(),
                             "\nThe error could be from a previous "
                             "operation. Restart your program to reset."));
}

// What TensorFlow's tasks call an operation in their errors.
const char* NameOf(CollectiveKind kind, bool sends) {
  switch (kind) {
    case CollectiveKind::kReduce:
      return "CollectiveReduceV2";
    case CollectiveKind::kBroadcast:
      return sends ? "CollectiveBcastSend" : "CollectiveBcastRecv";
    case CollectiveKind::kGather:
      return "CollectiveGatherV2";
    case CollectiveKind::kAllToAll:
      return "CollectiveAllToAllV2";
    case CollectiveKind::kReduceScatter:
      return "CollectiveReduceScatterV2";
  }
  return "";
}

tensorflow::CompleteInstanceRequest RequestOf(const CollectiveCall& call,
                                              const std::string& device) {
  tensorflow::CompleteInstanceRequest request;
  const bool sends = call.input.has_buffer();
  request.set_name(NameOf(call.kind, sends));
  request.set_type(static_cast<int>(call.kind));
  request.set_data_type(static_cast<tensorflow::DataType>(call.dtype));
  for (const int64_t dim : call.shape.dims()) {
    request.mutable_shape()->add_dim()->set_size(dim);
  }
  if (call.kind == CollectiveKind::kReduceScatter && call.shape.rank() > 0) {
    request.mutable_shape()->mutable_dim(0)->set_size(call.shape[0] /
                                                      call.member.group_size);
  }
  request.set_group_key(static_cast<int32_t>(call.member.group_key));
  request.set_group_size(static_cast<int32_t>(call.member.group_size));
  request.set_instance_key(static_cast<int32_t>(call.instance_key));
  request.set_device_type("CPU");
  request.set_device(device);
  if (call.kind == CollectiveKind::kBroadcast) {
    request.add_subdiv_offset(0);
    request.set_is_source(sends);
  }
  return request;
}

Status CheckKeys(const CollectiveCall& call) {
  for (const int64_t key : {call.member.group_key, call.instance_key}) {
    if (key != static_cast<int32_t>(key)) {
      return InvalidArgument("key ", key, " of a collective has over 32 bits");
    }
  }
  if (call.member.rank < 0) return OkStatus();
  return Unimplemented(
      "members with ranks of their own (communicators) in a group by "
      "CommunicationImplementation.RING of HEADRACE_TENSORFLOW_PEERS=1");
}

}  // namespace

DeviceName RingCollectives::DeviceOf(const GroupMember& member) const {
  DeviceName name = options_.task;
  name.type = "CPU";
  name.id = member.processor;
  return name;
}

Status RingCollectives::StatusOfGroup(const Group& group) {
  MutexLock lock(mutex_);
  if (!aborted_.ok()) return AbortedBy(aborted_);
  return group.status.ok() ? OkStatus() : AbortedBy(group.status);
}

StatusOr<std::function<StatusOr<Answer>()>> RingCollectives::Start(
    const GroupRef& group, const DeviceName& task, const char* path,
    const google::protobuf::MessageLite& request, const GroupMember& member) {
  HR_RETURN_IF_ERROR(StatusOfGroup(*group));
  const std::shared_ptr<Channel> channel = options_.channel_of(task.Task());
  if (!channel) {
    return InvalidArgument("No worker known as ", task.ToString());
  }
  const auto patience = PatienceOf(member, options_.patience);
  CallOptions options;
  options.deadline = Clock::now() + patience;
  // Only who tells of the group may yet have to be started.
  options.wait_for_ready = StringView(path) == worker::kCompleteGroup.path;
  const auto awaited = std::make_shared<Awaited>();
  const std::shared_ptr<ClientCall> call = channel->Start(
      path, WriteMessage(request), options, Awaited::Taker(awaited));
  {
    MutexLock lock(mutex_);
    group->calls.insert(call);
  }
  // Let go of, the call ends.
  const std::shared_ptr<void> scope(
      nullptr, [self = shared_from_this(), group, call](void*) {
        call->Cancel();
        MutexLock lock(self->mutex_);
        group->calls.erase(call);
      });
  return [this, group, awaited, scope, patience,
          task = task.ToString()]() -> StatusOr<Answer> {
    HR_ASSIGN_OR_RETURN(const Answer answer, awaited->Wait());
    if (answer.ok()) return answer;
    HR_RETURN_IF_ERROR(StatusOfGroup(*group));
    const Status s = StatusOf(answer);
    if (absl::IsDeadlineExceeded(s)) {
      return absl::DeadlineExceededError(absl::StrCat(
          "Collective has timed out waiting for other workers: ", task,
          " did not answer within ",
          absl::StrFormat("%.1f", patience.count() / 1e3), " s"));
    }
    return Status(s.code(), absl::StrCat(task, ": ", s.message()));
  };
}

// --- who and what ---

StatusOr<int> RingCollectives::RankOf(const GroupMember& member, Group& group) {
  const std::string own = DeviceOf(member).ToString();
  for (size_t i = 0; i < group.devices.size(); ++i) {
    if (group.devices[i].name() == own) return static_cast<int>(i);
  }
  return Internal("device ", own, " is in no group ", member.group_key);
}

Status RingCollectives::JoinGroup(const GroupMember& member, GroupRef* group,
                                  int* rank) {
  {
    MutexLock lock(mutex_);
    if (!aborted_.ok()) return AbortedBy(aborted_);
    GroupRef& found = groups_[member.group_key];
    if (!found) {
      found = std::make_shared<Group>();
      found->size = member.group_size;
    }
    *group = found;
    HR_RETURN_IF_ERROR(found->status.ok() ? OkStatus()
                                          : AbortedBy(found->status));
    if (found->size != member.group_size) {
      return Internal("Device ", DeviceOf(member).ToString(),
                      " is joining a group with size", member.group_size,
                      ", but that group has size ", found->size,
                      " (group_key=", member.group_key, ")");
    }
    if (!found->devices.empty()) {
      const StatusOr<int> known = RankOf(member, *found);
      if (known.ok() && found->joined.contains(*known)) {
        *rank = *known;
        return OkStatus();
      }
    }
  }
  tensorflow::CompleteGroupRequest request;
  request.set_group_key(static_cast<int32_t>(member.group_key));
  request.set_group_size(static_cast<int32_t>(member.group_size));
  request.set_device_type("CPU");
  auto& device = *request.mutable_device_attributes();
  device.set_name(DeviceOf(member).ToString());
  device.set_device_type("CPU");
  device.set_memory_limit(kProcessorBytes);
  device.mutable_locality();
  device.set_incarnation(options_.incarnation);
  device.set_xla_global_id(-1);
  HR_ASSIGN_OR_RETURN(const auto wait,
                      Start(*group, options_.leader,
                            worker::kCompleteGroup.path, request, member));
  HR_ASSIGN_OR_RETURN(const Answer answer, wait());
  tensorflow::CompleteGroupResponse response;
  HR_RETURN_IF_ERROR(ReadMessage(answer.body, &response));
  std::vector<DeviceName> names;
  for (const auto& d : response.device_attributes()) {
    if (!DeviceName::Parse(d.name(), &names.emplace_back()) ||
        !names.back().full()) {
      return InvalidArgument("a member of a group is no device: ", d.name());
    }
  }
  MutexLock lock(mutex_);
  if (static_cast<int64_t>(names.size()) != (*group)->size) {
    return InvalidArgument("the leader tells of ", names.size(),
                           " members of a group of ", (*group)->size);
  }
  (*group)->devices.assign(response.device_attributes().begin(),
                           response.device_attributes().end());
  (*group)->names = std::move(names);
  HR_ASSIGN_OR_RETURN(*rank, RankOf(member, **group));
  (*group)->joined.insert(*rank);
  return OkStatus();
}

// The rank that sends a broadcast, else -1, once the leader knows that all
// agree.
StatusOr<int> RingCollectives::SourceOf(const GroupRef& group, int rank,
                                        const CollectiveCall& call) {
  const std::string device = DeviceOf(call.member).ToString();
  const std::pair<int, int64_t> key(rank, call.instance_key);
  const bool broadcasts = call.kind == CollectiveKind::kBroadcast;
  {
    MutexLock lock(mutex_);
    const auto at = group->instances.find(key);
    if (at != group->instances.end() &&
        CheckAgreement(at->second.call, call, device).ok() &&
        (at->second.source == rank) ==
            (broadcasts && call.input.has_buffer())) {
      return at->second.source;
    }
  }
  HR_ASSIGN_OR_RETURN(
      const auto wait,
      Start(group, options_.leader, worker::kCompleteInstance.path,
            RequestOf(call, device), call.member));
  HR_ASSIGN_OR_RETURN(const Answer answer, wait());
  tensorflow::CompleteInstanceResponse response;
  HR_RETURN_IF_ERROR(ReadMessage(answer.body, &response));
  Instance instance{call, broadcasts ? response.source_rank() : -1};
  instance.call.input = Tensor();
  if (broadcasts && (instance.source < 0 || instance.source >= group->size ||
                     (instance.source == rank) != call.input.has_buffer())) {
    return Internal("the leader names rank ", instance.source,
                    " the source of a broadcast among ", group->size);
  }
  MutexLock lock(mutex_);
  if (group->instances.size() >= kInstances) {
    group->instances.erase(group->instances.begin());
  }
  const int source = instance.source;
  group->instances.insert_or_assign(key, std::move(instance));
  return source;
}

// --- parts ---

StatusOr<RingMeeting::Take> RingCollectives::AskForPart(
    const GroupRef& group, int rank, const CollectiveCall& call, int from,
    const std::string& key, int64_t size) {
  tensorflow::RecvBufRequest request;
  DeviceName task;
  {
    MutexLock lock(mutex_);
    const auto& source = group->devices[from];
    request.set_src_device(source.name());
    request.set_src_incarnation(source.incarnation());
    request.set_dst_device(group->devices[rank].name());
    task = group->names[from];
  }
  request.set_buf_rendezvous_key(key);
  request.set_num_bytes(size);
  request.mutable_client_locality();
  request.mutable_server_locality();
  request.set_request_id(NewRequestId());
  HR_ASSIGN_OR_RETURN(auto wait, Start(group, task, worker::kRecvBuf.path,
                                       request, call.member));
  return [wait = std::move(wait), size]() -> StatusOr<Bytes> {
    HR_ASSIGN_OR_RETURN(const Answer answer, wait());
    return DecodeBuf(answer.body, static_cast<size_t>(size));
  };
}

StatusOr<Tensor> RingCollectives::RunIn(const GroupRef& group, int rank,
                                        const CollectiveCall& call) {
  HR_ASSIGN_OR_RETURN(const int source, SourceOf(group, rank, call));
  const std::string name = absl::StrCat(call.member.group_key, ":",
                                        call.instance_key, ":", TurnOf(call));
  return GoRound(RingMeeting{
      call, rank, static_cast<int>(group->size), source,
      [&](const std::string& part, Bytes content) {
        exchange_->Give(call.member.group_key, name + part, std::move(content));
      },
      [&](int from, const std::string& part, int64_t size) {
        return AskForPart(group, rank, call, from, name + part, size);
      }});
}

Status RingCollectives::Join(const GroupMember& member) {
  GroupRef group;
  int rank = 0;
  return JoinGroup(member, &group, &rank);
}

void RingCollectives::TellTurn(const GroupMember& member, int64_t instance_key,
                               const LoopTurn& turn) {
  MutexLock lock(mutex_);
  turns_[{member.group_key, instance_key, member.processor}] =
      absl::StrCat(LoopFrame(turn.loop), ":", turn.number);
}

std::string RingCollectives::TurnOf(const CollectiveCall& call) {
  MutexLock lock(mutex_);
  const auto found = turns_.extract(
      {call.member.group_key, call.instance_key, call.member.processor});
  return found ? found.mapped() : "0:0";
}

StatusOr<Tensor> RingCollectives::Run(const CollectiveCall& call) {
  HR_RETURN_IF_ERROR(CheckKeys(call));
  GroupRef group;
  int rank = 0;
  HR_RETURN_IF_ERROR(JoinGroup(call.member, &group, &rank));
  if (group->size == 1) return ResultAlone(call);
  const std::pair<int, int64_t> key(rank, call.instance_key);
  int64_t failures = 0;  // before this call
  {
    MutexLock lock(mutex_);
    failures = failures_;
    if (!group->running.insert(key).second) {
      return InvalidArgument("rank ", rank, " takes part in instance ",
                             call.instance_key, " of group ",
                             call.member.group_key,
                             " by two calls at the same time");
    }
  }
  StatusOr<Tensor> result = RunIn(group, rank, call);
  {
    MutexLock lock(mutex_);
    group->running.erase(key);
    if (result.ok() && failures == failures_) failed_ = OkStatus();
  }
  // Others would wait for ever for a member that went away.
  if (!result.ok()) End(call.member.group_key, *group, result.status());
  return result;
}

// --- ends ---

void RingCollectives::End(int64_t group_key, Group& group, const Status& why) {
  std::set<std::shared_ptr<ClientCall>> calls;
  {
    MutexLock lock(mutex_);
    if (group.status.ok()) group.status = why;
    if (failed_.ok()) failed_ = why;
    ++failures_;
    calls = group.calls;
  }
  exchange_->End(group_key, AbortedBy(why));
  instances_->End(group_key, AbortedBy(why));
  for (const auto& call : calls) call->Cancel();
}

Status RingCollectives::Failure() {
  MutexLock lock(mutex_);
  return failed_;
}

void RingCollectives::Abort(const Status& why) {
  std::map<int64_t, GroupRef> groups;
  {
    MutexLock lock(mutex_);
    aborted_ = why;
    groups = groups_;
  }
  for (auto& [key, group] : groups) End(key, *group, why);
  exchange_->EndAll(AbortedBy(why));
  instances_->EndAll(AbortedBy(why));
}

void RingCollectives::Forget(const Status& why) {
  std::map<int64_t, GroupRef> groups;
  {
    MutexLock lock(mutex_);
    groups = std::exchange(groups_, {});
  }
  for (auto& [key, group] : groups) End(key, *group, why);
  exchange_->Forget();
}

// --- what other tasks call ---

Status RingCollectives::CheckSpeaks() const {
  if (options_.speaks) return OkStatus();
  return FailedPrecondition(
      options_.task.ToString(),
      " takes no part in TensorFlow's collectives: HEADRACE_TENSORFLOW_PEERS "
      "is not 1 there");
}

std::map<std::string, Method> RingCollectives::Methods() {
  const auto self = shared_from_this();
  using Call = std::shared_ptr<ServerCall>;
  std::map<std::string, Method> methods;
  methods[worker::kCompleteGroup.path] = [self](Call call, const Bytes& bytes) {
    tensorflow::CompleteGroupRequest request;
    Status s = self->CheckSpeaks();
    if (s.ok()) s = ReadMessage(bytes, &request);
    if (!s.ok()) return call->Finish(AnswerOf(s));
    self->options_.groups->Join(request, std::move(call));
  };
  methods[worker::kCompleteInstance.path] = [self](Call call,
                                                   const Bytes& bytes) {
    tensorflow::CompleteInstanceRequest request;
    Status s = self->CheckSpeaks();
    if (s.ok()) s = ReadMessage(bytes, &request);
    const StatusOr<int> rank = s.ok()
                                   ? self->options_.groups->RankIn(
                                         request.group_key(), request.device())
                                   : s;
    if (!rank.ok()) return call->Finish(AnswerOf(rank.status()));
    self->instances_->Complete(request, *rank, std::move(call));
  };
  methods[worker::kRecvBuf.path] = [self](Call call, const Bytes& bytes) {
    tensorflow::RecvBufRequest request;
    Status s = self->CheckSpeaks();
    if (s.ok()) s = ReadMessage(bytes, &request);
    if (s.ok() && request.src_incarnation() != 0 &&
        request.src_incarnation() != self->options_.incarnation) {
      s = absl::FailedPreconditionError(absl::StrCat(
          "RecvBuf expects a different device incarnation: ",
          request.src_incarnation(), " vs. ", self->options_.incarnation,
          ". Your worker job (\"", self->options_.task.ToString(),
          "\") was probably restarted. Check your worker job for the reason "
          "why it was restarted."));
    }
    if (!s.ok()) return call->Finish(AnswerOf(s));
    self->exchange_->Answer(request, std::move(call));
  };
  // Steps of graphs have numbers of their own: no order of theirs is kept.
  methods[worker::kGetStepSequence.path] =
      AtOnce<tensorflow::GetStepSequenceRequest,
             tensorflow::GetStepSequenceResponse>(
          [](const tensorflow::GetStepSequenceRequest&,
             tensorflow::GetStepSequenceResponse*) {
            return Unimplemented(
                "GetStepSequence: graphs whose collectives a session orders "
                "by collective_graph_key");
          });
  return methods;
}

}  // namespace headrace::distributed
