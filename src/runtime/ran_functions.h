// The functions that run: as events of timelines, and, for who wants to see
// their graphs (tf.summary.trace_on), themselves.
#pragma once

#include <memory>
#include <vector>

#include "base/timeline.h"
#include "graph/function.h"

namespace tensorflow {
class GraphDef;
}

namespace headrace {

// From its making to its end a function's plan runs.
class FunctionRunNote {
 public:
  explicit FunctionRunNote(const FunctionPtr& f) {
    if (timeline::On()) [[unlikely]]
      Begin(f);
  }
  explicit FunctionRunNote(const std::weak_ptr<const Function>& f) {
    if (timeline::On()) [[unlikely]]
      Begin(f.lock());
  }
  ~FunctionRunNote() {
    if (function_) [[unlikely]]
      End();
  }
  FunctionRunNote(const FunctionRunNote&) = delete;
  FunctionRunNote& operator=(const FunctionRunNote&) = delete;

 private:
  [[gnu::cold]] void Begin(FunctionPtr f);
  [[gnu::cold]] void End() const noexcept;

  FunctionPtr function_;
  int64_t begin_ = 0;
};

// From now on functions that run are kept, each once, the first 1,000 of them;
// those kept before are dropped.
void CollectRanFunctions();
// Ends that; in the order of their first runs.
std::vector<FunctionPtr> TakeRanFunctions();

// The function's body, its arguments and results nodes of their own (_Arg,
// _Retval), as it was traced.
Status TracedGraph(const Function& f, tensorflow::GraphDef* def);
// The same of the steps of its plan. Their ops may be the engine's own.
Status PlannedGraph(const FunctionPtr& f, tensorflow::GraphDef* def);

}  // namespace headrace
