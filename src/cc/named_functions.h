// The functions that both languages find by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cc/function_state.h"
#include "headrace/named_functions.h"

namespace headrace::tf::internal {

// What the table holds of a function: the way to it as long as it lives. Its
// methods may wait for locks of a language; the table's own is not held then.
class NamedFunction {
 public:
  virtual ~NamedFunction() = default;
  // Null once it is gone.
  virtual FunctionStatePtr Get() const = 0;
  virtual bool IsSame(const NamedFunction& other) const = 0;
  virtual bool IsAlive() const { return Get() != nullptr; }
};
using NamedFunctionPtr = std::shared_ptr<const NamedFunction>;

// Throw Errors, as the public functions of these names do.
void Register(const std::string& name, NamedFunctionPtr function);
NamedFunctionPtr FindNamed(const std::string& name);

}  // namespace headrace::tf::internal
