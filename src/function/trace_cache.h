// The traces of a function, found by the signature of a call.
#pragma once

#include <memory>
#include <utility>
#include <vector>

namespace headrace {

// `Trace` has `bool Fits(const Key&) const`. The one that fitted last is tried
// first, as most functions are called alike; then all, in the order in which
// they were made. For one thread at a time, but Fits may run a front end's
// code, which may call the function, add traces or drop them: those that are
// dropped stay whole until no search is under way.
template <typename Trace>
class TraceCache {
 public:
  // Null where none fits.
  template <typename Key>
  Trace* Find(const Key& key) {
    const Search search(this);
    if (Trace* t = last_; t && t->Fits(key)) [[likely]]
      return last_ = t;
    for (size_t i = 0; i < traces_.size(); ++i) {
      Trace* t = traces_[i].get();
      if (t != last_ && t->Fits(key)) return last_ = t;
    }
    return nullptr;
  }
  Trace* Add(std::unique_ptr<Trace> trace) {
    traces_.push_back(std::move(trace));
    return last_ = traces_.back().get();
  }
  // Drops the oldest beyond `most`.
  void Trim(size_t most) {
    while (traces_.size() > most) {
      if (last_ == traces_.front().get()) last_ = nullptr;
      dropped_.push_back(std::move(traces_.front()));
      traces_.erase(traces_.begin());
    }
  }
  void Clear() {
    Trim(0);
    last_ = nullptr;
  }
  // What was dropped, for the caller to destroy: nothing during a search.
  [[nodiscard]] std::vector<std::unique_ptr<Trace>> TakeDropped() {
    if (searches_ > 0) return {};
    return std::exchange(dropped_, {});
  }
  const std::vector<std::unique_ptr<Trace>>& all() const { return traces_; }

 private:
  struct Search {
    explicit Search(TraceCache* c) : cache(c) { ++cache->searches_; }
    ~Search() { --cache->searches_; }
    TraceCache* cache;
  };

  std::vector<std::unique_ptr<Trace>> traces_, dropped_;
  Trace* last_ = nullptr;  // one of them, or null
  int searches_ = 0;       // under way
};

}  // namespace headrace
