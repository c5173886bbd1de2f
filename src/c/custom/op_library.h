// Shared libraries that bring ops and kernels.
#pragma once

#include <string>
#include <vector>

#include "op/op_def.h"

// One a library, however often it is loaded; it stays.
struct TF_Library {
  void* handle = nullptr;
  std::vector<const headrace::OpDef*>
      ops;              // that it defined when it was loaded
  std::string op_list;  // they, as an OpList
};

namespace headrace::capi {

// Loads it, so that its constructors register what it has: it finds the
// functions of ops.h and kernels.h in this library, whether it is linked to it
// or not. NotFound, with the system's words, where it cannot be loaded.
// Thread-safe.
StatusOr<TF_Library*> LoadOpLibrary(const char* path);

// Counts the op to the library that this thread is loading, if any.
void NoteRegistered(const OpDef* op);

}  // namespace headrace::capi
