// From a program to steps: kernels bound, memory planned.
#include "runtime/planner.h"

#include <map>

#include "runtime/fused_kernel.h"
#include "runtime/product_chain.h"

namespace headrace {
namespace {

// Every value begins at a cache line, as buffers do: vector loops are tuned for
// it, and threads that write neighbouring values share no line.
constexpr int64_t kAlign = 64;
constexpr int64_t kNever = INT64_MAX;

// Free blocks, coalesced: bytes by where they begin.
class FreeBlocks {
 public:
  // -1: none is large enough.
  int64_t Take(int64_t bytes) {
    // First fit, not best: low addresses are taken again soonest, which keeps
    // the arena short and its lines in the cache.
    for (auto it = free_.begin(); it != free_.end(); ++it) {
      if (it->second < bytes) continue;
      int64_t at = it->first, rest = it->second - bytes;
      free_.erase(it);
      if (rest > 0) free_[at + bytes] = rest;
      return at;
    }
    return -1;
  }
  // Takes the block that ends at `end`; where it begins, or `end`.
  int64_t TakeLast(int64_t end) {
    if (free_.empty()) return end;
    auto last = std::prev(free_.end());
    if (last->first + last->second != end) return end;
    const int64_t at = last->first;
    free_.erase(last);
    return at;
  }
  void Give(int64_t at, int64_t bytes) {
    auto [it, added] = free_.emplace(at, bytes);
    auto next = std::next(it);
    if (next != free_.end() && at + bytes == next->first) {
      it->second += next->second;
      free_.erase(next);
    }
    if (it != free_.begin()) {
      auto before = std::prev(it);
      if (before->first + before->second == it->first) {
        before->second += it->second;
        free_.erase(it);
      }
    }
  }
  void GiveAllTo(FreeBlocks* other) {
    for (const auto& [at, bytes] : free_) other->Give(at, bytes);
    free_.clear();
  }

 private:
  std::map<int64_t, int64_t> free_;
};

// Offsets by lifetime. What a strand of a group gives back only that strand
// takes again, until the group ends.
class Arena {
 public:
  int64_t Take(int64_t bytes, int strand) {
    bytes = Round(bytes);
    int64_t at = -1;
    if (strand >= 0) at = strands_[strand].Take(bytes);
    if (at < 0) at = free_.Take(bytes);
    if (at >= 0) return at;
    // The block at the end grows instead of a new one being put behind it.
    at = free_.TakeLast(end_);
    end_ = at + bytes;
    return at;
  }
  // `strand`: whose turn it is, or -1. `crossed`: other strands may look at it.
  void Give(int64_t at, int64_t bytes, int strand, bool crossed) {
    bytes = Round(bytes);
    FreeBlocks& to = strand < 0 ? free_ : crossed ? later_ : strands_[strand];
    to.Give(at, bytes);
  }
  void BeginGroup(size_t strands) { strands_.resize(strands); }
  void EndGroup() {
    for (FreeBlocks& b : strands_) b.GiveAllTo(&free_);
    later_.GiveAllTo(&free_);
  }
  int64_t end() const { return end_; }

 private:
  static int64_t Round(int64_t b) { return (b + kAlign - 1) / kAlign * kAlign; }
  FreeBlocks free_, later_;
  std::vector<FreeBlocks> strands_;
  int64_t end_ = 0;
};

// Where a call runs: which group and strand of it, or -1.
struct Place {
  int group = -1, strand = -1;
};

std::vector<Place> PlacesOf(const Program& p,
                            absl::Span<const SideGroup> groups) {
  std::vector<Place> places(p.calls.size());
  for (size_t g = 0; g < groups.size(); ++g) {
    for (size_t s = 0; s < groups[g].strands.size(); ++s) {
      for (int c : groups[g].strands[s]) {
        places[c] = {static_cast<int>(g), static_cast<int>(s)};
      }
    }
  }
  return places;
}

// MemoryPlan::crossed. `base`: what a view looks at, else itself.
std::vector<bool> FindCrossed(const Program& p,
                              const std::vector<Place>& places,
                              const std::vector<ValueId>& base) {
  std::vector<bool> crossed(p.values.size());
  std::vector<Place> reader(p.values.size());  // the last one
  auto read = [&](ValueId v, const Place& at) {
    const Place before = std::exchange(reader[v], at);
    const bool same = before.group == at.group && at.group >= 0;
    crossed[v] = same && (crossed[v] || before.strand != at.strand);
  };
  for (size_t c = 0; c < p.calls.size(); ++c) {
    for (ValueId v : p.calls[c].inputs) {
      read(v, places[c]);
      // Who reads a view looks at what lies below.
      for (; base[v] != v; v = base[v]) read(base[v], places[c]);
    }
  }
  return crossed;
}

}  // namespace

uint32_t InPlaceInputs(const Call& call) {
  const Kernel* kernel = call.kernel.get();
  if (const auto* fused = dynamic_cast<const FusedKernel*>(kernel)) {
    return fused->in_place_inputs();
  }
  if (const auto* product = dynamic_cast<const ProductChain*>(kernel)) {
    return product->in_place_inputs();
  }
  return call.op->def().in_place_inputs;
}

namespace {

int64_t BytesOf(const Program& p, ValueId v) {
  return std::max<int64_t>(
      p.values[v].shape.num_elements() * DTypeSize(p.values[v].dtype), 1);
}

// The input of call c in whose memory its output 0 may lie, or none.
ValueId TakenOver(const Program& p, const MemoryPlan& plan,
                  const std::vector<ValueId>& base, size_t c) {
  const Call& call = p.calls[c];
  const ValueId v = call.outputs[0];
  const uint32_t may = InPlaceInputs(call);
  for (size_t i = 0; i < call.inputs.size() && i < 32 && may; ++i) {
    const ValueId in = call.inputs[i];
    // An input that is read twice could be read after it was written over.
    const bool once =
        std::count(call.inputs.begin(), call.inputs.end(), in) == 1;
    if ((may >> i & 1) && once && !plan.crossed[in] && plan.offset[in] >= 0 &&
        base[in] == in && plan.last_use[in] == static_cast<int64_t>(c) &&
        BytesOf(p, in) == BytesOf(p, v) &&
        p.values[in].shape == p.values[v].shape) {
      return in;
    }
  }
  return kNoValue;
}

}  // namespace

MemoryPlan PlanMemory(const Program& p, absl::Span<const SideGroup> groups) {
  size_t n = p.values.size();
  MemoryPlan plan;
  plan.offset.assign(n, -1);
  plan.last_use.assign(n, -1);
  std::vector<bool> escapes(n), produced(n);
  std::vector<ValueId> base(n);  // what a view looks at
  for (size_t i = 0; i < n; ++i) base[i] = static_cast<ValueId>(i);

  for (size_t c = 0; c < p.calls.size(); ++c) {
    const Call& call = p.calls[c];
    for (ValueId v : call.inputs) plan.last_use[v] = static_cast<int64_t>(c);
    for (ValueId v : call.outputs) {
      produced[v] = !call.kernel->own_outputs();
      if (plan.last_use[v] < 0) plan.last_use[v] = static_cast<int64_t>(c);
    }
  }
  for (ValueId v : p.fetches) {
    plan.last_use[v] = kNever;
    escapes[v] = true;
  }
  // Backwards: what an op keeps escapes; a view's fate is its base's.
  // Views of views: a later view's fate must be known before that of what it
  // looks at.
  for (size_t c = p.calls.size(); c-- > 0;) {
    const Call& call = p.calls[c];
    const OpDef& def = call.op->def();
    bool view = def.view_input >= 0 && call.outputs.size() == 1;
    // A kernel that makes its outputs itself may hand an input on; one with
    // effects may put it into a variable or a list. Arena memory must not leave
    // its run.
    bool keeps = (call.kernel->own_outputs() && !view) ||
                 (def.is_stateful && !def.Has(OpTrait::kKeepsNoInput));
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      ValueId v = call.inputs[i];
      if (view && static_cast<int>(i) == def.view_input) {
        ValueId out = call.outputs[0];
        base[out] = v;
        if (escapes[out]) escapes[v] = true;
        plan.last_use[v] = std::max(plan.last_use[v], plan.last_use[out]);
      } else if (keeps) {
        escapes[v] = true;
      }
    }
  }
  auto in_arena = [&](ValueId v) {
    const ProgramValue& value = p.values[v];
    // Strings and variants own memory of their own, whose end nobody would see
    // in an arena.
    return produced[v] && !escapes[v] && IsPlain(value.dtype) &&
           value.shape.fully_known() && !value.constant.has_buffer();
  };
  const std::vector<Place> places = PlacesOf(p, groups);
  plan.crossed = FindCrossed(p, places, base);
  std::vector<std::vector<ValueId>> ends(p.calls.size());
  Arena arena;
  size_t group = 0;  // the next or present one
  for (size_t c = 0; c < p.calls.size(); ++c) {
    const Call& call = p.calls[c];
    const int strand = places[c].strand;
    if (group < groups.size() && groups[group].begin == static_cast<int>(c)) {
      arena.BeginGroup(groups[group].strands.size());
    }
    ValueId taken = kNoValue;
    for (size_t o = 0; o < call.outputs.size(); ++o) {
      ValueId v = call.outputs[o];
      if (!in_arena(v)) continue;
      if (o == 0) taken = TakenOver(p, plan, base, c);
      plan.offset[v] = o == 0 && taken != kNoValue
                           ? plan.offset[taken]
                           : arena.Take(BytesOf(p, v), strand);
      if (plan.last_use[v] < kNever) ends[plan.last_use[v]].push_back(v);
    }
    for (ValueId v : ends[c]) {
      // Given back behind the outputs' places: no output may lie where an input
      // of the same call still lies, unless the kernel allows it.
      if (v != taken) {
        arena.Give(plan.offset[v], BytesOf(p, v), strand, plan.crossed[v]);
      }
    }
    if (group < groups.size() && groups[group].end == static_cast<int>(c) + 1) {
      arena.EndGroup();
      ++group;
    }
  }
  plan.arena_bytes = arena.end();
  return plan;
}

}  // namespace headrace
