#include "graph/function.h"

#include <algorithm>
#include <atomic>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"

namespace headrace {

std::vector<DType> Function::arg_types() const {
  std::vector<DType> types;
  for (const Node* n : args) types.push_back(n->output_type(0));
  return types;
}

std::vector<DType> Function::result_types() const {
  std::vector<DType> types;
  for (const Edge& e : results) types.push_back(e.node->output_type(e.index));
  return types;
}

bool Function::is_stateful() const {
  for (int i = 0; i < body->num_nodes(); ++i) {
    const OpDef& def = body->node(i)->def();
    if (def.is_stateful && !absl::StartsWith(def.name, "Placeholder")) {
      return true;
    }
  }
  return false;
}

Status FunctionLibrary::Add(FunctionPtr f) {
  std::lock_guard lock(mutex_);
  if (hold_ == Hold::kWeak && functions_.size() >= drop_at_) DropDead();
  Entry& entry = functions_[f->name];
  FunctionPtr there = entry.weak.lock();
  if (there && there != f) {
    return AlreadyExists("Function ", f->name, " is already in the library");
  }
  entry.weak = f;
  if (hold_ == Hold::kStrong) entry.strong = std::move(f);
  return OkStatus();
}

void FunctionLibrary::DropDead() {
  absl::erase_if(functions_,
                 [](const auto& entry) { return entry.second.weak.expired(); });
  drop_at_ = std::max<size_t>(1024, 2 * functions_.size());
}

FunctionPtr FunctionLibrary::Find(StringView name) const {
  std::lock_guard lock(mutex_);
  auto it = functions_.find(name);
  return it == functions_.end() ? nullptr : it->second.weak.lock();
}

void FunctionLibrary::Remove(StringView name) {
  Entry last;  // destroyed after the lock
  std::lock_guard lock(mutex_);
  auto it = functions_.find(name);
  if (it == functions_.end()) return;
  last = std::move(it->second);
  functions_.erase(it);
}

std::vector<std::string> FunctionLibrary::Names() const {
  std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, entry] : functions_) {
    if (!entry.weak.expired()) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string FunctionLibrary::NewName(StringView prefix) {
  static std::atomic<int64_t> next{0};
  return absl::StrCat(prefix, "_", next.fetch_add(1));
}

FunctionLibrary& GlobalFunctions() {
  static auto* library = new FunctionLibrary(FunctionLibrary::Hold::kWeak);
  return *library;
}

StatusOr<FunctionPtr> FindFunction(const FunctionLibrary* library,
                                   StringView name) {
  FunctionPtr f;
  if (library) f = library->Find(name);
  if (!f) f = GlobalFunctions().Find(name);
  if (!f) {
    return NotFound("Function ", name, " is not defined.");
  }
  return f;
}

// Assign and its like: a reference goes in and comes out, and they are not
// marked as stateful. RefSwitch and its like only hand references on.
static bool WritesReference(const OpDef& op) {
  auto is_ref = [](const ArgDef& a) { return a.is_ref; };
  return !op.name.starts_with("Ref") &&
         std::any_of(op.inputs.begin(), op.inputs.end(), is_ref) &&
         std::any_of(op.outputs.begin(), op.outputs.end(), is_ref);
}

bool HasSideEffect(const OpDef& op) {
  if (!op.is_stateful) return WritesReference(op);
  static const auto* pure =
      new absl::flat_hash_set<std::string>{"ReadVariableOp",
                                           "_ReadReference",
                                           "VarHandleOp",
                                           "VarIsInitializedOp",
                                           "VariableShape",
                                           "ResourceGather",
                                           "ResourceGatherNd",
                                           "VariableV2",
                                           "Variable",
                                           "IsVariableInitialized",
                                           "Placeholder",
                                           "PlaceholderV2",
                                           "PlaceholderWithDefault",
                                           "HashTableV2",
                                           "MutableHashTableV2",
                                           "LookupTableFindV2",
                                           "LookupTableSizeV2",
                                           "RandomUniform",
                                           "RandomUniformInt",
                                           "RandomStandardNormal",
                                           "ParameterizedTruncatedNormal",
                                           "TruncatedNormal",
                                           "RandomShuffle",
                                           "Multinomial",
                                           "RandomGamma",
                                           "RandomPoisson",
                                           "RandomPoissonV2",
                                           "AnonymousIteratorV3",
                                           "TensorArrayV3",
                                           "TensorArraySizeV3"};
  return !pure->contains(op.name);
}

}  // namespace headrace
