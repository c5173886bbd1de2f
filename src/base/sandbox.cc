#include "base/sandbox.h"

#include <stdlib.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "base/fork_mutex.h"
#include "base/hash_map.h"

namespace headrace {
namespace {

// "/a/b" of what lies at `path`, links followed; empty where nothing does.
std::string RealPath(const std::string& path) {
  if (path.find('\0') != std::string::npos) return {};
  char* const real = ::realpath(path.c_str(), nullptr);
  if (real == nullptr) return {};
  std::string copy = real;
  std::free(real);
  return copy;
}

// That of something that is not there, or of what is; empty where its folder is
// not there either.
std::string WouldBePath(const std::string& path) {
  std::string real = RealPath(path);
  const size_t slash = path.rfind('/');
  if (!real.empty() || slash == std::string::npos) return real;
  const std::string folder = RealPath(path.substr(0, slash + 1));
  const std::string name = path.substr(slash + 1);
  if (folder.empty() || name.empty() || name == "..") return {};
  return folder + "/" + name;
}

std::string LocalPath(StringView path) {
  absl::ConsumePrefix(&path, "file://");
  return std::string(path);
}

// Whose limit a block counts against: one sandbox, or those around it too.
struct CountedBlock {
  absl::InlinedVector<SandboxPtr, 1> by;
  int64_t bytes = 0, held = 0;
};

// Blocks by address, in parts with locks of their own.
struct BlockShard {
  ProcessMutex mutex;
  HashMap<const void*, CountedBlock> blocks ABSL_GUARDED_BY(mutex);
};
constexpr size_t kShards = 32;
BlockShard& ShardOf(const void* block) {
  static BlockShard* const shards = new BlockShard[kShards];
  return shards[(reinterpret_cast<uintptr_t>(block) >> 6) % kShards];
}

bool TakeAll(absl::Span<const SandboxPtr> by, int64_t bytes) {
  for (size_t i = 0; i < by.size(); ++i) {
    if (by[i]->TakeMemory(bytes)) continue;
    while (i-- > 0) by[i]->GiveMemory(bytes);
    return false;
  }
  return true;
}

}  // namespace

constinit thread_local SandboxPlace SandboxPlace::here_;

Sandbox::Sandbox(SafetyPolicy policy, std::string whose)
    : policy_(std::move(policy)), whose_(std::move(whose)) {}

bool Sandbox::TakeMemory(int64_t bytes) {
  const int64_t now =
      memory_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (policy_.memory > 0 && now > policy_.memory) {
    memory_.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
  }
  int64_t peak = peak_.load(std::memory_order_relaxed);
  while (now > peak &&
         !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
  return true;
}

void Sandbox::GiveMemory(int64_t bytes) {
  memory_.fetch_sub(bytes, std::memory_order_relaxed);
}

Status Sandbox::TakeNodes(int64_t count) {
  const int64_t now =
      nodes_.fetch_add(count, std::memory_order_relaxed) + count;
  if (policy_.nodes == 0 || now <= policy_.nodes) return OkStatus();
  GiveNodes(count);
  return ResourceExhausted("safe mode: ", whose_, " may have ", policy_.nodes,
                           " nodes and needs ", now,
                           " (its limit `nodes` says how many)");
}

void Sandbox::GiveNodes(int64_t count) {
  nodes_.fetch_sub(count, std::memory_order_relaxed);
}

Status Sandbox::PermitFile(const std::string& folder, const std::string& path) {
  const std::string below = RealPath(LocalPath(folder));
  std::string real = RealPath(LocalPath(path));
  if (real.empty()) return NotFound(path, "; No such file or directory");
  if (below.empty() || !absl::StartsWith(real, below + "/")) {
    return PermissionDenied("safe mode: ", whose_, " names the file ", path,
                            ", which does not lie in its folder ", folder,
                            " (allow \"reads\" to permit that)");
  }
  MutexLock lock(mutex_);
  files_.push_back(std::move(real));
  return OkStatus();
}

std::shared_ptr<void> Sandbox::PermitPrefix(const std::string& folder,
                                            const std::string& inner,
                                            const std::string& name) {
  const std::string below = RealPath(LocalPath(folder));
  const std::string real = RealPath(below + "/" + inner);
  if (below.empty() || !absl::StartsWith(real, below + "/")) return nullptr;
  const std::string prefix = real + "/" + name;
  MutexLock lock(mutex_);
  prefixes_.push_back(prefix);
  return std::shared_ptr<void>(nullptr, [this, prefix](void*) {
    MutexLock again(mutex_);
    prefixes_.erase(std::find(prefixes_.begin(), prefixes_.end(), prefix));
  });
}

bool Sandbox::has_files() const {
  MutexLock lock(mutex_);
  return !files_.empty() || !prefixes_.empty();
}

bool Sandbox::Permits(const std::string& real_path) const {
  MutexLock lock(mutex_);
  const auto begins = [&](const std::string& prefix) {
    return absl::StartsWith(real_path, prefix);
  };
  return std::find(files_.begin(), files_.end(), real_path) != files_.end() ||
         std::any_of(prefixes_.begin(), prefixes_.end(), begins);
}

Status Sandbox::CheckFile(StringView path, bool write) const {
  const Reach reach = write ? Reach::kWritesFiles : Reach::kReadsFiles;
  if (policy_.allowed.Has(reach) || by_name_.Has(reach)) return OkStatus();
  if (!write) {
    // One that is not there may be asked for where it would be permitted: a
    // prefix of files, or to learn that it is missing. Elsewhere answers would
    // tell which files there are.
    const std::string real = WouldBePath(LocalPath(path));
    if (!real.empty() && Permits(real)) return OkStatus();
  }
  return PermissionDenied("safe mode: ", whose_, " may not ",
                          write ? "write" : "read", " the file '", path,
                          "' (allow \"", WordOf(reach), "\" to permit that)");
}

SandboxScope::SandboxScope(SandboxPtr sandbox)
    : sandbox_(std::move(sandbox)), outer_(SandboxPlace::here_.scope_) {
  if (sandbox_) SandboxPlace::here_.scope_ = this;
}

SandboxScope::~SandboxScope() { SandboxPlace::here_.scope_ = outer_; }

SandboxPtr CurrentSandbox() {
  const SandboxScope* scope = InnermostSandbox();
  return scope ? scope->sandbox() : nullptr;
}

CarriedSandboxes::CarriedSandboxes() {
  for (auto* s = InnermostSandbox(); s; s = s->outer()) {
    outermost_first_.insert(outermost_first_.begin(), s->sandbox());
  }
}

void CarriedSandboxes::Run(size_t from, void (*call)(void*), void* f) const {
  if (from == outermost_first_.size()) return call(f);
  const SandboxScope scope(outermost_first_[from]);
  Run(from + 1, call, f);
}

SandboxCall::SandboxCall(const SandboxPtr& of) {
  // A scope that a thread opened has no deadline: each call in it has one.
  const SandboxPtr own = of ? of : CurrentSandbox();
  const SandboxScope* entered = InnermostSandbox();
  while (own && entered && entered->sandbox() != own)
    entered = entered->outer();
  if (own && (entered == nullptr || !entered->timed_)) {
    scope_.emplace(own);
    if (const int64_t limit = own->policy().time_ns) {
      token_.emplace(CancellationToken::Clock::now() +
                     std::chrono::nanoseconds(limit));
      stop_.emplace(&*token_);
    }
    scope_->timed_ = true;
  }
  ++SandboxPlace::here_.depth_;
}

SandboxCall::~SandboxCall() { --SandboxPlace::here_.depth_; }

Status SandboxCall::status() const {
  const int64_t depth = SandboxPlace::here_.depth_;
  for (auto* s = InnermostSandbox(); s; s = s->outer()) {
    const int64_t limit = s->sandbox()->policy().recursion;
    if (limit == 0 || depth <= limit) continue;
    return ResourceExhausted(
        "safe mode: functions of ", s->sandbox()->whose(),
        " call each other more than ", limit,
        " deep (its limit `recursion` says how deep they may)");
  }
  return OkStatus();
}

Status SandboxCall::Told(Status s) const {
  if (s.code() != absl::StatusCode::kDeadlineExceeded || !token_ ||
      !token_->cancelled()) {
    return s;
  }
  const Sandbox& own = *scope_->sandbox();
  return DeadlineExceeded(s.message(), "\n\t safe mode: a call of ",
                          own.whose(), " took more than ",
                          static_cast<double>(own.policy().time_ns) / 1e9,
                          " seconds (its limit `time` says how long it may)");
}

Status CheckSandboxFile(StringView path, bool write) {
  for (auto* s = InnermostSandbox(); s; s = s->outer()) {
    HR_RETURN_IF_ERROR(s->sandbox()->CheckFile(path, write));
  }
  return OkStatus();
}

Status CheckSandboxTensor(int64_t bytes) {
  for (auto* s = InnermostSandbox(); s; s = s->outer()) {
    const Sandbox& box = *s->sandbox();
    const int64_t limit = box.policy().output;
    if (limit == 0 || bytes <= limit) continue;
    return ResourceExhausted("safe mode: a tensor of ", bytes,
                             " bytes, where those of ", box.whose(),
                             " may have ", limit,
                             " (its limit `output` says how many)");
  }
  return OkStatus();
}

Status CheckSandboxMemory(int64_t bytes) {
  for (auto* s = InnermostSandbox(); s; s = s->outer()) {
    const Sandbox& box = *s->sandbox();
    const int64_t limit = box.policy().memory;
    if (limit == 0 || bytes <= limit - box.memory()) continue;
    return ResourceExhausted("safe mode: ", bytes, " bytes more, where ",
                             box.whose(), " has ", box.memory(), " of ", limit,
                             " in use (its limit `memory` says how many)");
  }
  return OkStatus();
}

Status CheckSandboxNodes(int64_t count) {
  for (auto* s = InnermostSandbox(); s; s = s->outer()) {
    HR_RETURN_IF_ERROR(s->sandbox()->TakeNodes(count));
    s->sandbox()->GiveNodes(count);
  }
  return OkStatus();
}

namespace sandbox {

std::atomic<int64_t> counted_blocks{0};

bool CountBlock(const void* block, int64_t bytes) {
  CountedBlock counted{{}, bytes, 0};
  for (auto* s = InnermostSandbox(); s; s = s->outer()) {
    if (std::find(counted.by.begin(), counted.by.end(), s->sandbox()) ==
        counted.by.end()) {
      counted.by.push_back(s->sandbox());
    }
  }
  if (!TakeAll(counted.by, bytes)) return false;
  const absl::InlinedVector<SandboxPtr, 1> by = counted.by;
  try {
    BlockShard& shard = ShardOf(block);
    MutexLock lock(shard.mutex);
    shard.blocks.insert_or_assign(block, std::move(counted));
  } catch (const std::bad_alloc&) {
    for (const SandboxPtr& s : by) s->GiveMemory(bytes);
    return false;
  }
  counted_blocks.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void ForgetBlock(const void* block) {
  CountedBlock counted;
  {
    BlockShard& shard = ShardOf(block);
    MutexLock lock(shard.mutex);
    const auto found = shard.blocks.find(block);
    if (found == shard.blocks.end()) return;
    counted = std::move(found->second);
    shard.blocks.erase(found);
  }
  counted_blocks.fetch_sub(1, std::memory_order_relaxed);
  for (const SandboxPtr& s : counted.by)
    s->GiveMemory(counted.bytes + counted.held);
}

Status SetHeld(const void* block, int64_t bytes) {
  BlockShard& shard = ShardOf(block);
  MutexLock lock(shard.mutex);
  const auto found = shard.blocks.find(block);
  if (found == shard.blocks.end()) return OkStatus();
  CountedBlock& counted = found->second;
  const int64_t more = bytes - counted.held;
  if (!TakeAll(counted.by, more)) return CheckSandboxMemory(more);
  counted.held = bytes;
  return OkStatus();
}

}  // namespace sandbox
}  // namespace headrace
