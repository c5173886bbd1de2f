// Exceptions on their way between the languages.
#pragma once

#include "base/status.h"
#include "bind/python/python.h"
#include "headrace/named_functions.h"

namespace headrace::bind {

// The exception of Python that is set, as C++ throws it; clears it.
tf::PythonError TakeRaised();

// Inside a catch block, around a call of `who`: raises what was caught. What
// came from Python is raised as the object that it was, Errors as their class
// of tf.errors.
void RaiseFromCpp(StringView who);

}  // namespace headrace::bind
