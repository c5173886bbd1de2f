// The traces of a function, found by the signature of a call.
#pragma once

#include <memory>
#include <utility>
#include <vector>

namespace headrace {

// `Trace` has `bool Fits(const Key&) const`. The one that fitted last is tried
// first, as most functions are called alike; then all, in the order in which
// they were made. For one thread at a time.
template <typename Trace>
class TraceCache {
 public:
  // Null where none fits. Fits may run a front end's code, which may drop
  // traces or add some: none is looked at behind the end of the list.
  template <typename Key>
  Trace* Find(const Key& key) {
    if (last_ && last_->Fits(key)) [[likely]]
      return last_;
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
  // All of them, which the caller destroys.
  std::vector<std::unique_ptr<Trace>> TakeAll() {
    last_ = nullptr;
    return std::exchange(traces_, {});
  }
  const std::vector<std::unique_ptr<Trace>>& all() const { return traces_; }

 private:
  std::vector<std::unique_ptr<Trace>> traces_;
  Trace* last_ = nullptr;  // one of them, or null
};

}  // namespace headrace
