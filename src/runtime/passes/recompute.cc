// Cheap values that are read again far away are computed again there, where
// the way back of a network would else keep several tensors that all follow
// from one. Runs before the fusing pass, which takes the copies in.
#include "base/hash_map.h"
#include "runtime/program.h"

namespace headrace {
namespace {

// Calls that are made again for one value. In the fused call that reads it
// each costs a pass through registers; longer chains cost more than the memory
// that they save.
constexpr int kLongestChain = 4;

// What parts regions: work beside which cheap calls do not count.
bool IsHeavy(const Call& call) { return call.op->def().Has(OpTrait::kHeavy); }

class Recomputer {
 public:
  explicit Recomputer(Program& p) : p_(p), maker_(p.values.size(), -1) {
    int products = 0;
    for (size_t i = 0; i < p.calls.size(); ++i) {
      region_.push_back(products);
      products += IsHeavy(p.calls[i]);
      for (ValueId v : p.calls[i].outputs) maker_[v] = static_cast<int>(i);
    }
  }

  void Run() {
    if (region_.empty() || region_.back() == 0) return;
    FindUses();
    for (size_t v = 0; v < far_.size(); ++v) {
      const ValueId root = RootOf(static_cast<ValueId>(v));
      if (root != kNoValue) candidates_[root].push_back(static_cast<int>(v));
    }
    for (auto& [root, values] : candidates_) {
      // The root is kept in place of its values. A product that nobody else
      // reads is better left to its chain, which works on it in the cache.
      const int maker = maker_[root];
      const bool kept = maker < 0 || far_[root] || fetched_[root];
      if (!kept && IsHeavy(p_.calls[maker])) continue;
      if (values.size() < (kept ? 1u : 2u)) continue;
      for (ValueId v : values) again_[v] = true;
    }
    Rewrite();
  }

 private:
  // True when the call may be part of a fused one. Its kernel is bound.
  bool MayFuse(int i) {
    Call& call = p_.calls[i];
    if (call.effect || call.outputs.size() != 1) return false;
    const ProgramValue& out = p_.values[call.outputs[0]];
    if (!out.shape.fully_known() || !IsPlain(out.dtype)) return false;
    if (!call.op->def().in_place_inputs) return false;
    return BindCall(call).ok() && call.kernel->elementwise() != nullptr;
  }

  void FindUses() {
    far_.resize(p_.values.size());
    stays_.resize(p_.values.size());
    fetched_.resize(p_.values.size());
    again_.resize(p_.values.size());
    for (ValueId v : p_.fetches) fetched_[v] = stays_[v] = true;
    for (size_t j = 0; j < p_.calls.size(); ++j) {
      for (ValueId v : p_.calls[j].inputs) {
        if (maker_[v] < 0 || region_[maker_[v]] == region_[j]) continue;
        far_[v] = true;
        if (!stays_[v] && OperandOf(v) != kNoValue) {
          stays_[v] = !MayFuse(static_cast<int>(j));
        }
      }
    }
  }

  // What a cheap value is made of, the rest being single constants; kNoValue
  // for other values.
  ValueId OperandOf(ValueId v) {
    const int i = maker_[v];
    if (i < 0 || !p_.calls[i].op->def().Has(OpTrait::kCheap)) return kNoValue;
    const Shape& shape = p_.values[v].shape;
    if (!shape.fully_known() || shape.num_elements() < 2) return kNoValue;
    ValueId operand = kNoValue;
    for (ValueId u : p_.calls[i].inputs) {
      const ProgramValue& in = p_.values[u];
      if (in.constant.has_buffer() && in.constant.num_elements() == 1) continue;
      if (operand != kNoValue || in.shape != shape) return kNoValue;
      operand = u;
    }
    return operand;
  }

  // Behind the chain of cheap calls that makes `v`, for values that need not
  // be kept if they are made again; else kNoValue.
  ValueId RootOf(ValueId v) {
    if (!far_[v] || stays_[v]) return kNoValue;
    ValueId u = OperandOf(v);
    if (u == kNoValue) return kNoValue;
    for (int n = 1; n < kLongestChain; ++n) {
      const ValueId next = OperandOf(u);
      if (next == kNoValue) break;
      u = next;
    }
    return u;
  }

  // `v` as call j should read it; what makes it again goes to `calls`.
  ValueId Near(ValueId v, size_t j, int depth, std::vector<Call>* calls) {
    const int i = v < static_cast<ValueId>(maker_.size()) ? maker_[v] : -1;
    if (i < 0 || region_[i] == region_[j] || depth == 0) return v;
    const ValueId operand = OperandOf(v);
    if (operand == kNoValue) return v;
    auto [it, added] = made_.emplace(std::make_pair(v, region_[j]), kNoValue);
    if (!added) return it->second;
    const ValueId near = Near(operand, j, depth - 1, calls);
    Call copy = p_.calls[i];
    for (ValueId& u : copy.inputs) {
      if (u == operand) u = near;
    }
    const ProgramValue like = p_.values[v];
    copy.outputs = {p_.NewValue(like.dtype, like.shape)};
    made_[{v, region_[j]}] = copy.outputs[0];
    calls->push_back(std::move(copy));
    return calls->back().outputs[0];
  }

  void Rewrite() {
    std::vector<std::vector<Call>> before(p_.calls.size());
    bool any = false;
    for (size_t j = 0; j < p_.calls.size(); ++j) {
      for (size_t k = 0; k < p_.calls[j].inputs.size(); ++k) {
        const ValueId v = p_.calls[j].inputs[k];
        if (!again_[v] || region_[maker_[v]] == region_[j]) continue;
        p_.calls[j].inputs[k] = Near(v, j, kLongestChain, &before[j]);
        any = true;
      }
    }
    if (!any) return;
    std::vector<Call> calls;
    for (size_t j = 0; j < p_.calls.size(); ++j) {
      for (Call& c : before[j]) calls.push_back(std::move(c));
      calls.push_back(std::move(p_.calls[j]));
    }
    p_.calls = std::move(calls);
  }

  Program& p_;
  std::vector<int> maker_;   // the call that makes a value, or -1
  std::vector<int> region_;  // products before a call
  std::vector<bool> far_;    // read behind a later product
  std::vector<bool> stays_;  // kept anyway
  std::vector<bool> fetched_;
  std::vector<bool> again_;                            // to be made again
  HashMap<ValueId, std::vector<ValueId>> candidates_;  // by root
  HashMap<std::pair<ValueId, int>, ValueId> made_;
};

}  // namespace

void RecomputeCheap(Program& p) { Recomputer(p).Run(); }

}  // namespace headrace
