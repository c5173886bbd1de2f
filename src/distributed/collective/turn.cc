#include "distributed/collective/turn.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "distributed/messages.h"
#include "distributed/wire/methods.h"
#include "distributed/wire/piece_reader.h"
#include "ops/queue/await_change.h"

namespace headrace::distributed {
namespace {

// Parts that may have come and wait for the member: some megabytes a peer.
constexpr size_t kAhead = 8;
// Longer ones are no headers.
constexpr uint64_t kLongestHeader = 64 << 10;

const char* KindName(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kReduce:
      return "all-reduce";
    case CollectiveKind::kBroadcast:
      return "broadcast";
    case CollectiveKind::kGather:
      return "all-gather";
    case CollectiveKind::kAllToAll:
      return "all-to-all";
    case CollectiveKind::kReduceScatter:
      return "reduce-scatter";
  }
  return "collective";
}

// An instance of a communicator is counted; its kind is told apart.
int64_t ShownInstance(const CollectiveCall& call) {
  return call.instance_key & ((int64_t{1} << 40) - 1);
}

}  // namespace

std::string MemberText(const MemberNames& names, int rank) {
  return absl::StrCat("rank ", rank, " (", names[rank], ")");
}

std::string CallText(const CollectiveCall& call) {
  return absl::StrCat(
      KindName(call.kind), " of ", Tensor(call.dtype, call.shape).Describe(),
      ", group ", call.member.group_key, ", instance ", ShownInstance(call));
}

Status LateError(const MemberNames& names, const CollectiveCall& call, int rank,
                 int from, std::chrono::duration<double> waited,
                 int64_t parts) {
  return absl::DeadlineExceededError(absl::StrCat(
      "Collective has timed out during execution: ", MemberText(names, rank),
      " waited ", absl::StrFormat("%.1f", waited.count()), " s for ",
      MemberText(names, from), ", which sent ", parts, " parts, in ",
      CallText(call)));
}

Status DisagreeError(const Status& why, const MemberNames& names, int one,
                     int other) {
  return Status(
      why.code(),
      absl::StrCat(why.message(), " (", MemberText(names, one), " and ",
                   MemberText(names, other), " do not agree)"));
}

CollectiveHeader HeaderOf(const CollectiveCall& call, uint64_t group, int from,
                          int to, int step) {
  CollectiveHeader header;
  header.set_group(group);
  header.set_group_key(static_cast<int32_t>(call.member.group_key));
  header.set_from(from);
  header.set_to(to);
  header.set_instance_key(call.instance_key);
  header.set_step(step);
  header.set_kind(static_cast<int>(call.kind));
  header.set_dtype(static_cast<int>(call.dtype));
  for (const int64_t d : call.shape.dims()) header.add_dims(d);
  header.set_merge_op(call.merge_op);
  header.set_final_op(call.final_op);
  header.set_odd_round(call.odd_round);
  return header;
}

StatusOr<CollectiveCall> CallOf(const CollectiveHeader& header) {
  CollectiveCall call;
  call.kind = static_cast<CollectiveKind>(header.kind());
  call.member.group_key = header.group_key();
  call.instance_key = header.instance_key();
  call.dtype = static_cast<DType>(header.dtype());
  HR_ASSIGN_OR_RETURN(call.shape,
                      Shape::Make(std::vector<int64_t>(header.dims().begin(),
                                                       header.dims().end())));
  call.merge_op = header.merge_op();
  call.final_op = header.final_op();
  return call;
}

Bytes WithHeader(const CollectiveHeader& header, Bytes payload) {
  std::string text = header.SerializeAsString();
  std::string size;
  for (uint64_t n = text.size();; n >>= 7) {
    size.push_back(static_cast<char>((n & 0x7f) | (n > 0x7f ? 0x80 : 0)));
    if (n <= 0x7f) break;
  }
  Bytes bytes(size + text);
  bytes.Append(std::move(payload));
  return bytes;
}

Status SplitHeader(const Bytes& bytes, CollectiveHeader* header,
                   Bytes* payload) {
  PieceReader reader(bytes);
  uint64_t size = 0;
  Bytes text;
  if (reader.ReadVarint(&size) && size <= kLongestHeader &&
      reader.Take(size, &text) && reader.Take(reader.left(), payload)) {
    return ReadMessage(text, header);
  }
  return InvalidArgument("no header of a collective: ", bytes.size(), " bytes");
}

void Turn::Give(int to, Bytes part, bool last) {
  {
    MutexLock lock(mutex_);
    Outgoing& out = out_[to];
    if (out.ended) return;
    out.parts.push_back(std::move(part));
    out.closed = last;
  }
  Pump(to);
}

// One call of ServerCall's at a time a peer; none under the lock.
void Turn::Pump(int to) {
  std::shared_ptr<ServerCall> call;
  Bytes part;
  bool sends = false, body = false;
  {
    MutexLock lock(mutex_);
    Outgoing& out = out_[to];
    if (!out.call || out.sends || out.ended) return;
    body = out.swaps && out.closed && !out.parts.empty();
    sends = !out.swaps && !out.parts.empty();
    const bool finishes = !out.swaps && out.closed && out.parts.empty();
    if (!body && !sends && !finishes) return;
    call = out.call;
    if (body || sends) {
      part = std::move(out.parts.front());
      out.parts.pop_front();
    }
    out.sends = sends;
    if (!sends) out.call = nullptr;
  }
  if (!sends) {
    call->Finish(AnswerOf(OkStatus(), std::move(part)));
    {
      // Behind the answer: whose turns are all settled may stop, which ends
      // calls that are not answered.
      MutexLock lock(mutex_);
      out_[to].ended = true;
    }
    return TellSettled();
  }
  call->Send(std::move(part), [self = shared_from_this(), to](bool goes_on) {
    self->Sent(to, goes_on);
  });
}

void Turn::Sent(int to, bool goes_on) {
  {
    MutexLock lock(mutex_);
    Outgoing& out = out_[to];
    out.sends = false;
    if (!goes_on) {
      // It has all that it needs, or its own end has been told.
      out.ended = true;
      out.parts.clear();
      out.call = nullptr;
    }
  }
  if (!goes_on) return TellSettled();
  Pump(to);
}

bool Turn::HasAsked(int from) const {
  MutexLock lock(mutex_);
  return arrived_.contains(from);
}

bool Turn::Claim(int from) {
  MutexLock lock(mutex_);
  return options_.askers.contains(from) && arrived_.insert(from).second;
}

bool Turn::left() const {
  MutexLock lock(mutex_);
  return left_;
}

void Turn::Arrive(int from, std::shared_ptr<ServerCall> call, Bytes payload,
                  bool swaps) {
  Status over;
  {
    MutexLock lock(mutex_);
    over = status_;
    if (over.ok()) {
      Outgoing& out = out_[from];
      out.call = call;
      out.swaps = swaps;
      if (swaps) {
        in_[from].parts.push_back(std::move(payload));
        in_[from].ended = true;
        changed_.NotifyAll();
      }
    }
  }
  if (!over.ok()) return call->Finish(AnswerOf(over));
  if (swaps) TellCame();
  // A member that went away before it got all of it.
  call->OnCancel(
      [self = shared_from_this(), from] { self->Sent(from, false); });
  Pump(from);
}

void Turn::Ask(int from, Channel& channel, bool swaps, Bytes payload) {
  const CollectiveHeader header =
      HeaderOf(call(), options_.group, options_.rank, from, options_.step);
  CallOptions options;
  // Whether parts come in time is looked at part by part.
  constexpr std::chrono::hours kAllParts{24};
  options.deadline = Clock::now() + options_.begin;
  // A member that is there may be yet to be connected to; of one that is not
  // its watcher tells.
  options.wait_for_ready = true;
  const std::shared_ptr<Turn> self = shared_from_this();
  if (!swaps) {
    options.deadline += kAllParts;
    options.parts_alone = true;
    options.brings_much = true;
    options.on_part = [self, from](Bytes part, std::function<void()> next) {
      self->Came(from, std::move(part), std::move(next));
    };
  }
  const auto& method = swaps ? worker::kSwapParts : worker::kPullParts;
  auto asked = channel.Start(
      method.path, WithHeader(header, std::move(payload)), options,
      [self, from, swaps](const Answer& a) { self->Ended(from, a, swaps); });
  {
    MutexLock lock(mutex_);
    if (status_.ok()) {
      in_[from].call = std::move(asked);
      return;
    }
  }
  asked->Cancel();
}

void Turn::Came(int from, Bytes part, std::function<void()> next) {
  {
    MutexLock lock(mutex_);
    Incoming& in = in_[from];
    in.parts.push_back(std::move(part));
    changed_.NotifyAll();
    if (in.parts.size() >= kAhead) {
      in.next.push_back(std::move(next));
      next = nullptr;
    }
  }
  if (next) next();
  TellCame();
}

void Turn::Ended(int from, const Answer& answer, bool swaps) {
  Status s = StatusOf(answer);
  if (s.ok()) {
    {
      MutexLock lock(mutex_);
      Incoming& in = in_[from];
      if (swaps) in.parts.push_back(answer.body);
      in.ended = true;
      changed_.NotifyAll();
    }
    return TellCame();
  }
  {
    MutexLock lock(mutex_);
    if (left_ || !status_.ok()) return;  // nobody asks
  }
  Fail(Status(s.code(),
              absl::StrCat(s.message(), "; ",
                           MemberText(*options_.names, options_.rank),
                           " asked ", MemberText(*options_.names, from), " in ",
                           CallText(call()))));
}

Status Turn::Late(int from, Clock::time_point since) const {
  const auto in = in_.find(from);
  const int64_t parts = in == in_.end() ? 0 : in->second.taken;
  return LateError(*options_.names, call(), options_.rank, from,
                   Clock::now() - since, parts);
}

StatusOr<Bytes> Turn::Take(int from) {
  const Clock::time_point since = Clock::now();
  std::function<void()> next;
  Bytes part;
  {
    MutexLock lock(mutex_);
    Incoming& in = in_[from];
    const auto patience = in.taken > 0 ? options_.part : options_.begin;
    while (in.parts.empty()) {
      // What has come counts, whatever else became of the peer.
      HR_RETURN_IF_ERROR(OverLocked(from, in));
      HR_RETURN_IF_ERROR(AwaitChange(mutex_, changed_));
      if (!in.parts.empty()) break;
      {
        MutexUnlock open(mutex_);
        HR_RETURN_IF_ERROR(options_.over());
      }
      if (Clock::now() - since > patience) return Late(from, since);
    }
    part = TakeFirst(in, &next);
  }
  if (next) next();
  return part;
}

Bytes Turn::TakeFirst(Incoming& in, std::function<void()>* next) {
  Bytes part = std::move(in.parts.front());
  in.parts.pop_front();
  ++in.taken;
  if (!in.next.empty()) {
    *next = std::move(in.next.front());
    in.next.pop_front();
  }
  return part;
}

Status Turn::OverLocked(int from, const Incoming& in) const {
  HR_RETURN_IF_ERROR(status_);
  if (!in.ended) return OkStatus();
  return InvalidArgument(MemberText(*options_.names, from), " sent only ",
                         in.taken, " parts in ", CallText(call()));
}

StatusOr<std::optional<Bytes>> Turn::TryTake(int from) {
  std::function<void()> next;
  std::optional<Bytes> part;
  {
    MutexLock lock(mutex_);
    Incoming& in = in_[from];
    if (in.parts.empty()) {
      HR_RETURN_IF_ERROR(OverLocked(from, in));
      return part;
    }
    part = TakeFirst(in, &next);
  }
  if (next) next();
  return part;
}

bool Turn::SettledLocked() const {
  if (!status_.ok()) return left_;
  if (!left_) return false;
  for (const int to : options_.askers) {
    const auto out = out_.find(to);
    if (out == out_.end() || !out->second.ended) return false;
  }
  return true;
}

bool Turn::settled() const {
  MutexLock lock(mutex_);
  return SettledLocked();
}

void Turn::TellSettled() {
  {
    MutexLock lock(mutex_);
    if (told_ || !SettledLocked()) return;
    told_ = true;
  }
  options_.settled();
}

void Turn::Leave() {
  std::vector<std::shared_ptr<ClientCall>> calls;
  {
    MutexLock lock(mutex_);
    left_ = true;
    for (auto& [from, in] : in_) {
      if (in.call && !in.ended) calls.push_back(std::move(in.call));
      in.call = nullptr;
      in.parts.clear();
      in.next.clear();
    }
  }
  for (const auto& call : calls) call->Cancel();
  TellSettled();
}

void Turn::Fail(const Status& why) {
  std::vector<std::shared_ptr<ServerCall>> asked;
  std::vector<std::shared_ptr<ClientCall>> asking;
  {
    MutexLock lock(mutex_);
    if (!status_.ok()) return;
    status_ = why;
    changed_.NotifyAll();
    for (auto& [to, out] : out_) {
      if (out.call) asked.push_back(std::move(out.call));
      out.call = nullptr;
      out.ended = true;
      out.parts.clear();
    }
    for (auto& [from, in] : in_) {
      if (in.call) asking.push_back(std::move(in.call));
      in.call = nullptr;
    }
  }
  for (const auto& call : asked) call->Finish(AnswerOf(why));
  for (const auto& call : asking) call->Cancel();
  TellCame();
  TellSettled();
}

}  // namespace headrace::distributed
