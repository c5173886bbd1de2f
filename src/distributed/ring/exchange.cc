#include "distributed/ring/exchange.h"

#include <iterator>
#include <utility>

#include "absl/strings/numbers.h"
#include "distributed/messages.h"
#include "distributed/wire/buf_codec.h"

namespace headrace::distributed {
namespace {

// Who asks before there is anything: peers that are ahead, and strangers.
constexpr size_t kMostAsking = 4096;

Answer AnswerWith(const Bytes& content, int64_t size) {
  if (static_cast<int64_t>(content.size()) != size) {
    return AnswerOf(InvalidArgument("RecvBuf asks for ", size,
                                    " bytes of a part that has ",
                                    content.size()));
  }
  return AnswerOf(OkStatus(), EncodeBuf(content));
}

}  // namespace

void BufExchange::Give(int64_t group_key, const std::string& key,
                       Bytes content) {
  Spot::Asker asker;
  {
    MutexLock lock(mutex_);
    Group& group = groups_[group_key];
    if (!ended_.ok() || !group.status.ok()) return;
    Spot& spot = group.spots[key];
    if (spot.asking.empty()) {
      spot.given.push_back(std::move(content));
      return;
    }
    asker = std::move(spot.asking.front());
    spot.asking.pop_front();
    --asking_;
    if (spot.asking.empty()) group.spots.erase(key);
  }
  asker.call->Finish(AnswerWith(content, asker.size));
}

void BufExchange::Answer(const tensorflow::RecvBufRequest& request,
                         std::shared_ptr<ServerCall> call) {
  const std::string& key = request.buf_rendezvous_key();
  int64_t group_key = 0;
  if (!absl::SimpleAtoi(key.substr(0, key.find(':')), &group_key) ||
      key.size() > 256) {
    return call->Finish(AnswerOf(InvalidArgument(
        "Invalid buffer rendezvous key: ", key.substr(0, 256))));
  }
  Status s;
  Bytes content;
  bool waits = false;
  {
    MutexLock lock(mutex_);
    s = ended_;
    Group& group = groups_[group_key];
    if (s.ok()) s = group.status;
    const auto spot = group.spots.find(key);
    if (!s.ok()) {
    } else if (spot != group.spots.end() && !spot->second.given.empty()) {
      content = std::move(spot->second.given.front());
      spot->second.given.pop_front();
      if (spot->second.given.empty()) group.spots.erase(spot);
      ++answering_;
    } else if (asking_ >= kMostAsking) {
      s = absl::ResourceExhaustedError("too many ask for parts of collectives");
    } else {
      ++asking_;
      waits = true;
      group.spots[key].asking.push_back({call, request.num_bytes()});
    }
    if (group.status.ok() && group.spots.empty()) groups_.erase(group_key);
  }
  if (!s.ok()) return call->Finish(AnswerOf(s));
  if (!waits) {
    call->Finish(AnswerWith(content, request.num_bytes()));
    MutexLock lock(mutex_);
    --answering_;
    return;
  }
  call->OnCancel([weak = weak_from_this(), group_key, key,
                  held = std::weak_ptr<ServerCall>(call)] {
    const auto self = weak.lock();
    const auto gone = held.lock();
    if (self && gone) self->Forget(group_key, key, gone);
  });
}

void BufExchange::Forget(int64_t group_key, const std::string& key,
                         const std::shared_ptr<ServerCall>& call) {
  MutexLock lock(mutex_);
  const auto group = groups_.find(group_key);
  if (group == groups_.end()) return;
  const auto spot = group->second.spots.find(key);
  if (spot == group->second.spots.end()) return;
  asking_ -= std::erase_if(spot->second.asking, [&](const Spot::Asker& a) {
    return a.call == call;
  });
  if (spot->second.asking.empty() && spot->second.given.empty()) {
    group->second.spots.erase(spot);
  }
}

void BufExchange::Drop(Group& group, Calls* asking) {
  for (auto& [unused, spot] : group.spots) {
    asking_ -= spot.asking.size();
    for (auto& asker : spot.asking) asking->push_back(std::move(asker.call));
  }
  group.spots.clear();
}

void BufExchange::End(int64_t group_key, const Status& why) {
  Calls asking;
  {
    MutexLock lock(mutex_);
    Group& group = groups_[group_key];
    if (group.status.ok()) group.status = why;
    Drop(group, &asking);
  }
  for (const auto& call : asking) call->Finish(AnswerOf(why));
}

void BufExchange::EndAll(const Status& why) {
  Calls asking;
  {
    MutexLock lock(mutex_);
    ended_ = why;
    for (auto& [unused, group] : groups_) Drop(group, &asking);
  }
  for (const auto& call : asking) call->Finish(AnswerOf(why));
}

void BufExchange::Forget() {
  MutexLock lock(mutex_);
  for (auto it = groups_.begin(); it != groups_.end();) {
    it = it->second.spots.empty() ? groups_.erase(it) : std::next(it);
  }
}

bool BufExchange::Owes() {
  MutexLock lock(mutex_);
  if (answering_ > 0) return true;
  for (const auto& [unused, group] : groups_) {
    for (const auto& [key, spot] : group.spots) {
      if (!spot.given.empty()) return true;
    }
  }
  return false;
}

}  // namespace headrace::distributed
