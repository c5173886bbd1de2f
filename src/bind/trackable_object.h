// Nodes of checkpoints' object graphs that stand for Python objects.
#pragma once

#include <nanobind/nanobind.h>

#include "train/trackable.h"

namespace headrace::bind {

// Adds TrackableNode, new_node and new_variable_node.
void AddTrackable(nanobind::module_& m);

// The Python object that a node stands for; None when it is gone, or when it is
// a tuple, which cannot be asked for its references.
nanobind::object OwnerOf(const TrackablePtr& node);

// Raises what a callback into Python raised, else the status.
[[noreturn]] void RaiseTrackable(const Status& status);
inline void RaiseUnlessOk(const Status& status) {
  if (!status.ok()) RaiseTrackable(status);
}
template <typename T>
T ValueOrRaise(StatusOr<T> result) {
  if (!result.ok()) RaiseTrackable(result.status());
  return *std::move(result);
}

}  // namespace headrace::bind
