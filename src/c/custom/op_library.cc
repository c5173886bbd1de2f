#include "c/custom/op_library.h"

#include <dlfcn.h>

#include <map>
#include <mutex>

#include "c/status.h"
#include "graph/attr_proto.h"
#include "tensorflow/c/ops.h"
#include "tensorflow/core/framework/op_def.pb.h"

namespace headrace::capi {
namespace {

// Of the library whose constructors run on this thread.
thread_local std::vector<const OpDef*>* registered = nullptr;

struct Libraries {
  // A library may load another one while it is loaded.
  std::recursive_mutex mutex;
  std::map<void*, TF_Library> by_handle;
};
Libraries& TheLibraries() {
  static auto* libraries = new Libraries;
  return *libraries;
}

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
  Libraries& libraries = TheLibraries();
  const std::lock_guard lock(libraries.mutex);
  std::vector<const OpDef*> ops;
  std::vector<const OpDef*>* const outer = std::exchange(registered, &ops);
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  registered = outer;
  if (handle == nullptr) return CannotLoad(dlerror());
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
