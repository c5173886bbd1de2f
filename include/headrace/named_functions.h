// Traced functions by name, for all code of a process, C++ and Python.
//
// In a process with both languages a traced function of either is called by the
// other under the name that it was registered with:
//
//   // C++                                      # Python
//   auto power = tf::function(                  power = functions.find("power")
//       [](tf::Tensor x, int n) { ... });       power(tf.constant(2.0), 3)
//   tf::RegisterFunction("power", power);
//
//   auto f = tf::FindFunction<tf::Tensor(       @functions.register("scaled")
//       tf::Tensor)>("scaled");                 @tf.function
//   tf::Tensor y = f(x);                        def scaled(x): ...
//
// (`functions` is tf.experimental.functions.) It is the same function on both
// sides: one set of traces, one ConcreteFunction a signature, captures and
// variables shared, gradients by the tapes of either language; called while a
// function of the other language is traced, it becomes a call in its graph.
// Arguments and results cross as the structures of structure.h.
//
// Both languages must use one copy of the library: docs/design/cc.md says how.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headrace/error.h"
#include "headrace/export.h"
#include "headrace/function.h"

namespace headrace::tf {

// Lets FindFunction, and Python, find `function` by `name` (any text but an
// empty one), as long as a handle of it is left: the name holds no function.
// kAlreadyExists where another function that lives has the name. A function may
// have several names. Safe from any thread, as are all of these.
HR_API void RegisterFunction(const std::string& name, const Function& function);

// Frees a name; false where no function that lives has it. Handles stay good.
HR_API bool UnregisterFunction(const std::string& name);

// The names of functions that live, by rising order.
HR_API std::vector<std::string> RegisteredFunctions();

// The function that was registered by that name; kNotFound without one.
//
// A function of Python is held by its handles as one of C++ is. Calls of it
// take the GIL, and throw a PythonError where its code raises. Once the
// interpreter ends they are kFailedPrecondition.
HR_API Function FindFunction(const std::string& name);

// The same, to be called as R(A...): FindFunction<Tensor(Tensor, int)>("f").
// Whether the function takes and gives such structures each call shows.
template <typename Signature>
TracedFunction<Signature> FindFunction(const std::string& name) {
  return TracedFunction<Signature>(FindFunction(name));
}

// What Python code raised that C++ called. The code is that of the tf.errors
// class; kInvalidArgument for ValueError and TypeError, kUnimplemented for
// NotImplementedError, kResourceExhausted for MemoryError, kCancelled for
// KeyboardInterrupt and SystemExit, else kUnknown. what() is the message of a
// tf.errors class, of others "ValueError: message". Thrown on through C++ code
// that Python called, it is raised there as the object that it was.
class HR_API PythonError : public Error {
 public:
  PythonError(ErrorCode code, const std::string& text, std::string type,
              std::string traceback, std::shared_ptr<void> exception)
      : Error(code, text),
        type_(std::move(type)),
        traceback_(std::move(traceback)),
        exception_(std::move(exception)) {}
  // The class: "ValueError", "my_module.MyError".
  const std::string& type() const { return type_; }
  // As Python prints it, with the lines of the program.
  const std::string& traceback() const { return traceback_; }
  // The exception itself, for the Python module.
  const std::shared_ptr<void>& exception() const { return exception_; }

 private:
  std::string type_, traceback_;
  std::shared_ptr<void> exception_;
};

}  // namespace headrace::tf
