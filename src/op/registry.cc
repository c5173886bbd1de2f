#include "op/registry.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <deque>

#include "base/fork_mutex.h"
#include "base/hash_map.h"
#include "base/host_name.h"
#include "op/absent_ops.h"
#include "op/added_op.h"

namespace headrace {
namespace {

struct Ops {
  std::deque<OpDef> defs;  // addresses stay
  HashMap<StringView, OpDef*> by_name;
};

// Ours: filled before anything runs, then only read.
Ops& TheOps() {
  static Ops* ops = new Ops;
  return *ops;
}

// Users', which come at any time and from any thread.
struct AddedOps {
  // Not zero where somebody added one: others need no lock to find nothing.
  std::atomic<size_t> count{0};
  ProcessMutex mutex;
  Ops ops ABSL_GUARDED_BY(mutex);
};
AddedOps& Added() {
  static AddedOps* added = new AddedOps;
  return *added;
}

const OpDef* FindAdded(StringView name) {
  AddedOps& added = Added();
  if (added.count.load(std::memory_order_acquire) == 0) return nullptr;
  MutexLock lock(added.mutex);
  auto it = added.ops.by_name.find(name);
  return it == added.ops.by_name.end() ? nullptr : it->second;
}

const OpDef* Keep(OpDef def, Ops* ops) {
  OpDef& kept = ops->defs.emplace_back(std::move(def));
  ops->by_name[kept.name] = &kept;
  return &kept;
}

}  // namespace

[[gnu::hot]] const OpDef* FindOp(StringView name) {
  Ops& ops = TheOps();
  auto it = ops.by_name.find(name);
  return it == ops.by_name.end() ? FindAdded(name) : it->second;
}

StatusOr<const OpDef*> LookUpOp(StringView name) {
  const OpDef* def = FindOp(name);
  if (def) return def;
  const std::string why = WhyAbsent(name);
  return NotFound("Op type not registered '", name, "' in binary running on ",
                  HostName(),
                  ". Make sure the Op and Kernel are registered in the binary "
                  "running in this process.",
                  why.empty() ? "" : " ", why);
}

bool CallsFunctions(const OpDef& def) {
  for (const AttrDef& a : def.attrs) {
    if (a.kind == AttrKind::kFunc || a.kind == AttrKind::kFuncList) return true;
  }
  return false;
}

std::vector<const OpDef*> AllOps() {
  std::vector<const OpDef*> all;
  for (const OpDef& def : TheOps().defs) all.push_back(&def);
  for (const OpDef* def : OpsAdded()) all.push_back(def);
  std::sort(all.begin(), all.end(),
            [](const OpDef* a, const OpDef* b) { return a->name < b->name; });
  return all;
}

std::vector<const OpDef*> OpsOfRole(OpRole role) {
  std::vector<const OpDef*> ops = AllOps();
  std::erase_if(ops, [&](const OpDef* op) { return !op->Is(role); });
  return ops;
}

void RegisterCudaKernel(const char* op, KernelFactory factory) {
  auto it = TheOps().by_name.find(op);
  if (it != TheOps().by_name.end()) it->second->cuda_kernel = factory;
}

void internal::AddOp(OpDef def) {
  Ops& ops = TheOps();
  if (ops.by_name.contains(def.name)) {
    std::fprintf(stderr, "headrace: op %s is defined twice\n",
                 def.name.c_str());
    std::abort();
  }
  def.id = static_cast<int>(ops.defs.size());
  Keep(std::move(def), &ops);
}

StatusOr<const OpDef*> AddOpNow(OpDef def) {
  AddedOps& added = Added();
  MutexLock lock(added.mutex);
  if (TheOps().by_name.contains(def.name) ||
      added.ops.by_name.contains(def.name)) {
    return AlreadyExists("Op with name ", def.name, " is already registered");
  }
  def.id = static_cast<int>(TheOps().defs.size() + added.ops.defs.size());
  const OpDef* kept = Keep(std::move(def), &added.ops);
  added.count.store(added.ops.defs.size(), std::memory_order_release);
  return kept;
}

std::vector<const OpDef*> OpsAdded() {
  AddedOps& added = Added();
  MutexLock lock(added.mutex);
  std::vector<const OpDef*> ops;
  for (const OpDef& def : added.ops.defs) ops.push_back(&def);
  return ops;
}

}  // namespace headrace
