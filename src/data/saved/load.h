// What reads saved elements back.
#pragma once

#include <memory>
#include <string>

#include "data/captured_function.h"

namespace headrace {

// The dataset that a function makes of the shards of a run in a folder.
struct SavedSource {
  std::string folder;  // as users name it
  std::string run_id;
  std::string compression;
  CapturedFunctionPtr reader_func;
};

// A walk of that dataset. `parent` is the prefix above it.
StatusOr<IteratorPtr> IterateSaved(PullContext& c, const SavedSource& source,
                                   const ElementSpec& spec, StringView parent);

// Of pipelines with the same hash it is thought that their elements are the
// same. Functions do not count: their names change from run to run.
uint64_t StructureHash(const Dataset& dataset);

}  // namespace headrace
