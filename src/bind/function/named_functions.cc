#include "bind/function/named_functions.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string>

#include "bind/function/crossing.h"
#include "bind/function/python_function.h"
#include "bind/function/raised.h"
#include "bind/python/call_stops.h"
#include "bind/python/graph_object.h"
#include "cc/body_function.h"
#include "op/after_emit.h"

namespace nb = nanobind;

namespace headrace::bind {
namespace {

using tf::internal::BodyFunction;
using tf::internal::BodyTracePtr;
using tf::internal::Check;

// A function whose body is C++.
struct CppFunction {
  std::shared_ptr<BodyFunction> state;
};

// f(), with what it throws raised in Python.
template <typename F>
auto Raising(const std::string& who, const F& f) {
  try {
    return f();
  } catch (...) {
    RaiseFromCpp(who);
  }
  throw nb::python_error();
}

// The place of a keyword among the arguments; TypeError where it has none.
size_t PlaceOfKeyword(const BodyFunction& f, const std::string& keyword,
                      size_t positional) {
  const std::vector<std::string>& names = f.arg_names();
  const size_t at =
      std::find(names.begin(), names.end(), keyword) - names.begin();
  if (at == names.size()) {
    throw nb::type_error(absl::StrCat(f.name(),
                                      "() of C++ got an unexpected keyword "
                                      "argument '",
                                      keyword, "'")
                             .c_str());
  }
  if (at < positional) {
    throw nb::type_error(absl::StrCat(f.name(),
                                      "() of C++ got multiple values for "
                                      "argument '",
                                      keyword, "'")
                             .c_str());
  }
  return at;
}

// The arguments in order, those by keyword behind the others.
std::vector<nb::object> ArgumentsOf(const BodyFunction& f, nb::args args,
                                    nb::kwargs kwargs) {
  std::vector<nb::object> all;
  for (nb::handle arg : args) all.push_back(nb::borrow(arg));
  std::vector<nb::object> named(f.arg_names().size());
  size_t end = all.size();
  for (auto [key, value] : kwargs) {
    const size_t at = PlaceOfKeyword(f, nb::cast<std::string>(key), all.size());
    named[at] = nb::borrow(value);
    end = std::max(end, at + 1);
  }
  for (size_t i = all.size(); i < end; ++i) {
    if (!named[i].is_valid()) {
      throw nb::type_error(absl::StrCat(f.name(),
                                        "() of C++ is missing the argument '",
                                        f.arg_names()[i], "'")
                               .c_str());
    }
    all.push_back(named[i]);
  }
  return all;
}

// The signature of a call, or of a trace that is asked for.
void TakeArguments(const BodyFunction& f, nb::args args, nb::kwargs kwargs,
                   bool specs, Signature* out) {
  const std::vector<nb::object> all = ArgumentsOf(f, args, kwargs);
  const Place place{.name = "args"};
  out->AddStructure(Signature::kTuple, all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    const Place at =
        i < f.arg_names().size()
            ? Place{.name = f.arg_names()[i].c_str()}
            : Place{.outer = &place, .index = static_cast<Py_ssize_t>(i)};
    if (!AddCrossing(all[i].ptr(), at, specs, out)) nb::raise_python_error();
  }
}

// The call itself. The trace is made without the GIL, which its body may ask
// for, and so may whoever holds the function's lock; a graph of Python's is
// changed with it.
ValueList CallState(BodyFunction& f, const Signature& call,
                    BodyTracePtr* trace) {
  const CallStops stops;
  Check(stops.status());
  if (CurrentEmitter()->is_eager()) {
    const WithoutGil unlocked;
    ValueList outputs = f.Call(call, trace);
    Check(TellAfterEmit(nullptr, (*trace)->function->function()->name,
                        call.leaves(), &outputs));
    return outputs;
  }
  {
    const WithoutGil unlocked;
    *trace = f.For(call);
  }
  return (*trace)->Call(call.leaves());
}

nb::object CallCpp(const CppFunction& f, nb::args args, nb::kwargs kwargs) {
  Signature call;
  TakeArguments(*f.state, args, kwargs, false, &call);
  // It may drop the last handle of itself.
  const std::shared_ptr<BodyFunction> state = f.state;
  BodyTracePtr trace;
  const ValueList outputs =
      Raising(state->name(), [&] { return CallState(*state, call, &trace); });
  Ref result = CrossedValues(trace->gives, outputs, false).Take();
  if (!result) nb::raise_python_error();
  return nb::steal(result.release());
}

// What Python makes a ConcreteFunction of: (core, arguments, results), with
// TensorSpecs in the place of tensors.
nb::tuple ConcreteOfCpp(const CppFunction& f, nb::args args,
                        nb::kwargs kwargs) {
  Signature specs;
  TakeArguments(*f.state, args, kwargs, true, &specs);
  const BodyTracePtr trace = Raising(f.state->name(), [&] {
    const WithoutGil unlocked;
    return f.state->ConcreteFor(specs);
  });
  const auto described = [](const Tokens& tokens, absl::Span<const Value> v) {
    Ref value = CrossedValues(tokens, v, true).Take();
    if (!value) nb::raise_python_error();
    return nb::steal(value.release());
  };
  return nb::make_tuple(ConcreteCore{trace->function},
                        described(trace->takes, specs.leaves()),
                        described(trace->gives, {}));
}

nb::object ObjectOf(const tf::internal::FunctionStatePtr& state) {
  if (const auto* python = dynamic_cast<const PythonFunction*>(state.get())) {
    return nb::borrow(python->object());
  }
  auto body = std::dynamic_pointer_cast<BodyFunction>(state);
  if (!body) throw nb::type_error("a function of unknown kind");
  return nb::cast(CppFunction{std::move(body)});
}

// register_function(name, function): a CppFunction, or a Function of Python.
void RegisterByName(const std::string& name, nb::object function) {
  Raising("by name", [&] {
    CppFunction* cpp = nullptr;
    tf::internal::NamedFunctionPtr entry;
    if (nb::try_cast(function, cpp)) {
      entry = cpp->state->Named(cpp->state);
    } else {
      entry = std::make_shared<NamedPython>(function.ptr());
    }
    tf::internal::Register(name, std::move(entry));
  });
}

nb::object FindByName(const std::string& name) {
  return ObjectOf(Raising("by name", [&] {
    tf::internal::FunctionStatePtr state;
    while (!state) state = tf::internal::FindNamed(name)->Get();
    return state;
  }));
}

std::string TextOfCpp(const CppFunction& f) {
  return absl::StrCat("<CppFunction '", f.state->name(), "'>");
}

}  // namespace

void AddNamedFunctions(nb::module_& m) {
  nb::class_<CppFunction>(m, "CppFunctionBase")
      .def("__call__", &CallCpp)
      .def("__repr__", &TextOfCpp)
      .def("__eq__",
           [](const CppFunction& a, nb::object b) {
             CppFunction* other = nullptr;
             return nb::try_cast(b, other) && other->state == a.state;
           })
      .def("__hash__",
           [](const CppFunction& f) {
             return std::hash<const void*>()(f.state.get());
           })
      .def_prop_ro("_name",
                   [](const CppFunction& f) { return f.state->name(); })
      .def_prop_ro("_arg_names",
                   [](const CppFunction& f) { return f.state->arg_names(); })
      .def("_concrete", &ConcreteOfCpp)
      .def("_trace_count",
           [](const CppFunction& f) { return f.state->trace_count(); })
      .def("_explain_retraces",
           [](const CppFunction& f) { return f.state->explain_retraces(); });
  m.def("register_function", &RegisterByName);
  m.def("find_function", &FindByName);
  m.def("unregister_function", [](const std::string& name) {
    return Raising("by name", [&] { return tf::UnregisterFunction(name); });
  });
  m.def("registered_functions", [] { return tf::RegisteredFunctions(); });
}

}  // namespace headrace::bind
