#include "distributed/mpi/mpi_turn.h"

#include <utility>

#include "distributed/collective/course.h"

namespace headrace::distributed {
namespace {

using Clock = std::chrono::steady_clock;

// Messages of a peer that are received at the same time: some megabytes.
constexpr size_t kAhead = 8;

}  // namespace

MpiTurn::~MpiTurn() {
  // Where the step did not end well, what was asked for may still come by the
  // tags: they stay taken for good.
  if (!settled_) return;
  for (const auto& [from, in] : in_) {
    if (in.tag != 0) post_.ReturnTag(options_.ranks[from], in.tag);
  }
}

void MpiTurn::Give(int to, Bytes part, bool /*last*/) {
  out_[to].parts.push_back(std::move(part));
  status_.Update(Step());
}

void MpiTurn::Ask(int from, bool swaps, Bytes payload) {
  status_.Update(AskFor(from, swaps, std::move(payload)));
}

Status MpiTurn::AskFor(int from, bool swaps, Bytes payload) {
  const int to = options_.ranks[from];
  HR_ASSIGN_OR_RETURN(const int tag, post_.TakeTag(to));
  in_[from].tag = tag;
  MpiMessage message;
  *message.mutable_ask() = HeaderOf(options_.call, options_.members.group,
                                    rank(), from, options_.step);
  message.set_tag(tag);
  message.set_swaps(swaps);
  message.set_payload(payload.Flat());
  return post_.Tell(to, message);
}

Status MpiTurn::TakeAsks() {
  const MpiPost::Spot spot{options_.members.group, rank(),
                           options_.call.instance_key, options_.step};
  const MemberNames& names = *options_.members.names;
  Status agrees;
  // Of a rank that has asked already it is for the next call of the instance.
  const auto takes = [&](const MpiPost::Ask& ask) {
    const int from = ask.header.from();
    if (from < 0 || from >= static_cast<int>(names.size()) || from == rank() ||
        ask.source != options_.ranks[from]) {
      agrees =
          InvalidArgument("rank ", ask.source, " of MPI's world asks as rank ",
                          from, " of a group of ", names.size());
      return true;
    }
    const auto out = out_.find(from);
    if (out != out_.end() && out->second.asked) return false;
    const StatusOr<CollectiveCall> call = CallOf(ask.header);
    agrees = call.ok() ? CheckAgreement(options_.call, *call, names[from])
                       : call.status();
    if (agrees.ok()) return options_.askers.contains(from);
    agrees = DisagreeError(agrees, names, rank(), from);
    return true;
  };
  while (auto ask = post_.Find(spot, takes)) {
    HR_RETURN_IF_ERROR(agrees);
    Outgoing& out = out_[ask->header.from()];
    out.asked = true;
    out.tag = ask->tag;
    if (ask->swaps) {
      in_[ask->header.from()].swapped.push_back(std::move(ask->payload));
    }
  }
  return OkStatus();
}

Status MpiTurn::Step() {
  HR_RETURN_IF_ERROR(status_);
  HR_RETURN_IF_ERROR(post_.Poll());
  HR_RETURN_IF_ERROR(TakeAsks());
  MpiWorld& world = post_.world();
  for (auto& [to, out] : out_) {
    for (; out.asked && !out.parts.empty(); out.parts.pop_front()) {
      HR_ASSIGN_OR_RETURN(
          out.sent.emplace_back(),
          world.Send(options_.ranks[to], out.tag, out.parts.front()));
    }
    while (!out.sent.empty()) {
      HR_ASSIGN_OR_RETURN(const bool done, world.Done(*out.sent.front()));
      if (!done) break;
      out.sent.pop_front();
    }
  }
  for (auto& [from, in] : in_) {
    while (in.tag != 0 && in.coming.size() < kAhead) {
      int source = 0;
      HR_ASSIGN_OR_RETURN(auto next, world.Receive(options_.ranks[from], in.tag,
                                                   kLongestPart, &source));
      if (!next) break;
      in.coming.push_back(std::move(next));
    }
  }
  return OkStatus();
}

StatusOr<std::optional<Bytes>> MpiTurn::TryTake(Incoming& in) {
  std::optional<Bytes> part;
  if (!in.swapped.empty()) {
    part = std::move(in.swapped.front());
    in.swapped.pop_front();
  } else if (!in.coming.empty()) {
    HR_ASSIGN_OR_RETURN(const bool done,
                        post_.world().Done(*in.coming.front()));
    if (done) {
      part = in.coming.front()->bytes();
      in.coming.pop_front();
    }
  }
  if (part) ++in.taken;
  return part;
}

StatusOr<Bytes> MpiTurn::Take(int from) {
  Incoming& in = in_[from];
  const Clock::time_point since = Clock::now();
  const auto patience = in.taken > 0 ? options_.part : options_.begin;
  MpiPause pause;
  while (true) {
    status_.Update(Step());
    HR_RETURN_IF_ERROR(status_);
    StatusOr<std::optional<Bytes>> part = TryTake(in);
    if (part.ok() && *part) return **std::move(part);
    status_ = part.status();
    status_.Update(options_.members.status());
    if (Clock::now() - since > patience) {
      status_.Update(LateError(*options_.members.names, options_.call, rank(),
                               from, Clock::now() - since, in.taken));
    }
    status_.Update(pause());
  }
}

std::optional<int> MpiTurn::Owed() const {
  for (const int to : options_.askers) {
    const auto out = out_.find(to);
    if (out == out_.end() || !out->second.asked || !out->second.parts.empty() ||
        !out->second.sent.empty()) {
      return to;
    }
  }
  return {};
}

Status MpiTurn::Settle() {
  const Clock::time_point since = Clock::now();
  MpiPause pause;
  while (true) {
    status_.Update(Step());
    HR_RETURN_IF_ERROR(status_);
    const std::optional<int> owed = Owed();
    settled_ = !owed;
    if (settled_) return OkStatus();
    status_ = options_.members.status();
    if (Clock::now() - since > options_.begin) {
      status_.Update(LateError(*options_.members.names, options_.call, rank(),
                               *owed, Clock::now() - since, in_[*owed].taken));
    }
    status_.Update(pause());
  }
}

}  // namespace headrace::distributed
