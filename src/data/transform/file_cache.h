// Elements kept in a file.
#pragma once

#include <string>

#include "data/dataset.h"

namespace headrace {

// The first walk to its end writes FILE.index; later walks read it.
StatusOr<DatasetPtr> MakeFileCache(ElementSpec spec, DatasetPtr input,
                                   const std::string& file);

}  // namespace headrace
