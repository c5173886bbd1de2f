// PyFunc, EagerPyFunc: ops that call a Python function with NumPy arrays or
// with tensors. Which function is said by a token of function/py_functions.py.
#include "base/cancellation.h"
#include "bind/python/interrupts.h"
#include "bind/python/python.h"
#include "bind/python/status.h"
#include "bind/value/convert.h"
#include "bind/value/tensor_object.h"
#include "op/op.h"
#include "op/reach.h"
#include "op/waiting.h"

namespace headrace::bind {
namespace {

// Upstream's codes of what Python raised.
Status StatusOfRaised() {
  // Ctrl-C is no failure of the function: the run ends and KeyboardInterrupt
  // goes on.
  if (IsInterrupt()) return KeepInterrupt();
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  Ref held_type(type), held_value(value), held_trace(trace);
  auto is = [&](PyObject* kind) {
    return PyErr_GivenExceptionMatches(held_type.get(), kind) != 0;
  };
  std::string text = "a Python function raised";
  // Python words the error, as the text has the traceback in it.
  Ref format = Import("function.py_functions", "describe");
  if (format) {
    Ref told(Called<PyObject_CallFunctionObjArgs>(
        format.get(), held_value ? held_value.get() : Py_None, nullptr));
    const char* utf8 = told ? Utf8Of(told.get()) : nullptr;
    if (utf8) text = utf8;
  }
  // The import or the description may have failed: the words above stand then.
  PyErr_Clear();
  // The code by which datasets know that a generator has ended.
  if (is(PyExc_StopIteration)) return OutOfRange(text);
  if (is(PyExc_ValueError) || is(PyExc_TypeError)) {
    return InvalidArgument(text);
  }
  if (is(PyExc_MemoryError)) return ResourceExhausted(text);
  if (is(PyExc_NotImplementedError)) return Unimplemented(text);
  return Unknown(text);
}

class PyFunc : public Kernel {
 public:
  explicit PyFunc(const ResolvedOp& op) : token_(op.string_attr("token")) {}
  bool own_outputs() const override { return true; }

  Status Run(KernelContext& c) override {
    // Threads of datasets may still call while the interpreter goes down;
    // taking the GIL then would end the thread.
    if (!Py_IsInitialized() || PythonEnds()) {
      return Cancelled("the Python interpreter is shutting down");
    }
    const StopHold hold;  // Python's frames pass no exceptions of C++
    WithGil locked;
    return Call(c);
  }

 private:
  Status Call(KernelContext& c) {
    Ref call = Import("function.py_functions", "call");
    Ref args(PyList_New(0));
    Ref token(PyUnicode_FromStringAndSize(token_.data(), token_.size()));
    if (!call || !args || !token) return StatusOfRaised();
    for (int i = 0; i < c.num_inputs(); ++i) {
      Ref t(WrapValue(Value(c.input(i))));
      if (!t || PyList_Append(args.get(), t.get()) < 0) {
        return StatusOfRaised();
      }
    }
    Ref result(Called<PyObject_CallFunctionObjArgs>(call.get(), token.get(),
                                                    args.get(), nullptr));
    if (!result) return StatusOfRaised();
    Ref items(PySequence_Fast(result.get(), "the results of a PyFunc"));
    if (!items) return StatusOfRaised();
    if (PySequence_Size(items.get()) != c.num_outputs()) {
      return InvalidArgument(token_, " returns ", PySequence_Size(items.get()),
                             " values, but expects to see ", c.num_outputs(),
                             " values.");
    }
    for (int i = 0; i < c.num_outputs(); ++i) {
      Ref item(PySequence_GetItem(items.get(), i));
      const DType wanted = c.op().output_types()[i];
      Value v;
      if (!item || !ToValue(item.get(), {wanted, DType::kInvalid}, &v)) {
        return StatusOfRaised();
      }
      // A tensor of a graph has no value to hand on.
      if (v.is_symbolic() || v.dtype() != wanted) {
        return InvalidArgument(i, "-th value returned by ", token_, " is ",
                               DTypeName(v.dtype()), ", but expects ",
                               DTypeName(wanted));
      }
      c.set_output(i, v.tensor());
    }
    return OkStatus();
  }

  const std::string token_;
};

// Of the tape that the call left, found by the first output's address: inputs,
// outputs and gradients to the inputs' gradients.
Status EagerGradient(GradientContext& g) {
  std::vector<DType> wanted;
  std::vector<int> places;
  for (int i = 0; i < g.num_inputs(); ++i) {
    const DType t = g.input(i).dtype();
    if (!IsDifferentiable(t)) continue;
    wanted.push_back(t);
    places.push_back(i);
  }
  // Inputs, outputs and gradients in one list, with the number of inputs in the
  // token: the other side cuts the list by it.
  ValueList values(g.inputs().begin(), g.inputs().end());
  values.insert(values.end(), g.outputs().begin(), g.outputs().end());
  for (int i = 0; i < g.num_outputs(); ++i) {
    // Python's tape takes a gradient for each output, wanted or not.
    values.push_back(g.grad_or_zeros(i));
  }
  const std::string token = absl::StrCat("gradient:", g.num_inputs(), ":",
                                         g.op().string_attr("token"));
  const ValueList found =
      g.All("EagerPyFunc", values, {{"token", token}, {"Tout", wanted}});
  for (size_t i = 0; i < found.size(); ++i) g.set(places[i], found[i]);
  return g.status();
}

OpBuilder PyFuncOp(const char* name) {
  OpBuilder b(name);
  b.Traits({kCallsPython, kMayWait});
  b.Input("input: Tin")
      .Output("output: Tout")
      .Attr("token: string")
      .Attr("Tin: list(type) >= 0")
      .Attr("Tout: list(type) >= 0")
      .Shape(UnknownShape)
      .Cpu(Bind<PyFunc>);
  return b;
}
const OpRegistrar stateful = PyFuncOp("PyFunc")
                                 .Doc("Calls a Python function with arrays.")
                                 .Stateful()
                                 .NoGradient();
const OpRegistrar stateless = PyFuncOp("PyFuncStateless")
                                  .Doc("Calls a pure Python function.")
                                  .NoGradient();
const OpRegistrar eager = PyFuncOp("EagerPyFunc")
                              .Attr("is_async: bool = false")
                              .Doc("Calls a Python function with tensors.")
                              .Stateful()
                              .Gradient(EagerGradient);

}  // namespace
}  // namespace headrace::bind
