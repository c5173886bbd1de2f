#include "cc/named_functions.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdint>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/fork_mutex.h"

namespace headrace::tf {
namespace internal {
namespace {

class NamedCpp : public NamedFunction {
 public:
  explicit NamedCpp(const FunctionStatePtr& state) : state_(state) {}
  FunctionStatePtr Get() const override { return state_.lock(); }
  bool IsSame(const NamedFunction& other) const override {
    const auto* o = dynamic_cast<const NamedCpp*>(&other);
    return o && !o->state_.owner_before(state_) &&
           !state_.owner_before(o->state_);
  }
  bool IsAlive() const override { return !state_.expired(); }

 private:
  const std::weak_ptr<FunctionState> state_;
};

struct NameTable {
  ProcessMutex mutex;
  std::map<std::string, NamedFunctionPtr> functions ABSL_GUARDED_BY(mutex);
};
// Never destroyed: functions are called until the process is gone.
NameTable& Names() {
  static auto* const table = new NameTable;
  return *table;
}

NamedFunctionPtr EntryOf(const std::string& name) {
  NameTable& table = Names();
  MutexLock lock(table.mutex);
  const auto at = table.functions.find(name);
  return at == table.functions.end() ? nullptr : at->second;
}

// Puts `function` (null: nothing) in the place of `old`; false where another is
// there by now.
bool Exchange(const std::string& name, const NamedFunctionPtr& old,
              NamedFunctionPtr function) {
  NameTable& table = Names();
  MutexLock lock(table.mutex);
  const auto at = table.functions.find(name);
  if ((at == table.functions.end() ? nullptr : at->second) != old) return false;
  if (function == nullptr) {
    table.functions.erase(at);
  } else {
    table.functions[name] = std::move(function);
  }
  return true;
}

// Where else in the process code of this library was loaded from. A program
// that is linked to libheadrace.so and imports the Python module beside it has
// two tables, and would look for its functions in the wrong one.
std::string OtherCopies() {
  Dl_info own;
  if (dladdr(reinterpret_cast<void*>(&OtherCopies), &own) == 0) return "";
  struct Walk {
    uintptr_t own;
    std::vector<std::string> others;
  } walk{reinterpret_cast<uintptr_t>(own.dli_fbase), {}};
  dl_iterate_phdr(
      [](dl_phdr_info* library, size_t, void* data) {
        auto* w = static_cast<Walk*>(data);
        const StringView path = library->dlpi_name ? library->dlpi_name : "";
        const StringView file = path.substr(path.rfind('/') + 1);
        if (library->dlpi_addr != w->own &&
            (absl::StartsWith(file, "libheadrace.so") ||
             absl::StartsWith(file, "_headrace."))) {
          w->others.emplace_back(path);
        }
        return 0;
      },
      &walk);
  if (walk.others.empty()) return "";
  return absl::StrCat("; the process has another copy of Headrace, ",
                      absl::StrJoin(walk.others, ", "),
                      ", whose functions this one, ", own.dli_fname,
                      ", does not know");
}

[[noreturn]] void RefuseName(ErrorCode code, const std::string& text) {
  throw Error(code, text);
}

}  // namespace

NamedFunctionPtr FunctionState::Named(const FunctionStatePtr& self) const {
  return std::make_shared<NamedCpp>(self);
}

void Register(const std::string& name, NamedFunctionPtr function) {
  if (name.empty()) {
    RefuseName(ErrorCode::kInvalidArgument,
               "a function is registered by a name, got an empty one");
  }
  for (;;) {
    const NamedFunctionPtr old = EntryOf(name);
    if (old && old->IsAlive()) {
      if (old->IsSame(*function)) return;
      RefuseName(ErrorCode::kAlreadyExists,
                 absl::StrCat("another function is registered as '", name,
                              "': unregister that first"));
    }
    if (Exchange(name, old, function)) return;
  }
}

NamedFunctionPtr FindNamed(const std::string& name) {
  NamedFunctionPtr entry = EntryOf(name);
  if (entry && entry->IsAlive()) return entry;
  RefuseName(ErrorCode::kNotFound,
             entry ? absl::StrCat("the function that was registered as '", name,
                                  "' is gone: its name does not hold it")
                   : absl::StrCat("no function is registered as '", name, "'",
                                  OtherCopies()));
}

}  // namespace internal

void RegisterFunction(const std::string& name, const Function& function) {
  const internal::FunctionStatePtr& state =
      internal::FunctionAccess::StateOf(function);
  if (state == nullptr) {
    throw Error(ErrorCode::kInvalidArgument,
                "RegisterFunction got a Function that was moved from");
  }
  internal::Register(name, state->Named(state));
}

bool UnregisterFunction(const std::string& name) {
  for (;;) {
    const internal::NamedFunctionPtr old = internal::EntryOf(name);
    if (!old) return false;
    const bool alive = old->IsAlive();
    if (internal::Exchange(name, old, nullptr)) return alive;
  }
}

std::vector<std::string> RegisteredFunctions() {
  std::map<std::string, internal::NamedFunctionPtr> all;
  {
    internal::NameTable& table = internal::Names();
    MutexLock lock(table.mutex);
    all = table.functions;
  }
  std::vector<std::string> names;
  for (const auto& [name, function] : all) {
    if (function->IsAlive()) names.push_back(name);
  }
  return names;
}

Function FindFunction(const std::string& name) {
  // Between the two it may go, too.
  internal::FunctionStatePtr state;
  while (!state) state = internal::FindNamed(name)->Get();
  return internal::FunctionAccess::Wrap(std::move(state));
}

}  // namespace headrace::tf
