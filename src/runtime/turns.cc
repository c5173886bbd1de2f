#include "runtime/turns.h"

#include <algorithm>

#include "runtime/workspace.h"

namespace headrace {
namespace {

// Bytes. Swapping keeps two memories for a variable; up to this size both stay
// in the cache and no turn allocates. Larger variables are better worked on in
// place.
constexpr int64_t kLargestSwapped = 128 << 10;

}  // namespace

StatusOr<std::unique_ptr<TurnPlan>> TurnPlan::Make(Program turn) {
  std::unique_ptr<TurnPlan> plan(new TurnPlan);
  if (turn.fetches.size() < turn.feeds.size()) {
    return Internal("a turn makes fewer values than it takes");
  }
  HR_ASSIGN_OR_RETURN(plan->executable_,
                      Executable::FromProgram(std::move(turn)));
  plan->PlanNext();
  return plan;
}

void TurnPlan::PlanNext() {
  const Executable& e = *executable_;
  std::vector<int> fetched(e.slots_.size());
  std::vector<bool> is_feed(e.slots_.size()), made(e.slots_.size());
  for (ValueId v : e.fetches_) ++fetched[v];
  for (ValueId v : e.feeds_) is_feed[v] = true;
  for (const Executable::Step& s : e.steps_) {
    for (ValueId v : s.allocate) made[v] = !s.dynamic;
  }
  for (size_t i = 0; i < e.feeds_.size(); ++i) {
    Next next{e.fetches_[i], e.feeds_[i]};
    // A variable that the body hands through lies where the next turn reads it.
    if (next.from == next.to) continue;
    next.index = static_cast<int>(i);
    const Executable::Slot& from = e.slots_[next.from];
    const Executable::Slot& to = e.slots_[next.to];
    const bool same = from.is_static && to.is_static && from.shape == to.shape;
    next.check = !same && to.shape.known_rank();
    // Read again in the next turn, wanted by several variables, or not to be
    // moved (constants, the arena): copied.
    if (is_feed[next.from] || fetched[next.from] > 1 ||
        from.constant.has_buffer() || from.offset >= 0) {
      copied_.push_back(next);
      continue;
    }
    next.swap = same && made[next.from] && IsPlain(to.dtype) &&
                to.dtype == from.dtype && fetched[next.to] == 0 &&
                from.shape.num_elements() *
                        static_cast<int64_t>(DTypeSize(from.dtype)) <=
                    kLargestSwapped;
    if (next.swap) KeepFeed(next.to);
    direct_.push_back(next);
  }
}

void TurnPlan::KeepFeed(ValueId feed) {
  for (Executable::Step& s : executable_->steps_) {
    s.release.erase(std::remove(s.release.begin(), s.release.end(), feed),
                    s.release.end());
    for (size_t i = 0; i < s.inputs.size() && i < 32; ++i) {
      if (s.inputs[i] == feed) s.reusable &= ~(1u << i);
    }
  }
  for (Executable::Beside& group : executable_->beside_) {
    group.release.erase(
        std::remove(group.release.begin(), group.release.end(), feed),
        group.release.end());
  }
  std::erase_if(executable_->clear_at_end_,
                [&](ValueId v) { return v == feed; });
}

StatusOr<std::unique_ptr<Turns>> Turns::Begin(const TurnPlan& plan,
                                              const RunServices& services) {
  HR_ASSIGN_OR_RETURN(std::unique_ptr<Executable::Workspace> f,
                      plan.executable_->Acquire());
  f->services = services;
  f->repeated = true;
  return std::unique_ptr<Turns>(new Turns(plan, std::move(f)));
}

Turns::Turns(const TurnPlan& plan,
             std::unique_ptr<Executable::Workspace> workspace)
    : plan_(plan),
      workspace_(std::move(workspace)),
      passing_(plan.copied_.size()) {}

Turns::~Turns() {
  Executable& e = *plan_.executable_;
  // A loop that ended early leaves values behind; the next run must find none.
  workspace_->Clear(e.counted_);
  workspace_->repeated = false;
  for (auto& p : e.prepared_) p->EndRepeated();
  e.Release(std::move(workspace_));
}

Status Turns::Run() { return plan_.executable_->RunSteps(*workspace_); }

const Tensor& Turns::fetch(int i) const {
  return workspace_->slots[plan_.executable_->fetches_[i]];
}

Status Turns::Check(const TurnPlan::Next& next) const {
  const Shape& shape = workspace_->slots[next.from].shape();
  const Executable::Slot& to = plan_.executable_->slots_[next.to];
  if (to.shape.CompatibleWith(shape)) [[likely]]
    return OkStatus();
  return InvalidArgument("input ", next.index, " has shape ", shape.ToString(),
                         ", the graph was made for ", to.shape.ToString());
}

Status Turns::Advance(bool more) {
  std::vector<Tensor>& slots = workspace_->slots;
  workspace_->Clear(plan_.executable_->clear_at_end_);
  size_t at = 0;
  for (const TurnPlan::Next& next : plan_.copied_) {
    if (next.check && more) HR_RETURN_IF_ERROR(Check(next));
    // All that is copied is taken before any variable is set: variables may
    // change places with one another.
    passing_[at++] = slots[next.from];
  }
  for (const TurnPlan::Next& next : plan_.direct_) {
    if (next.check && more) HR_RETURN_IF_ERROR(Check(next));
    if (next.swap) {
      std::swap(slots[next.to], slots[next.from]);
    } else {
      slots[next.to] = std::move(slots[next.from]);
    }
  }
  at = 0;
  for (const TurnPlan::Next& next : plan_.copied_) {
    slots[next.to] = std::move(passing_[at++]);
  }
  return OkStatus();
}

void Turns::Take(std::vector<Tensor>* state) {
  const std::vector<ValueId>& feeds = plan_.executable_->feeds_;
  state->resize(feeds.size());
  for (size_t i = 0; i < feeds.size(); ++i) {
    (*state)[i] = std::move(workspace_->slots[feeds[i]]);
  }
}

}  // namespace headrace
