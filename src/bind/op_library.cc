#include "bind/op_library.h"

#include <nanobind/stl/string.h>

#include "bind/call/op_call.h"
#include "bind/python/status.h"
#include "c/custom/op_library.h"

namespace nb = nanobind;

namespace headrace::bind {
namespace {

nb::tuple LoadLibraryOfOps(const std::string& path) {
  StatusOr<TF_Library*> library = nullptr;
  {
    // Its constructors run, and may want Python.
    nb::gil_scoped_release unlocked;
    library = capi::LoadOpLibrary(path.c_str());
  }
  if (!library.ok()) ThrowStatus(library.status());
  nb::list ops;
  for (const OpDef* op : (*library)->ops) {
    ops.append(nb::make_tuple(op->name, PythonName(op->name)));
  }
  const std::string& bytes = (*library)->op_list;
  return nb::make_tuple(reinterpret_cast<uintptr_t>((*library)->handle), ops,
                        nb::bytes(bytes.data(), bytes.size()));
}

}  // namespace

void AddOpLibrary(nb::module_& m) {
  m.def("load_op_library", &LoadLibraryOfOps);
}

}  // namespace headrace::bind
