// Python's tf.functions as C++ sees them.
#pragma once

#include "bind/function/kept.h"
#include "cc/named_functions.h"

namespace headrace::bind {

// A tf.function, which it holds. Methods take the GIL and throw what Python
// raises as tf::PythonError.
class PythonFunction : public tf::internal::FunctionState {
 public:
  // With the GIL held; throws a PythonError.
  explicit PythonFunction(Ref function);

  ValueList Call(const Signature& call,
                 tf::internal::BodyTracePtr* trace) override;
  tf::internal::BodyTracePtr ConcreteFor(const Signature& specs) override;
  int trace_count() const override;
  std::vector<std::string> explain_retraces() const override;
  std::string name() const override { return name_; }
  tf::internal::NamedFunctionPtr Named(
      const tf::internal::FunctionStatePtr& self) const override;

  PyObject* object() const { return function_.get(); }

 private:
  const std::shared_ptr<PyObject> function_;
  std::string name_;
};

// The same by name: the table does not hold it.
class NamedPython : public tf::internal::NamedFunction {
 public:
  // With the GIL held; throws a PythonError.
  explicit NamedPython(PyObject* function);

  tf::internal::FunctionStatePtr Get() const override;
  bool IsSame(const NamedFunction& other) const override;
  bool IsAlive() const override;
  // With the GIL held; null once it is gone.
  Ref object() const;

 private:
  const std::shared_ptr<PyObject> weak_;
};

}  // namespace headrace::bind
