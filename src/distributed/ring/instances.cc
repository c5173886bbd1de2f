#include "distributed/ring/instances.h"

#include "distributed/messages.h"
#include "tensor/tensor_proto.h"

namespace headrace::distributed {
namespace {

// Graphs name instances anew in each step: the last are remembered, for members
// that ask late.
constexpr size_t kRemembered = 1 << 16;

}  // namespace

StatusOr<CollectiveCall> CallOf(
    const tensorflow::CompleteInstanceRequest& request) {
  CollectiveCall call;
  call.kind = static_cast<CollectiveKind>(request.type());
  call.member.group_key = request.group_key();
  call.member.group_size = request.group_size();
  call.instance_key = request.instance_key();
  call.dtype = static_cast<DType>(request.data_type());
  HR_ASSIGN_OR_RETURN(call.shape, ShapeFromProto(request.shape()));
  if (!call.shape.fully_known()) {
    return InvalidArgument("Collective instance ", call.instance_key,
                           " is of a shape that is not known: ", call.shape);
  }
  return call;
}

Status InstanceLeader::Add(Instance& instance, const CollectiveCall& call,
                           const std::string& device, bool is_source,
                           int rank) {
  if (instance.seen.empty()) instance.first = call;
  HR_RETURN_IF_ERROR(CheckAgreement(instance.first, call, device));
  instance.seen.insert(rank);
  if (call.kind != CollectiveKind::kBroadcast) return OkStatus();
  const auto size = static_cast<int64_t>(call.member.group_size);
  if (is_source && instance.source >= 0 && instance.source != rank) {
    return CheckSources(call.instance_key, {instance.source, rank}, size);
  }
  if (is_source) instance.source = rank;
  if (!is_source && instance.source == rank) {
    return Internal("Instance ", call.instance_key, " has source ", rank,
                    ", which now receives");
  }
  if (instance.source < 0 &&
      static_cast<int64_t>(instance.seen.size()) == size) {
    return CheckSources(call.instance_key, {}, size);
  }
  return OkStatus();
}

void InstanceLeader::Complete(
    const tensorflow::CompleteInstanceRequest& request, int rank,
    std::shared_ptr<ServerCall> call) {
  const StatusOr<CollectiveCall> asked = CallOf(request);
  if (!asked.ok()) return call->Finish(AnswerOf(asked.status()));
  const Key key(request.group_key(), request.instance_key());
  tensorflow::CompleteInstanceResponse response;
  response.set_instance_key(request.instance_key());
  Status s;
  Calls told, forgotten;
  {
    MutexLock lock(mutex_);
    const auto [at, is_new] = instances_.try_emplace(key);
    Instance& instance = at->second;
    if (is_new) order_.push_back(key);
    s = Add(instance, *asked, request.device(), request.is_source(), rank);
    response.set_source_rank(instance.source);
    const bool waits = s.ok() && asked->kind == CollectiveKind::kBroadcast &&
                       instance.source < 0;
    if (waits) {
      instance.waiting.push_back(call);
    } else {
      told = std::exchange(instance.waiting, {});
      told.push_back(call);
    }
    if (!s.ok()) instances_.erase(at);
    while (order_.size() > kRemembered) {
      const auto oldest = instances_.find(order_.front());
      order_.pop_front();
      if (oldest == instances_.end()) continue;
      for (auto& c : oldest->second.waiting) forgotten.push_back(std::move(c));
      instances_.erase(oldest);
    }
  }
  for (const auto& c : forgotten) {
    c->Finish(AnswerOf(Aborted("too many collectives began since")));
  }
  const Bytes body = WriteMessage(response);
  for (const auto& c : told) c->Finish(AnswerOf(s, body));
  if (!told.empty()) return;
  call->OnCancel(
      [weak = weak_from_this(), key, held = std::weak_ptr<ServerCall>(call)] {
        const auto self = weak.lock();
        const auto gone = held.lock();
        if (self && gone) self->Remove(key, gone);
      });
}

void InstanceLeader::Remove(const Key& key,
                            const std::shared_ptr<ServerCall>& call) {
  MutexLock lock(mutex_);
  const auto at = instances_.find(key);
  if (at != instances_.end()) std::erase(at->second.waiting, call);
}

void InstanceLeader::End(int64_t group_key, const Status& why) {
  Calls told;
  {
    MutexLock lock(mutex_);
    std::erase_if(instances_, [&](auto& entry) {
      if (entry.first.first != group_key) return false;
      for (auto& c : entry.second.waiting) told.push_back(std::move(c));
      return true;
    });
  }
  for (const auto& c : told) c->Finish(AnswerOf(why));
}

void InstanceLeader::EndAll(const Status& why) {
  Calls told;
  {
    MutexLock lock(mutex_);
    for (auto& [unused, instance] : std::exchange(instances_, {})) {
      for (auto& c : instance.waiting) told.push_back(std::move(c));
    }
    order_.clear();
  }
  for (const auto& c : told) c->Finish(AnswerOf(why));
}

}  // namespace headrace::distributed
