// Datasets that write their elements to a folder on the way.
#pragma once

#include <string>

#include "data/captured_function.h"
#include "data/saved_run.h"

namespace headrace {

// Where elements are written, and how.
struct SaveTarget {
  std::string folder;
  std::string graph_hash;          // for the metadata
  std::string compression;         // as upstream names it
  CapturedFunctionPtr shard_func;  // null: all go to shard 0
};

// The elements of `input`, which a walk writes on the way; at its end the
// folder's metadata name its run. A place in a walk is one in the files too.
// `kind` is its name in prefixes. InvalidArgument for unknown compressions.
StatusOr<DatasetPtr> MakeSaving(StringView kind, ElementSpec spec,
                                DatasetPtr input, SaveTarget target);

}  // namespace headrace
