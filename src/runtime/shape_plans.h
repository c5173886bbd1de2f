// Plans of one graph for the shapes that come.
#pragma once

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "base/cancellation.h"
#include "base/fork_mutex.h"
#include "runtime/executable.h"

namespace headrace {

// Plans for the shapes that come, as a plan that knows all shapes can fuse and
// needs no allocation. Made when shapes come a second time.
class Executable::ShapePlans {
 public:
  explicit ShapePlans(Program generic) : generic_(std::move(generic)) {}

  // Null: the plan for any shapes is to be used.
  Executable* For(absl::Span<const Tensor> feeds) {
    if (feeds.size() != generic_.feeds.size()) return nullptr;
    MutexLock lock(mutex_);
    for (Entry& e : entries_) {
      if (Match(e.shapes, feeds)) return e.plan.get();
    }
    if (entries_.size() >= kMostPlans) return nullptr;
    if (!Match(last_, feeds)) {
      std::vector<Shape> now;
      for (const Tensor& t : feeds) now.push_back(t.shape());
      last_.swap(now);
      return nullptr;
    }
    Entry made{last_, MakeFor(feeds)};
    if (!CheckTokens().ok()) return nullptr;  // not its fault
    entries_.push_back(std::move(made));
    return entries_.back().plan.get();
  }

 private:
  // Plans for shapes that came at least twice: a training has its batch and the
  // last, shorter one, for training and validation; each plan holds an arena.
  static constexpr size_t kMostPlans = 6;
  struct Entry {
    std::vector<Shape> shapes;
    std::unique_ptr<Executable> plan;  // null: none could be made
  };

  static bool Match(const std::vector<Shape>& shapes,
                    absl::Span<const Tensor> feeds) {
    for (size_t i = 0; i < shapes.size(); ++i) {
      if (shapes[i] != feeds[i].shape()) return false;
    }
    return shapes.size() == feeds.size();
  }

  std::unique_ptr<Executable> MakeFor(absl::Span<const Tensor> feeds) const {
    Program p = generic_;
    for (size_t i = 0; i < feeds.size(); ++i) {
      ProgramValue& value = p.values[p.feeds[i]];
      if (!value.shape.CompatibleWith(feeds[i].shape())) return nullptr;
      value.shape = feeds[i].shape();
    }
    auto plan = FromProgram(std::move(p));
    return plan.ok() ? *std::move(plan) : nullptr;
  }

  const Program generic_;
  ForkMutex mutex_;  // held while a plan is made
  std::vector<Shape> last_ ABSL_GUARDED_BY(mutex_);
  std::deque<Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace headrace
