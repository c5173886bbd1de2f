#include "runtime/overlap.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/hash_map.h"
#include "op/processor.h"
#include "op/reach.h"
#include "op/registry.h"
#include "op/rendezvous.h"
#include "op/waiting.h"

namespace headrace {
namespace {

// Handing a call to a thread that sleeps, and its end back: some 20 us. Less
// work than that is done before the call begins.
constexpr double kWorthThreadNs = 50'000;
// Of calls of functions, which take nobody knows how long.
constexpr double kFunctionNs = 1e9;

// Whether it touches anything outside of the engine.
bool ReachesOut(const OpDef& def) {
  for (int i = 0; i < kReaches; ++i) {
    if (def.Has(TraitOf(static_cast<Reach>(i)))) return true;
  }
  return false;
}

class OverlapFinder {
 public:
  OverlapFinder(Program& p, bool always)
      : p_(p), always_(always), behind_(p.calls.size()) {}

  Overlap Find() {
    if (p_.waits.size() == 0) return {};
    Follow();
    if (always_ ? order_.size() == 0 : !Pays()) return {};
    MakeBlocks();
    return Ordered();
  }

 private:
  struct Part {
    std::vector<int> calls;
    int before = 0;  // waiting calls that it follows, all
  };

  // Which of the waiting calls that are left each call follows, with their
  // numbers in order_.
  void Follow() {
    const int n = static_cast<int>(p_.calls.size());
    maker_.assign(p_.values.size(), -1);
    number_.assign(p_.waits.size(), -1);
    for (int c = 0; c < n; ++c) {
      const Call& call = p_.calls[c];
      WaitSet& set = behind_[c];
      for (ValueId v : call.inputs) {
        if (maker_[v] >= 0) order_.Join(&set, After(maker_[v]));
      }
      if (call.waiter >= 0 || LooksAtState(call)) {
        for (const int32_t w : call.behind) order_.Join(&set, Left(w));
      }
      if (call.waiter >= 0) number_[call.waiter] = order_.Add(set);
      for (ValueId v : call.outputs) maker_[v] = c;
    }
  }
  // Whether it matters when the call is made.
  bool LooksAtState(const Call& call) const {
    return call.effect || call.op->def().is_stateful ||
           std::any_of(call.inputs.begin(), call.inputs.end(),
                       [&](ValueId v) { return IsRef(p_.values[v].dtype); });
  }
  // What follows call c follows.
  WaitSet After(int c) const {
    const int32_t waiter = p_.calls[c].waiter;
    return waiter >= 0 ? WaitSet{number_[waiter]} : behind_[c];
  }
  // What follows waiting call w of the program follows, though passes may have
  // dropped it.
  WaitSet Left(int32_t w) {
    if (number_[w] >= 0) return {number_[w]};
    if (dropped_.empty()) dropped_.resize(p_.waits.size());
    if (!dropped_[w]) {
      WaitSet set;
      for (const int32_t before : p_.waits.behind(w)) {
        order_.Join(&set, Left(before));
      }
      dropped_[w] = std::move(set);
    }
    return *dropped_[w];
  }

  double Time(const Call& call) const {
    if (CallsFunctions(call.op->def())) return kFunctionNs;
    return WorkOf(p_, call).ns;
  }

  // Whether anything stands behind a waiting call that need not wait for it.
  bool Pays() const {
    int seen = 0;
    double ns = 0;
    for (size_t c = 0; c < p_.calls.size(); ++c) {
      const Call& call = p_.calls[c];
      if (seen > 0 && order_.CountBefore(behind_[c]) < seen) {
        if (call.effect || call.waiter >= 0) return true;
        ns += Time(call);
        if (ns >= kWorthThreadNs) return true;
      }
      seen += call.waiter >= 0;
    }
    return false;
  }

  void MakeBlocks() {
    std::map<WaitSet, int> at;
    for (size_t c = 0; c < p_.calls.size(); ++c) {
      const auto [it, added] =
          at.emplace(behind_[c], static_cast<int>(parts_.size()));
      if (added) parts_.push_back({{}, order_.CountBefore(behind_[c])});
      parts_[it->second].calls.push_back(static_cast<int>(c));
    }
    // What a block needs follows fewer waiting calls, so it comes first.
    std::stable_sort(
        parts_.begin(), parts_.end(),
        [](const Part& a, const Part& b) { return a.before < b.before; });
    for (Part& part : parts_) {
      BringForward(&part.calls);
      Postpone(&part.calls);
    }
  }

  // Waiting calls begin as soon as what they need is there, and what they need
  // is done first, of those with the shortest way first: the gradients of the
  // last layers travel while those of the first are computed. What looks at
  // state stays in order, but for calls that have no turn among effects.
  void BringForward(std::vector<int>* calls) const {
    if (std::none_of(calls->begin(), calls->end(),
                     [&](int c) { return p_.calls[c].waiter >= 0; })) {
      return;
    }
    std::map<int, std::vector<int>> needs;  // per call, others of the block
    std::map<int, double> ready;            // ns of the longest way to its end
    std::vector<int> waiting;
    int looked = -1;
    for (const int c : *calls) {
      const Call& call = p_.calls[c];
      std::vector<int> before;
      for (ValueId v : call.inputs) {
        if (needs.contains(maker_[v])) before.push_back(maker_[v]);
      }
      if (LooksAtState(call) && !call.op->def().Has(kMeetsOthers)) {
        if (looked >= 0) before.push_back(looked);
        looked = c;
      }
      double begin = 0;
      for (const int b : before) begin = std::max(begin, ready[b]);
      const bool waits = call.waiter >= 0;
      ready[c] = begin + (waits ? 0 : Time(call));
      if (waits) waiting.push_back(c);
      needs[c] = std::move(before);
    }
    std::stable_sort(waiting.begin(), waiting.end(),
                     [&](int a, int b) { return ready[a] < ready[b]; });
    std::vector<int> order, open;
    HashSet<int> placed;
    for (const int w : waiting) {
      const size_t begin = order.size();
      open.push_back(w);
      while (!open.empty()) {
        const int c = open.back();
        open.pop_back();
        if (!placed.insert(c).second) continue;
        order.push_back(c);
        open.insert(open.end(), needs[c].begin(), needs[c].end());
      }
      std::sort(order.begin() + static_cast<int64_t>(begin), order.end());
    }
    for (const int c : *calls) {
      if (placed.insert(c).second) order.push_back(c);
    }
    *calls = std::move(order);
  }

  // Waiting calls begin where they stand if there is work behind them, else
  // last: what is left to do then may be theirs alone, which takes no thread.
  void Postpone(std::vector<int>* calls) const {
    std::vector<int> late;
    double ns = 0;
    for (size_t i = calls->size(); i-- > 0;) {
      const int c = (*calls)[i];
      if (p_.calls[c].waiter < 0) {
        ns += Time(p_.calls[c]);
      } else if (ns < kWorthThreadNs) {
        late.insert(late.begin(), c);
        calls->erase(calls->begin() + static_cast<int64_t>(i));
      }
    }
    calls->insert(calls->end(), late.begin(), late.end());
  }

  // The program in its new order.
  Overlap Ordered() {
    Overlap made;
    made.waiters.resize(order_.size());
    std::vector<Call> calls;
    calls.reserve(p_.calls.size());
    for (const Part& part : parts_) {
      const WaitSet needs = behind_[part.calls[0]];
      // Behind all that wait nothing is left to go on with.
      const bool rest = part.before == order_.size();
      if (rest) made.end = static_cast<int>(calls.size());
      Overlap::Block block;
      block.needs = static_cast<int>(needs.size());
      const int number = static_cast<int>(made.blocks.size());
      for (const int c : part.calls) {
        const int to = static_cast<int>(calls.size());
        Call& call = p_.calls[c];
        if (call.waiter >= 0) {
          call.waiter = number_[call.waiter];
          Overlap::Waiter& waiter = made.waiters[call.waiter];
          waiter.call = to;
          waiter.busy = call.op->def().Has(kCallsPython);
          waiter.tried = call.op->def().Has(kMayBeTried);
          if (!begun_) made.begin = to;
          begun_ = true;
        }
        calls.push_back(std::move(call));
        if (begun_) block.calls.push_back(to);
      }
      if (rest || block.calls.empty()) continue;
      for (const int32_t w : needs) made.waiters[w].unlocks.push_back(number);
      made.blocks.push_back(std::move(block));
    }
    if (made.end == 0) made.end = static_cast<int>(calls.size());
    p_.calls = std::move(calls);
    return made;
  }

  Program& p_;
  const bool always_;
  std::vector<int> maker_;       // per value, the call that makes it, or -1
  std::vector<WaitSet> behind_;  // per call
  WaitOrder order_;              // of the waiting calls that are left
  std::vector<int32_t> number_;  // per waiting call of the program, or -1
  std::vector<std::optional<WaitSet>> dropped_;
  std::vector<Part> parts_;
  bool begun_ = false;
};

}  // namespace

SideGroup Overlap::AsGroup() const {
  SideGroup group{begin, end, {}, 0};
  std::vector<bool> waits(end - begin);
  for (const Waiter& w : waiters) waits[w.call - begin] = true;
  for (const Block& block : blocks) {
    std::vector<int> strand;
    for (const int c : block.calls) {
      if (waits[c - begin]) {
        group.strands.push_back({c});
      } else {
        strand.push_back(c);
      }
    }
    if (!strand.empty()) group.strands.push_back(std::move(strand));
  }
  return group;
}

Overlap FindOverlap(Program& p, bool always) {
  return OverlapFinder(p, always).Find();
}

namespace {

// Nanoseconds a byte, of kernels that say nothing, or make their outputs
// themselves: as fast as memory is.
constexpr double kByteNs = 0.1;

// Of a call whose values are all of known shapes and plain types, but for
// resources.
std::optional<double> KnownTime(const Program& p, const Call& call) {
  double bytes = 0;
  for (const auto& values :
       {absl::MakeConstSpan(call.inputs), absl::MakeConstSpan(call.outputs)}) {
    for (const ValueId v : values) {
      const ProgramValue& value = p.values[v];
      if (value.dtype == DType::kResource) continue;
      if (!IsPlain(value.dtype) || !value.shape.fully_known()) {
        return std::nullopt;
      }
      bytes += static_cast<double>(value.shape.num_elements()) *
               static_cast<double>(DTypeSize(value.dtype));
    }
  }
  return std::max(WorkOf(p, call).ns, bytes * kByteNs);
}

}  // namespace

bool EndsSoon(const Program& p) {
  double ns = 0;
  for (const Call& call : p.calls) {
    const OpDef& def = call.op->def();
    const bool known_state = def.Has(OpTrait::kNeverWaits) ||
                             def.Is(OpRole::kReadVariable) || def.Is(kSendRole);
    if (def.Has(kMayWait) || CallsFunctions(def) || ReachesOut(def) ||
        (def.is_stateful && !known_state)) {
      return false;
    }
    const std::optional<double> time = KnownTime(p, call);
    if (!time) return false;
    ns += *time;
  }
  return ns < kWorthThreadNs;
}

bool MayPause(const Program& p) {
  // What walks over a dataset may take any time.
  const auto is_variant = [&](ValueId v) {
    return p.values[v].dtype == DType::kVariant;
  };
  double ns = 0;
  for (const Call& call : p.calls) {
    const OpDef& def = call.op->def();
    if (def.Has(kMayWait) ? !def.Has(kMayBeTried)
                          : CallsFunctions(def) || ReachesOut(def)) {
      return false;
    }
    if (std::any_of(call.inputs.begin(), call.inputs.end(), is_variant)) {
      return false;
    }
    const std::optional<double> time = KnownTime(p, call);
    const bool passes = def.is_stateful || def.view_input >= 0;
    if (call.bodies || (!time && !passes)) return false;
    ns += time.value_or(0);
  }
  return ns < kWorthThreadNs;
}

}  // namespace headrace
