// The one thing that runs: a program bound to kernels and memory once, then
// run many times.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "base/fork_mutex.h"
#include "graph/function.h"
#include "op/function_caller.h"
#include "op/kernel.h"
#include "op/passes/product_kernel.h"
#include "runtime/overlap.h"
#include "runtime/planner.h"
#include "runtime/prepared_weights.h"
#include "runtime/program.h"

namespace tensorflow {
class GraphDef;
}

namespace headrace {

// Where a run goes on that holds no thread while it waits. Thread-safe.
class RunHost {
 public:
  virtual ~RunHost() = default;
  // Calls `part`, a part of the run, amid what such parts need on their thread.
  virtual void Around(absl::FunctionRef<void()> part) = 0;
  // Has `part` called once, soon, on any thread; not within this call, which
  // comes from amid whatever the run waited for.
  virtual void GoOn(std::function<void()> part) = 0;
};

// Such a run.
class PausingRun {
 public:
  virtual ~PausingRun() = default;
  // What Executable::Run would say and give. Called once, on whichever thread,
  // perhaps within Start.
  using Ended = std::function<void(Status, std::vector<Tensor> fetches)>;
  // Once. Feeds are moved from.
  virtual void Start(std::vector<Tensor> feeds, Ended ended) = 0;
  // Has it look whether it is to stop. On any thread, at any time.
  virtual void Poke() = 0;
};

// Thread-safe: runs may overlap; each takes a workspace (slots and arena) of
// its own, kept for the next run.
class Executable {
 public:
  // Optimises and binds. Errors: what MakeProgram reports, and NotFound where
  // an op has no kernel.
  static StatusOr<std::unique_ptr<Executable>> Make(
      const Graph& graph, absl::Span<const Edge> feeds,
      absl::Span<const Edge> fetches, absl::Span<Node* const> targets,
      const FunctionLibrary* library);
  static StatusOr<std::unique_ptr<Executable>> Make(
      const Function& f, const FunctionLibrary* library);
  ~Executable();

  // Of a program as MakeProgram writes it.
  static StatusOr<std::unique_ptr<Executable>> FromProgram(Program p);

  // Feeds are moved from. On error nothing is in *fetches. The error names the
  // step: "...\n\t [[{{node name}}]]".
  Status Run(const RunServices& services, absl::Span<Tensor> feeds,
             std::vector<Tensor>* fetches);

  // Whether runs may go by MakePausing, on threads that others wait for: parts
  // between waits are short, and what waits needs no thread.
  bool may_pause() const;
  // A run that has a thread only while it need not wait; may_pause() was true.
  static StatusOr<std::shared_ptr<PausingRun>> MakePausing(
      std::shared_ptr<Executable> e, const RunServices& services,
      std::shared_ptr<RunHost> host);

  // For callers that run again and again. `keep` lives as long as the result,
  // which this executable must outlive.
  StatusOr<std::unique_ptr<FunctionRun>> Begin(
      const RunServices& services, std::shared_ptr<void> keep = nullptr);

  int num_feeds() const { return static_cast<int>(feeds_.size()); }
  int num_fetches() const { return static_cast<int>(fetches_.size()); }
  int num_steps() const { return static_cast<int>(steps_.size()); }
  size_t arena_bytes() const { return arena_bytes_; }
  int num_side_groups() const { return static_cast<int>(beside_.size()); }
  // Steps that wait while others run.
  int num_overlapping() const {
    return static_cast<int>(overlap_.waiters.size());
  }
  // Whether runs end at once, and never wait (runtime/overlap.h).
  bool ends_soon() const { return ends_soon_; }
  // One line a step, for tests and docs.
  std::string DebugString() const;
  // The same as nodes; see PlannedGraph (runtime/ran_functions.h).
  Status Describe(const Function& f, tensorflow::GraphDef* def) const;

 private:
  struct Step {
    Kernel* kernel = nullptr;
    ResolvedOpPtr op;
    std::shared_ptr<Kernel> owned;
    std::string name;
    absl::InlinedVector<ValueId, 4> inputs;
    absl::InlinedVector<ValueId, 2> outputs;
    absl::InlinedVector<ValueId, 2> allocate;  // static, of this run
    absl::InlinedVector<ValueId, 2> release;   // last used here
    absl::InlinedVector<ValueId, 2> pin;       // may not be taken over here
    const ProductKernel* product = nullptr;    // with weights worth preparing
    int prepared = -1;                         // its place in prepared_
    int shared_weights = -1;                   // or in a workspace's
    uint32_t reusable = 0;  // inputs that output 0 may take the memory of
    bool dynamic = false;   // shapes to be found, or checked, at the run
    int rule = -1;          // its place in Workspace::ruled, if dynamic
    bool own = false;       // the kernel makes its outputs itself
    absl::InlinedVector<ValueId, 2>
        verify;  // made by the kernel; to be checked
  };
  struct Slot {
    DType dtype = DType::kInvalid;
    Shape shape;
    Tensor constant;
    int64_t offset = -1;  // in the arena
    bool is_static = false;
  };
  // Steps [begin, end) that run as strands side by side.
  struct Beside {
    int begin = 0, end = 0;
    std::vector<std::vector<int>> strands;    // steps, in order
    double ns = 0;                            // of all, on one thread
    absl::InlinedVector<ValueId, 2> release;  // what several strands read
  };
  struct FirstError;
  class OverlapRun;
  class Pausing;
  struct Workspace;
  class Repeated;
  class ShapePlans;
  friend class TurnPlan;  // runtime/turns.h
  friend class Turns;

  Executable();
  // Parts of Make. `from_workspace`: values that are set once in a workspace.
  std::vector<bool> AddSlots(Program& p, const MemoryPlan& plan);
  bool KnownView(const Call& call,
                 const std::vector<bool>& from_workspace) const;
  Step StepOf(Program& p, const MemoryPlan& plan, int c,
              PreparedWeights::Source weights, int shared_weights, bool guess,
              const std::vector<bool>& from_workspace);
  void SetBeside(absl::Span<const SideGroup> groups,
                 const std::vector<int>& step_of);
  void SetOverlap(Overlap overlap, const std::vector<int>& step_of);
  void ShareInOverlap(ValueId v);
  void SetEnds(const Program& p, const MemoryPlan& plan,
               const std::vector<int>& step_of,
               const std::vector<bool>& from_workspace);
  StatusOr<std::unique_ptr<Workspace>> NewWorkspace();
  StatusOr<std::unique_ptr<Workspace>> Acquire();
  void Release(std::unique_ptr<Workspace> workspace);
  Status SetFeeds(Workspace& f, absl::Span<Tensor> feeds);
  Status RunIn(Workspace& f, absl::Span<Tensor> feeds,
               std::vector<Tensor>* fetches);
  // The same where sandboxes are to be seen to, and where they were.
  Status RunConfined(Workspace& f, absl::Span<Tensor> feeds,
                     std::vector<Tensor>* fetches);
  Status RunHere(Workspace& f, absl::Span<Tensor> feeds,
                 std::vector<Tensor>* fetches);
  // Behind a run: its results, or, where it failed, nothing.
  void HandOut(Workspace& f, std::vector<Tensor>* fetches);
  void Drop(Workspace& f, std::vector<Tensor>* fetches);
  Status RunSteps(Workspace& f);
  Status RunAllGroups(Workspace& f);
  // Steps [begin, end), with the groups among them.
  Status RunGroups(Workspace& f, int begin, int end, bool timed);
  // The steps of overlap_.
  Status RunOverlap(Workspace& f, bool timed);
  // Steps [begin, end), one by one.
  Status RunRange(Workspace& f, int begin, int end, bool timed);
  std::string StrandOf(int step) const;
  Status RunBeside(Workspace& f, const Beside& group);
  void RunStrand(Workspace& f, absl::Span<const int> strand, FirstError* error);
  Status RunStep(Workspace& f, int i);
  Status RunTimed(Workspace& f, int i);  // as an event of timelines
  Status RunProduct(Workspace& f, int i);
  Status PrepareDynamic(Workspace& f, const Step& s);
  Status RunRule(Workspace& f, const Step& s);
  Status MakeOutputs(Workspace& f, const Step& s,
                     absl::Span<const Shape> shapes);
  // Gives output 0 an input's memory where that is allowed and free.
  bool TakeOver(Workspace& f, const Step& s, const Shape& shape);
  // Results of the run before, which nobody has any more, make room.
  void ReuseFetches(Workspace& f, absl::Span<Tensor> old);
  Status CheckResult(const Workspace& f, ValueId v) const;

  std::vector<Step> steps_;
  std::vector<Beside> beside_;
  Overlap overlap_;  // of steps
  // What several steps of its strands read, and by how many; per step of it:
  // which of these.
  struct Shared {
    ValueId value = kNoValue;
    int readers = 0;
  };
  std::vector<Shared> shared_;
  std::vector<absl::InlinedVector<int, 1>> shared_by_step_;
  // Of products whose weights may stay the same from run to run.
  std::vector<std::unique_ptr<PreparedWeights>> prepared_;
  std::vector<Step> view_steps_;  // run once a workspace: views of its memory
  std::vector<Slot> slots_;
  std::vector<ValueId> feeds_;
  std::vector<bool> feed_used_;
  std::vector<ValueId> fetches_;
  std::vector<bool> fetch_moves_;  // the slot holds nothing else's value
  std::vector<bool> fetch_room_;   // may be handed its memory before the run
  std::vector<ValueId> clear_at_end_;
  std::vector<ValueId> counted_;          // every slot that a run fills
  std::unique_ptr<ShapePlans> by_shape_;  // where feeds' shapes vary
  SandboxPtr sandbox_;                    // what it runs in, or null
  int num_rules_ = 0;                     // dynamic steps
  int num_shared_weights_ = 0;            // RunWeights of a workspace
  size_t arena_bytes_ = 0;
  bool ends_soon_ = false, may_pause_ = false;
  std::atomic<int> long_parts_ = 0;  // that runs which paused have had
  std::atomic<Workspace*> spare_{nullptr};
  ForkMutex mutex_;
  std::vector<std::unique_ptr<Workspace>> workspaces_ ABSL_GUARDED_BY(mutex_);
};

// Shared executables of functions: one each, made at first use and kept as
// long as the function lives.
StatusOr<std::shared_ptr<Executable>> ExecutableOf(
    const FunctionPtr& f, const FunctionLibrary* library);

}  // namespace headrace
