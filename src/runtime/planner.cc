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

// First-fit offsets with coalescing, by lifetime.
class Arena {
 public:
  int64_t Take(int64_t bytes) {
    bytes = Round(bytes);
    // First fit, not best: low addresses are taken again soonest, which keeps
    // the arena short and its lines in the cache.
    for (auto it = free_.begin(); it != free_.end(); ++it) {
      if (it->second < bytes) continue;
      int64_t at = it->first, rest = it->second - bytes;
      free_.erase(it);
      if (rest > 0) free_[at + bytes] = rest;
      return at;
    }
    // The block at the end grows instead of a new one being put behind it.
    int64_t at = end_;
    if (!free_.empty()) {
      auto last = std::prev(free_.end());
      if (last->first + last->second == end_) {
        at = last->first;
        free_.erase(last);
      }
    }
    end_ = at + bytes;
    return at;
  }
  void Give(int64_t at, int64_t bytes) {
    bytes = Round(bytes);
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
  int64_t end() const { return end_; }

 private:
  static int64_t Round(int64_t b) { return (b + kAlign - 1) / kAlign * kAlign; }
  std::map<int64_t, int64_t> free_;
  int64_t end_ = 0;
};

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

MemoryPlan PlanMemory(const Program& p) {
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
  auto bytes_of = [&](ValueId v) {
    return std::max<int64_t>(
        p.values[v].shape.num_elements() * DTypeSize(p.values[v].dtype), 1);
  };
  std::vector<std::vector<ValueId>> ends(p.calls.size());
  Arena arena;
  for (size_t c = 0; c < p.calls.size(); ++c) {
    const Call& call = p.calls[c];
    ValueId taken = kNoValue;
    for (size_t o = 0; o < call.outputs.size(); ++o) {
      ValueId v = call.outputs[o];
      if (!in_arena(v)) continue;
      uint32_t may = o == 0 ? InPlaceInputs(call) : 0;
      for (size_t i = 0; i < call.inputs.size() && i < 32 && may; ++i) {
        ValueId in = call.inputs[i];
        // An input that is read twice could be read after it was written over.
        bool once = std::count(call.inputs.begin(), call.inputs.end(), in) == 1;
        if ((may >> i & 1) && once && plan.offset[in] >= 0 && base[in] == in &&
            plan.last_use[in] == static_cast<int64_t>(c) &&
            bytes_of(in) == bytes_of(v) &&
            p.values[in].shape == p.values[v].shape) {
          plan.offset[v] = plan.offset[in];
          taken = in;
          break;
        }
      }
      if (plan.offset[v] < 0) plan.offset[v] = arena.Take(bytes_of(v));
      if (plan.last_use[v] < kNever) ends[plan.last_use[v]].push_back(v);
    }
    for (ValueId v : ends[c]) {
      // Given back behind the outputs' places: no output may lie where an input
      // of the same call still lies, unless the kernel allows it.
      if (v != taken) arena.Give(plan.offset[v], bytes_of(v));
    }
  }
  plan.arena_bytes = arena.end();
  return plan;
}

}  // namespace headrace
