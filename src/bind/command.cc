#include "bind/command.h"

#include <nanobind/stl/vector.h>

#include "command/entry.h"

namespace nb = nanobind;

namespace headrace::bind {

void AddCommand(nb::module_& m) {
  m.def("run_command", [](const std::vector<nb::bytes>& arguments) {
    std::vector<const char*> argv = {"headrace"};
    for (const nb::bytes& a : arguments) argv.push_back(a.c_str());
    nb::gil_scoped_release unlocked;
    return command::Main(static_cast<int>(argv.size()), argv.data());
  });
}

}  // namespace headrace::bind
