// Going back through recorded calls, from the gradients that arrive at results
// to those of inputs; a tape's entries and a graph's nodes alike.
#pragma once

#include <utility>
#include <vector>

#include "base/hash_map.h"
#include "op/gradient.h"

namespace headrace {

// `Key` names a value. Gradients go through the current emitter. One walk, one
// thread.
template <typename Key>
class Backward {
 public:
  virtual ~Backward() = default;

  // What is asked for in the end: it can be taken again behind the walk.
  void Seek(const Key& k) { sought_.insert(k); }
  bool sought(const Key& k) const { return sought_.contains(k); }

  void Arrive(const Key& k, Gradient g) {
    if (g) arrived_[k].push_back(std::move(g));
  }
  bool arrived(const Key& k) const { return arrived_.contains(k); }
  // The sum of what arrived; null when nothing came.
  Gradient Take(const Key& k) {
    auto it = arrived_.find(k);
    if (it == arrived_.end()) return {};
    Gradient g =
        it->second.size() == 1 ? std::move(it->second[0]) : Sum(k, it->second);
    // Kept for the end of the walk, where the caller takes it again.
    if (sought_.contains(k)) {
      it->second = {g};
    } else {
      arrived_.erase(it);
    }
    return g;
  }
  // The first error of a sum.
  const Status& status() const { return scope_.status(); }

 protected:
  using Gradients = absl::InlinedVector<Gradient, 2>;

  // Back through one call, if something arrived at an output and an input is
  // wanted. `call(wanted, gradients, &results)` makes a gradient for each
  // input of those of the outputs; `wants(i)`: whether input i's is wanted.
  template <typename Keys, typename Wants, typename Call>
  Status Through(const Keys& outputs, const Keys& inputs, const Wants& wants,
                 const Call& call) {
    bool any = false;
    // Before Take(), which would remove what arrived: a call without wanted
    // inputs must leave the gradient of its outputs where somebody may seek it.
    for (const Key& k : outputs) any = any || arrived(k);
    if (!any) return OkStatus();
    absl::InlinedVector<char, 8> wanted(inputs.size());
    bool some = false;
    for (size_t i = 0; i < wanted.size(); ++i) {
      wanted[i] = wants(i);
      some = some || wanted[i];
    }
    if (!some) return OkStatus();
    Gradients gradients;
    for (const Key& k : outputs) gradients.push_back(Take(k));
    HR_RETURN_IF_ERROR(status());
    std::vector<Gradient> results;
    HR_RETURN_IF_ERROR(call(std::vector<bool>(wanted.begin(), wanted.end()),
                            gradients, &results));
    // Backward functions may be the user's.
    if (results.size() != wanted.size()) {
      return Internal("a backward function gave ", results.size(),
                      " gradients for ", wanted.size(), " inputs");
    }
    for (size_t i = 0; i < results.size(); ++i) {
      if (wanted[i]) Arrive(inputs[i], std::move(results[i]));
    }
    return OkStatus();
  }

  // The sum of several that arrived at `k`.
  virtual Gradient Sum(const Key& k, absl::Span<const Gradient> parts) {
    return SumGradients(scope_, parts);
  }
  // All places where something has arrived.
  const auto& all_arrived() const { return arrived_; }

  OpScope scope_;

 private:
  HashSet<Key> sought_;
  HashMap<Key, absl::InlinedVector<Gradient, 1>> arrived_;
};

}  // namespace headrace
