// The extension module headrace._headrace.
#include <nanobind/nanobind.h>

#include <vector>

#include "base/library_call.h"
#include "base/thread_pool.h"
#include "bind/call/converted_call.h"
#include "bind/call/dispatched.h"
#include "bind/call/dlpack.h"
#include "bind/call/op_function.h"
#include "bind/call/tensor_functions.h"
#include "bind/call/tensor_type.h"
#include "bind/checkpoint.h"
#include "bind/cluster/cluster.h"
#include "bind/command.h"
#include "bind/files.h"
#include "bind/function/named_functions.h"
#include "bind/function/named_gradient.h"
#include "bind/function/tape_object.h"
#include "bind/op_library.h"
#include "bind/python/call_stops.h"
#include "bind/python/graph_object.h"
#include "bind/python/interrupts.h"
#include "bind/python/profiler.h"
#include "bind/python/python.h"
#include "bind/records.h"
#include "bind/saved_model.h"
#include "bind/value/dtype_object.h"
#include "bind/value/number_checks.h"
#include "bind/value/tensor_object.h"
#include "bind/value/variable_object.h"
#include "headrace/version.h"

namespace nb = nanobind;

namespace {

// nanobind keeps the objects that it made in one table, which never shrinks,
// and ends the process where the table finds no memory to grow. It grows here,
// while there is some, to what few programs have at once: 4,096 objects, 200
// KB.
void ReserveObjects(nb::handle type) {
  constexpr size_t kObjects = 4096;
  std::vector<nb::object> objects;
  objects.reserve(kObjects);
  while (objects.size() < kObjects) objects.push_back(nb::inst_alloc(type));
}

}  // namespace

NB_MODULE(_headrace, m) {
  using namespace headrace::bind;
  PyObject* module = m.ptr();
  m.attr("version") = headrace::Version();
  interpreter = PyInterpreterState_Get();
  // Daemon threads work on while Python ends, and after.
  // Py_AtExit and not atexit: behind all of Python's own handlers, which may
  // still call ops.
  if (Py_AtExit(&headrace::EndLibraryCalls) != 0) {
    PyErr_SetString(PyExc_ImportError, "too many functions at Python's end");
    nb::raise_python_error();
  }
  // What a tape in a program's globals keeps may outlive the module at exit.
  nb::set_leak_warnings(false);
  if (!AddDTypeObject(module) || !AddTensorTypes(module) ||
      !AddVariableType(module) || !AddOpFunctions(module) ||
      !AddTensorFunctions(module) || !AddDlpack(module) ||
      !AddFunctionType(module) || !AddDispatched(module) ||
      !AddConvertedCall(module)) {
    nb::raise_python_error();
  }
  // Threads that a job waits for may wait for the GIL.
  headrace::SetInlineRunner([](absl::FunctionRef<void()> job) {
    WithoutGil unlocked(Py_IsInitialized() && HoldsGil());
    job();
  });
  // Only Python programs have signals to look for; programs in C++ handle their
  // own.
  InstallInterrupts();
  AddCancellation(m);
  AddProfiler(m);
  AddTape(m);
  AddNamedGradients(m);
  AddNumberChecks(m);
  AddCheckpoint(m);
  AddRecords(m);
  AddFiles(m);
  AddGraph(m);
  AddConcreteFunction(m);
  AddTraces(m);
  AddNamedFunctions(m);
  AddSession(m);
  AddCluster(m);
  AddGraphDef(m);
  AddSavedModel(m);
  AddModelWriter(m);
  AddFlowContexts(m);
  AddCommand(m);
  AddOpLibrary(m);
  ReserveObjects(m.attr("StopRequest"));
}
