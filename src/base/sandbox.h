// A policy in force: for what was loaded under it, and for what a thread does
// within a scope. Graphs made or imported in a scope belong to its sandbox, and
// whatever runs them, in any thread, enters it again (SandboxCall). Threads,
// jobs and parallel loops begun inside go on inside.
//
// Without a scope each question costs a load of thread-local data.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/cancellation.h"
#include "base/mutex.h"
#include "base/safety_policy.h"
#include "base/status.h"

namespace headrace {

// Thread-safe. Lives as long as something that belongs to it: graphs, memory.
class Sandbox {
 public:
  // `whose`: what errors call it, as "the model in FOLDER"; short.
  Sandbox(SafetyPolicy policy, std::string whose);

  const SafetyPolicy& policy() const { return policy_; }
  const std::string& whose() const { return whose_; }

  // Bytes of tensors and plans in use, and the most there were.
  int64_t memory() const { return memory_.load(std::memory_order_relaxed); }
  int64_t peak_memory() const { return peak_.load(std::memory_order_relaxed); }
  // False, and nothing counted, where that would pass the limit.
  bool TakeMemory(int64_t bytes);
  void GiveMemory(int64_t bytes);

  // Nodes in graphs that live. ResourceExhausted, and nothing counted, beyond
  // the limit.
  Status TakeNodes(int64_t count);
  void GiveNodes(int64_t count);

  // Files that may be read though "reads" is not allowed: what the model
  // brought along. `path` is taken as it really is, without links and "..";
  // NotFound where it is not there, PermissionDenied where it does not lie
  // below `folder`.
  Status PermitFile(const std::string& folder, const std::string& path);
  // All files below the folder `folder`/`inner` whose names begin with `name`,
  // for as long as the result lives, which the sandbox must outlive. None where
  // that folder does not really lie in `folder`.
  std::shared_ptr<void> PermitPrefix(const std::string& folder,
                                     const std::string& inner,
                                     const std::string& name);
  bool has_files() const;
  // Files are open to ops that are allowed by name; before it is used.
  void OpenFiles(Reach reach) { by_name_.Add(reach); }
  // PermissionDenied unless the file may be read (or written).
  Status CheckFile(StringView path, bool write) const;

 private:
  bool Permits(const std::string& real_path) const;

  const SafetyPolicy policy_;
  const std::string whose_;
  Reaches by_name_;
  std::atomic<int64_t> memory_{0}, peak_{0}, nodes_{0};
  mutable Mutex mutex_;
  std::vector<std::string> files_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> prefixes_ ABSL_GUARDED_BY(mutex_);
};
using SandboxPtr = std::shared_ptr<Sandbox>;

// While it lives, what its thread does is in `sandbox`, and in those around;
// null changes nothing.
class SandboxScope {
 public:
  explicit SandboxScope(SandboxPtr sandbox);
  ~SandboxScope();
  SandboxScope(const SandboxScope&) = delete;
  SandboxScope& operator=(const SandboxScope&) = delete;

  const SandboxPtr& sandbox() const { return sandbox_; }
  const SandboxScope* outer() const { return outer_; }

 private:
  friend class SandboxCall;
  const SandboxPtr sandbox_;
  const SandboxScope* const outer_;
  bool timed_ = false;  // a deadline is in force with it
};

// Where a thread is.
class SandboxPlace {
 public:
  static SandboxPlace OfThisThread() { return here_; }
  bool inside() const { return scope_ != nullptr; }
  const SandboxScope* scope() const { return scope_; }

 private:
  friend class SandboxScope;
  friend class SandboxCall;
  friend class AdoptedSandbox;
  friend bool InSandbox();
  friend const SandboxScope* InnermostSandbox();
  const SandboxScope* scope_ = nullptr;
  int64_t depth_ = 0;  // calls within each other
  static constinit thread_local SandboxPlace here_
      [[gnu::tls_model("initial-exec")]];
};

inline bool InSandbox() { return SandboxPlace::here_.scope_ != nullptr; }
// Of this thread, or null.
inline const SandboxScope* InnermostSandbox() {
  return SandboxPlace::here_.scope_;
}
// The innermost sandbox, or null: what is made here belongs to it.
SandboxPtr CurrentSandbox();

// While it lives, its thread is where another one is that waits for it; or
// outside of all (a default place), for work that serves the whole process.
class AdoptedSandbox {
 public:
  explicit AdoptedSandbox(const SandboxPlace& place = {})
      : saved_(SandboxPlace::here_) {
    SandboxPlace::here_ = place;
  }
  ~AdoptedSandbox() { SandboxPlace::here_ = saved_; }
  AdoptedSandbox(const AdoptedSandbox&) = delete;
  AdoptedSandbox& operator=(const AdoptedSandbox&) = delete;

 private:
  const SandboxPlace saved_;
};

// The sandboxes of this thread, to be entered by another that nobody waits for.
class CarriedSandboxes {
 public:
  CarriedSandboxes();
  bool empty() const { return outermost_first_.empty(); }
  // f(), inside of them.
  template <typename F>
  void Run(F&& f) const {
    Run(
        0, [](void* g) { (*static_cast<std::remove_reference_t<F>*>(g))(); },
        const_cast<void*>(static_cast<const void*>(&f)));
  }

 private:
  void Run(size_t from, void (*call)(void*), void* f) const;
  std::vector<SandboxPtr> outermost_first_;
};

// Around one call of what belongs to a sandbox, or, where that is null, to what
// the thread is in: the call is in that sandbox, within its limit of time, and
// one deeper.
class SandboxCall {
 public:
  // Whether there is anything to see to.
  static bool Needed(const Sandbox* own) {
    return own != nullptr || InSandbox();
  }

  explicit SandboxCall(const SandboxPtr& of);
  ~SandboxCall();
  SandboxCall(const SandboxCall&) = delete;
  SandboxCall& operator=(const SandboxCall&) = delete;

  // ResourceExhausted where calls are too deep within each other.
  Status status() const;
  // What the call is to return: says which limit ended it.
  Status Told(Status s) const;

 private:
  std::optional<SandboxScope> scope_;
  std::optional<CancellationToken> token_;
  std::optional<StopScope> stop_;
};

// --- Questions that engine and libraries ask. OK outside of sandboxes.
// Of the files of FileSystemFor.
Status CheckSandboxFile(StringView path, bool write);
// ResourceExhausted for a tensor of so many bytes, by the limit of output.
Status CheckSandboxTensor(int64_t bytes);
// ResourceExhausted where so many bytes more pass the limit of memory.
Status CheckSandboxMemory(int64_t bytes);
// ResourceExhausted where so many nodes more pass the limit of nodes.
Status CheckSandboxNodes(int64_t count);

namespace sandbox {
// Blocks of the allocator's that are counted: how many there are, and the
// counting. Each block is given back once.
extern std::atomic<int64_t> counted_blocks;
// False where a limit would be passed.
[[gnu::cold]] bool CountBlock(const void* block, int64_t bytes);
[[gnu::cold]] void ForgetBlock(const void* block);
// What a counted block's elements hold elsewhere (strings). ResourceExhausted
// beyond a limit.
Status SetHeld(const void* block, int64_t bytes);
}  // namespace sandbox

}  // namespace headrace
