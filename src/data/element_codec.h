// Elements as bytes: what file caches, snapshots and saved datasets hold.
//
//   element := width: varint, component*
//   component := dtype: varint, rank: varint, dims: varint*, values
//   values := the elements' bytes as they lie in memory, or of strings, each
//             length: varint, bytes; of datasets that lie in memory (windows)
//             width: varint, (dtype, rank + 1, dims + 1: varints)*,
//             count: varint, element*
#pragma once

#include <string>

#include "data/dataset.h"

namespace headrace {

// Unimplemented for components that have no bytes (datasets, resources).
Status EncodeElement(const Element& element, std::string* out);
// DataLoss when `bytes` is no element.
StatusOr<Element> DecodeElement(StringView bytes);

}  // namespace headrace
