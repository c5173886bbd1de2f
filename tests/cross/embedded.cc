// A C++ program with Python in it: both call each other's functions. Prints
// what python/tests/function/test_named_functions.py compares.
#include <Python.h>

#include <iostream>

#include "checks.h"

namespace tf = headrace::tf;
using tf::Tensor;

namespace {

int RunPython(const char* code) {
  const int failed = PyRun_SimpleString(code);
  if (failed) std::cout << "Python failed\n";
  return failed;
}

// The interpreter's end, and what is left of its functions.
void End(const tf::Function& cubed, const tf::ConcreteFunction& concrete) {
  Py_FinalizeEx();
  try {
    cubed.Call(Tensor(2.0f));
  } catch (const tf::Error& e) {
    std::cout << static_cast<int>(e.code()) << " " << e.what() << "\n";
  }
  std::cout << "trace " << concrete.Call(Tensor(3.0f)).item<float>() << "\n";
  std::cout << "names";
  for (const std::string& name : tf::RegisteredFunctions()) {
    std::cout << " " << name;
  }
  std::cout << "\n";
}

}  // namespace

int main() {
  std::cout << std::unitbuf;  // Python prints between its lines
  // Before Python is there.
  const auto twice =
      tf::function([](const Tensor& x) { return x * 2.0f; }, {.name = "twice"});
  tf::RegisterFunction("cpp.twice", twice);
  std::cout << "traces " << twice.trace_count() << "\n";
  Py_Initialize();
  if (RunPython(R"(
import headrace as tf
functions = tf.experimental.functions
twice = functions.find("cpp.twice")
print("python", twice(tf.constant(4.0)).numpy(), flush=True)

@functions.register("py.cubed")
@tf.function
def cubed(x):
    return twice(x**3)

@functions.register("py.fails")
@tf.function
def fails(x):
    raise ValueError("from Python")
)")) {
    return 1;
  }
  std::cout << "traces " << twice.trace_count() << "\n";
  std::cout << "cpp " << twice(Tensor(5.0f)).item<float>() << "\n";
  std::cout << "traces " << twice.trace_count() << "\n";
  const tf::Function cubed = tf::FindFunction("py.cubed");
  const tf::ConcreteFunction concrete = cubed.GetConcreteFunction(Tensor(1.0f));
  const Tensor x(2.0f);
  tf::GradientTape tape;
  tape.watch(x);
  std::cout << "slope " << tape.gradient(cubed.Call(x), x).item<float>()
            << "\n";
  try {
    tf::FindFunction("py.fails").Call(x);
  } catch (const tf::PythonError& e) {
    std::cout << e.type() << " " << static_cast<int>(e.code()) << "\n";
  }
  End(cubed, concrete);
  return 0;
}
