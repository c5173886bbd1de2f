#include "c/custom/op_library.h"

#include <dlfcn.h>

#include <map>
#include <thread>

#include "base/mutex.h"
#include "c/status.h"
#include "graph/attr_proto.h"
#include "tensorflow/c/ops.h"
#include "tensorflow/core/framework/op_def.pb.h"

namespace headrace::capi {
namespace {

// Of the library whose constructors run on this thread.
thread_local std::vector<const OpDef*>* registered = nullptr;

struct Libraries {
  Mutex mutex;
  CondVar idle;
  // The thread that loads, and how many libraries it loads within each other.
  std::thread::id loader ABSL_GUARDED_BY(mutex);
  int depth ABSL_GUARDED_BY(mutex) = 0;
  std::map<void*, TF_Library> by_handle ABSL_GUARDED_BY(mutex);
};
Libraries& TheLibraries() {
  static auto* libraries = new Libraries;
  return *libraries;
}

// While it lives, no other thread loads: who finds a library loaded finds its
// list of ops, too. A library may load another one while it is loaded.
class Loading {
 public:
  Loading() {
    MutexLock lock(all_.mutex);
    const auto self = std::this_thread::get_id();
    while (all_.depth > 0 && all_.loader != self) all_.idle.Wait(all_.mutex);
    all_.loader = self;
    ++all_.depth;
  }
  ~Loading() {
    MutexLock lock(all_.mutex);
    if (--all_.depth == 0) all_.idle.NotifyAll();
  }
  Loading(const Loading&) = delete;

 private:
  Libraries& all_ = TheLibraries();
};

// Whoever loaded this library may have kept its symbols from others.
void ShowSymbols() {
  Dl_info here;
  if (dladdr(reinterpret_cast<void*>(&TF_NewOpDefinitionBuilder), &here) == 0 ||
      here.dli_fname == nullptr) {
    return;
  }
  // Null where it is no library but a program, which shows them anyway.
  dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
  dlerror();
}

Status CannotLoad(const char* error) {
  const StringView text = error ? error : "the library cannot be loaded";
  // Names of TensorFlow's namespaces, as compilers write them.
  const bool classes = text.find("_ZN10tensorflow") != StringView::npos ||
                       text.find("_ZNK10tensorflow") != StringView::npos ||
                       text.find("_ZN3tsl") != StringView::npos;
  return NotFound(text,
                  classes ? " (it uses TensorFlow's C++ classes, which are not "
                            "here: libraries of ops use tensorflow/c/ops.h and "
                            "tensorflow/c/kernels.h)"
                          : "");
}

StatusOr<std::string> OpListOf(const std::vector<const OpDef*>& ops) {
  tensorflow::OpList list;
  for (const OpDef* op : ops) {
    HR_RETURN_IF_ERROR(OpDefToProto(*op, list.add_op()));
  }
  return list.SerializeAsString();
}

}  // namespace

void NoteRegistered(const OpDef* op) {
  if (registered) registered->push_back(op);
}

StatusOr<TF_Library*> LoadOpLibrary(const char* path) {
  HR_RETURN_IF_ERROR(NotNull(path, "library_filename"));
  static const bool shown = (ShowSymbols(), true);
  (void)shown;
  const Loading loading;
  std::vector<const OpDef*> ops;
  std::vector<const OpDef*>* const outer = std::exchange(registered, &ops);
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  registered = outer;
  if (handle == nullptr) return CannotLoad(dlerror());
  Libraries& libraries = TheLibraries();
  MutexLock lock(libraries.mutex);
  auto [it, is_new] = libraries.by_handle.try_emplace(handle);
  TF_Library& library = it->second;
  if (is_new) {
    library.handle = handle;
    library.ops = std::move(ops);
    HR_ASSIGN_OR_RETURN(library.op_list, OpListOf(library.ops));
  }
  return &library;
}

}  // namespace headrace::capi
