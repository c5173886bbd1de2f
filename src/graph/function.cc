#include "graph/function.h"

#include <algorithm>
#include <atomic>

#include "base/mutex.h"

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
    if (body->node(i)->def().is_stateful) return true;
  }
  return false;
}

Status FunctionLibrary::Add(FunctionPtr f) {
  MutexLock lock(mutex_);
  if (hold_ == Hold::kWeak && functions_.size() >= drop_at_) DropDead();
  Entry& entry = functions_[f->name];
  FunctionPtr there = entry.weak.lock();
  // A name whose function went is free again.
  if (there && there != f) {
    return AlreadyExists("Function ", f->name, " is already in the library");
  }
  entry.weak = f;
  if (hold_ == Hold::kStrong) entry.strong = std::move(f);
  return OkStatus();
}

void FunctionLibrary::DropDead() {
  std::erase_if(functions_,
                [](const auto& entry) { return entry.second.weak.expired(); });
  // Twice what lives, so that looking through all costs each addition no more
  // than a constant.
  drop_at_ = std::max<size_t>(1024, 2 * functions_.size());
}

FunctionPtr FunctionLibrary::Find(StringView name) const {
  MutexLock lock(mutex_);
  auto it = functions_.find(name);
  // A function that is going away is not found any more.
  return it == functions_.end() ? nullptr : it->second.weak.lock();
}

void FunctionLibrary::Remove(StringView name) {
  Entry last;  // destroyed after the lock
  MutexLock lock(mutex_);
  auto it = functions_.find(name);
  if (it == functions_.end()) return;
  last = std::move(it->second);
  functions_.erase(it);
}

std::vector<std::string> FunctionLibrary::Names() const {
  MutexLock lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, entry] : functions_) {
    if (!entry.weak.expired()) names.push_back(name);
  }
  // Sorted, so that exports of equal graphs are equal.
  std::sort(names.begin(), names.end());
  return names;
}

std::string FunctionLibrary::NewName(StringView prefix) {
  // One count for the process: functions of all libraries may meet.
  static std::atomic<int64_t> next{0};
  return absl::StrCat(prefix, "_", next.fetch_add(1));
}

FunctionLibrary& GlobalFunctions() {
  // Never destroyed: threads may look functions up while the process ends.
  static auto* library = new FunctionLibrary(FunctionLibrary::Hold::kWeak);
  return *library;
}

bool RunsApart(const Function& f, const SandboxPtr& sandbox) {
  return f.body->sandbox() != nullptr && f.body->sandbox() != sandbox;
}

StatusOr<FunctionPtr> FindFunction(const FunctionLibrary* library,
                                   StringView name) {
  FunctionPtr f;
  // An imported graph's own functions come first: another graph's may have the
  // same name.
  if (library) f = library->Find(name);
  if (!f) f = GlobalFunctions().Find(name);
  if (!f) {
    return NotFound("Function ", name, " is not defined.");
  }
  return f;
}

namespace {

// What a call's function is to take, and to give.
struct Callee {
  const FuncRef* function;
  absl::Span<const DType> takes;
  absl::Span<const DType> gives;
  bool gives_truth = false;  // one value of any type, in place of `gives`
};

absl::InlinedVector<Callee, 2> CalleesOf(const ResolvedOp& op) {
  absl::InlinedVector<Callee, 2> callees;
  const absl::Span<const DType> in = op.input_types(), out = op.output_types();
  auto add = [&](const char* attr, absl::Span<const DType> takes, bool truth) {
    if (const auto* f = op.attrs().Get<FuncRef>(attr)) {
      callees.push_back({f, takes, out, truth});
    }
  };
  if (op.def().Is(OpRole::kCall)) {
    add("f", in, false);
  } else if (op.def().Is(OpRole::kLoop)) {
    add("cond", in, true);
    add("body", in, false);
  } else if (!in.empty()) {  // a branch
    // The first input chooses the branch and is not handed to it.
    add("then_branch", in.subspan(1), false);
    add("else_branch", in.subspan(1), false);
    if (const auto* all = op.attrs().Get<std::vector<FuncRef>>("branches")) {
      for (const FuncRef& f : *all) {
        callees.push_back({&f, in.subspan(1), out});
      }
    }
  }
  return callees;
}

Status CheckTypes(const ResolvedOp& op, const Function& f, const char* what,
                  absl::Span<const DType> call,
                  absl::Span<const DType> function) {
  if (call.size() != function.size()) {
    return InvalidArgument(op.name(), " has ", call.size(), " ", what,
                           "s for function ", f.name, ", which has ",
                           function.size());
  }
  for (size_t i = 0; i < call.size(); ++i) {
    // A reference may be given where a value is taken.
    if (BaseType(call[i]) == BaseType(function[i])) continue;
    return InvalidArgument(op.name(), ": ", what, " ", i, " is ",
                           DTypeName(call[i]), ", that of function ", f.name,
                           " is ", DTypeName(function[i]));
  }
  return OkStatus();
}

}  // namespace

bool IsFunctionCall(const OpDef& op) {
  return op.Is(OpRole::kCall) || op.Is(OpRole::kBranch) || op.Is(OpRole::kLoop);
}

Status CheckCall(const ResolvedOp& op, const FunctionLibrary* library) {
  if (!IsFunctionCall(op.def())) return OkStatus();
  for (const Callee& callee : CalleesOf(op)) {
    StatusOr<FunctionPtr> found = FindFunction(library, callee.function->name);
    // Not there yet: imports and traces name functions before they are made.
    // Plans and runs find it missing.
    if (!found.ok()) continue;
    const Function& f = **found;
    HR_RETURN_IF_ERROR(CheckTypes(op, f, "input", callee.takes, f.arg_types()));
    const std::vector<DType> results = f.result_types();
    if (!callee.gives_truth) {
      HR_RETURN_IF_ERROR(CheckTypes(op, f, "output", callee.gives, results));
    } else if (results.size() != 1) {
      return InvalidArgument(op.name(), ": the condition ", f.name, " has ",
                             results.size(), " outputs, not 1");
    }
  }
  return OkStatus();
}

std::vector<CalledResult> ResultsOfCall(const ResolvedOp& op,
                                        const FunctionLibrary* library) {
  std::vector<CalledResult> results;
  // A loop's results have the shapes of its variables, which its own rule
  // knows.
  if (!IsFunctionCall(op.def()) || op.def().Is(OpRole::kLoop)) return {};
  bool first = true;
  for (const Callee& callee : CalleesOf(op)) {
    StatusOr<FunctionPtr> f = FindFunction(library, callee.function->name);
    // Nothing is claimed of calls that are not as they should be; the call's
    // own check refuses them.
    if (!f.ok() || static_cast<int>((*f)->results.size()) != op.num_outputs()) {
      return {};
    }
    for (int i = 0; i < op.num_outputs(); ++i) {
      const Edge& e = (*f)->results[i];
      const Shape& shape = e.node->output_shape(e.index);
      if (first) {
        results.push_back({shape, e.node->output_handle(e.index)});
      } else if (shape != results[i].shape) {
        // Branches that give different shapes: which one runs is not known.
        results[i].shape = Shape::UnknownRank();
      }
    }
    first = false;
  }
  return results;
}

// Assign, QueueDequeue and their like: what they do with the reference that
// they take is seen elsewhere, and they are not marked as stateful.
static bool UsesReference(const OpDef& op) {
  auto is_ref = [](const ArgDef& a) { return a.is_ref; };
  return !op.Has(OpTrait::kHandsReferenceOn) && !op.Has(OpTrait::kNoEffect) &&
         std::any_of(op.inputs.begin(), op.inputs.end(), is_ref);
}

bool HasSideEffect(const OpDef& op) {
  if (!op.is_stateful) return UsesReference(op);
  return !op.Has(OpTrait::kNoEffect);
}

}  // namespace headrace
