// Names of what an op's arguments become while a graph records.
#pragma once

#include <string>

#include "bind/python/python.h"
#include "graph/builder.h"

namespace headrace::bind {

// While it lives, nodes made of Python data are named after the op that they
// are for, as upstream does: the 1 of x + 1 is "add/y". Does nothing in eager
// code. Used on the thread of the current emitter, which must outlive it.
class ArgumentScope {
 public:
  // `name`: a str (the node's name), or null or None: `op`'s own.
  ArgumentScope(PyObject* name, const std::string& op);
  ~ArgumentScope();
  ArgumentScope(const ArgumentScope&) = delete;

  // The next node is argument `name`, if `data` (neither tensor nor variable)
  // is what it is made of.
  void Argument(const std::string& name, PyObject* data);

 private:
  GraphBuilder* builder_ = nullptr;
  std::string outer_;
};

}  // namespace headrace::bind
