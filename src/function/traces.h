// Which traces a function keeps, finds and generalises: the rules of all
// languages.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace headrace {

// The traces of one function in the order in which they were made. `Trace` is a
// front end's handle of one: copied, and compared by ==. Each front end says
// when a trace serves a call and what two signatures have in common; when that
// is asked, and what follows, is said here. For one thread at a time; what is
// called back may add traces and drop them.
template <typename Trace>
class Traces {
 public:
  // Traces beyond these go, first those that were not used since the last went.
  static constexpr size_t kMost = 128;

  // What the next trace does with the sizes in which its call differs from a
  // trace that there is.
  enum class Sizes {
    kExact,
    kOpen,         // leaves them open
    kOpenIfItCan,  // the same, but is exact where it cannot be made so
  };
  // The first kMost are exact, unless the function asks for fewer traces; those
  // beyond leave sizes open, so that ever new shapes do not trace for ever.
  Sizes SizesOfNext(bool reduce_retracing) const {
    if (sizes_stay_) return Sizes::kExact;
    if (reduce_retracing) return Sizes::kOpen;
    return is_full() ? Sizes::kOpenIfItCan : Sizes::kExact;
  }
  // The function cannot be traced for open sizes: it is not tried again.
  void SizesStay() { sizes_stay_ = true; }

  bool is_full() const { return all_.size() >= kMost; }
  const std::vector<Trace>& all() const { return all_; }

  // The most special of the traces that serve a call, and uses it; null where
  // none does. serves(trace); is_below(a, b): `b` serves all that `a` does.
  template <typename ServesFn, typename BelowFn>
  const Trace* Find(const ServesFn& serves, const BelowFn& is_below) {
    const std::vector<Trace> all = all_;
    const Trace* best = nullptr;
    for (const Trace& t : all) {
      if (serves(t) && (best == nullptr || is_below(t, *best))) best = &t;
    }
    return best == nullptr ? nullptr : Use(*best);
  }
  // joined(trace) for the newest trace for which it is more than null.
  template <typename JoinedFn>
  auto Joined(const JoinedFn& joined) const {
    const std::vector<Trace> all = all_;
    for (auto t = all.rbegin(); t != all.rend(); ++t) {
      if (auto found = joined(*t)) return found;
    }
    return decltype(joined(all[0]))();
  }

  // Marks it used. Null where it was dropped meanwhile.
  const Trace* Use(const Trace& trace) {
    const auto at = std::find(all_.begin(), all_.end(), trace);
    if (at == all_.end()) return nullptr;
    used_[at - all_.begin()] = true;
    return &*at;
  }
  // Gives the one that had to go, if any: destroying it may run code that calls
  // the function.
  [[nodiscard]] std::optional<Trace> Add(Trace trace) {
    std::optional<Trace> gone;
    if (is_full()) {
      const auto idle = std::find(used_.begin(), used_.end(), false);
      gone = Take(idle == used_.end() ? 0 : idle - used_.begin());
      used_.assign(used_.size(), false);
    }
    all_.push_back(std::move(trace));
    used_.push_back(false);
    return gone;
  }
  // The same of one that nothing can call any more.
  [[nodiscard]] std::optional<Trace> Remove(const Trace& trace) {
    const auto at = std::find(all_.begin(), all_.end(), trace);
    if (at == all_.end()) return std::nullopt;
    return Take(at - all_.begin());
  }

 private:
  Trace Take(size_t at) {
    Trace taken = std::move(all_[at]);
    all_.erase(all_.begin() + at);
    used_.erase(used_.begin() + at);
    return taken;
  }

  std::vector<Trace> all_;
  std::vector<bool> used_;  // one a trace: since the last went
  bool sizes_stay_ = false;
};

}  // namespace headrace
