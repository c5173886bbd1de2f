#include "bind/function/python_function.h"

#include <nanobind/nanobind.h>

#include <new>
#include <string>

#include "base/cancellation.h"
#include "bind/function/crossing.h"
#include "bind/function/raised.h"
#include "bind/python/graph_object.h"
#include "bind/python/status.h"

namespace nb = nanobind;

namespace headrace::bind {

using tf::Error;
using tf::ErrorCode;
using tf::internal::BodyTrace;
using tf::internal::BodyTracePtr;
using tf::internal::FunctionStatePtr;
using tf::internal::NamedFunctionPtr;

namespace {

// Around code of C++ that calls Python: holds the GIL, also on threads that
// Python did not start. Throws where Python cannot run.
class InPython {
 public:
  explicit InPython(const std::string& name) : held_(Checked(name)) {
    if (!held_) {
      throw Error(ErrorCode::kResourceExhausted,
                  absl::StrCat("Function ", name,
                               ": no memory for a thread's state of Python"));
    }
    // What an earlier call left behind on this thread is nobody's error now.
    PyErr_Clear();
  }

 private:
  static std::nothrow_t Checked(const std::string& name) {
    if (PythonRuns()) return std::nothrow;
    throw Error(ErrorCode::kFailedPrecondition,
                absl::StrCat("Function ", name,
                             " is Python's, and the interpreter has ended"));
  }

  const StopHold hold_;  // Python's frames pass no exceptions of C++
  const WithGil held_;
};

Tokens CopiedTokens(TokenSpan tokens) { return {tokens.begin(), tokens.end()}; }

// How many tensors a call with these tokens passes.
int CountLeaves(TokenSpan tokens) {
  int count = 0;
  for (size_t at = 0; at < tokens.size(); at = BehindItem(tokens, at)) {
    const Signature::Tag tag = TagAt(tokens, at);
    count += tag == Signature::kTensor || tag == Signature::kVariable;
  }
  return count;
}

std::vector<std::string> TextsOf(PyObject* list) {
  std::vector<std::string> texts;
  const Py_ssize_t n = PySequence_Size(list);
  for (Py_ssize_t i = 0; i < n; ++i) {
    const Ref item(PySequence_GetItem(list, i));
    const char* utf8 = item ? Utf8Of(item.get()) : nullptr;
    if (utf8 == nullptr) throw TakeRaised();
    texts.emplace_back(utf8);
  }
  if (n < 0) throw TakeRaised();
  return texts;
}

}  // namespace

PythonFunction::PythonFunction(Ref function)
    : function_(KeptForCpp(std::move(function))) {
  const Ref name(PyObject_GetAttrString(object(), "_name"));
  const char* text = name ? Utf8Of(name.get()) : nullptr;
  if (text == nullptr) throw TakeRaised();
  name_ = text;
}

ValueList PythonFunction::Call(const Signature& call, BodyTracePtr* trace) {
  const InPython python(name_);
  const Ref args = CrossedValues(call.tokens(), call.leaves(), false).Take();
  const Ref result(args ? Called<PyObject_CallObject>(object(), args.get())
                        : nullptr);
  Signature gives;
  if (!result ||
      !AddCrossing(result.get(), {.name = "the result"}, false, &gives)) {
    throw TakeRaised();
  }
  auto made = std::make_shared<BodyTrace>();
  made->gives = CopiedTokens(gives.tokens());
  made->name = name_;
  *trace = std::move(made);
  return ValueList(gives.leaves().begin(), gives.leaves().end());
}

BodyTracePtr PythonFunction::ConcreteFor(const Signature& specs) {
  const InPython python(name_);
  static PyObject* concrete_for = nullptr;
  if (concrete_for == nullptr) {
    concrete_for = Import("function.named", "concrete_for").release();
  }
  // Python makes a trace of its own for TensorSpecs, but not for tensors.
  const bool has_values =
      CountLeaves(specs.tokens()) == static_cast<int>(specs.leaves().size());
  const Ref args =
      CrossedValues(specs.tokens(), specs.leaves(), !has_values).Take();
  const Ref answer(concrete_for && args
                       ? Called<PyObject_CallFunctionObjArgs>(
                             concrete_for, object(), args.get(), nullptr)
                       : nullptr);
  PyObject *concrete, *core, *takes, *gives, *names;
  if (!answer || !PyArg_ParseTuple(answer.get(), "OOOOO", &concrete, &core,
                                   &takes, &gives, &names)) {
    throw TakeRaised();
  }
  Signature taken, given;
  if (!AddCrossing(takes, {.name = "args"}, true, &taken) ||
      !AddCrossing(gives, {.name = "the result"}, true, &given)) {
    throw TakeRaised();
  }
  auto trace = std::make_shared<BodyTrace>();
  trace->function = nb::cast<ConcreteCore&>(nb::handle(core)).function;
  trace->takes = CopiedTokens(taken.tokens());
  trace->gives = CopiedTokens(given.tokens());
  trace->name = name_;
  trace->arg_names = TextsOf(names);
  trace->keep = KeptForCpp(Ref::Borrow(concrete));
  const int leaves = CountLeaves(trace->takes);
  if (trace->function->num_args() != leaves) {
    throw Error(
        ErrorCode::kUnimplemented,
        absl::StrCat("Function ", name_, ": its concrete function takes ",
                     trace->function->num_args(),
                     " tensors, of which the arguments are ", leaves,
                     "; defaults that are tensors and values read at "
                     "each call cannot be passed from C++"));
  }
  return trace;
}

int PythonFunction::trace_count() const {
  const InPython python(name_);
  const Ref count(Called<PyObject_CallMethod>(
      object(), "experimental_get_tracing_count", nullptr));
  const long n = count ? PyLong_AsLong(count.get()) : -1;
  if (n < 0) throw TakeRaised();
  return static_cast<int>(n);
}

std::vector<std::string> PythonFunction::explain_retraces() const {
  const InPython python(name_);
  const Ref told(
      Called<PyObject_CallMethod>(object(), "explain_retraces", nullptr));
  if (!told) throw TakeRaised();
  return TextsOf(told.get());
}

NamedFunctionPtr PythonFunction::Named(const FunctionStatePtr&) const {
  const InPython python(name_);
  return std::make_shared<NamedPython>(object());
}

NamedPython::NamedPython(PyObject* function)
    : weak_(KeptForCpp(Ref(PyWeakref_NewRef(function, nullptr)))) {
  if (!weak_) throw TakeRaised();
}

Ref NamedPython::object() const {
  PyObject* o = PyWeakref_GetObject(weak_.get());
  return o == Py_None ? Ref() : Ref::Borrow(o);
}

FunctionStatePtr NamedPython::Get() const {
  if (!PythonRuns()) return nullptr;
  const InPython python("by name");
  Ref function = object();
  if (!function) return nullptr;
  return std::make_shared<PythonFunction>(std::move(function));
}

bool NamedPython::IsAlive() const {
  if (!PythonRuns()) return false;
  const InPython python("by name");
  return static_cast<bool>(object());
}

bool NamedPython::IsSame(const NamedFunction& other) const {
  const auto* o = dynamic_cast<const NamedPython*>(&other);
  if (o == nullptr || !PythonRuns()) return false;
  const InPython python("by name");
  return object().get() == o->object().get();
}

}  // namespace headrace::bind
