// Exceptions that are nobody's error: what a signal's handler raises while C++
// works, and KeyboardInterrupt, SystemExit and their like of Python functions
// that ops call. They pass through the library as a Cancelled status and come
// out as they were.
#pragma once

#include "base/status.h"
#include "bind/python/python.h"

namespace headrace::bind {

// Has long work on the main thread look for signals.
void InstallInterrupts();

// Whether the exception that is set is such a one.
bool IsInterrupt();

// Keeps the exception that is set, clears it, and returns the status that
// stands for it. On the main thread all work ends until it is raised again.
Status KeepInterrupt();

// Raises what `s`, the outcome of a call, stands for, if anything is kept.
bool RaiseInterrupt(const Status& s);

}  // namespace headrace::bind
