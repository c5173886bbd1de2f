// The one check of stored versions, for graphs and for checkpoints.
#pragma once

#include "base/status.h"

namespace tensorflow {
class VersionDef;
}

namespace headrace {

// The TensorFlow whose formats we read and write, and whose interfaces these
// are.
inline constexpr char kTensorFlowVersion[] = "2.21.0";

// Whether a reader of version `reader_version`, which knows data of producers
// from `min_producer` on, may read data with these versions. InvalidArgument
// says which side is too old. `kind` begins the text ("GraphDef",
// "Checkpoint"), `noun` ends it ("graph", "checkpoint").
Status CheckVersions(const tensorflow::VersionDef& versions, int reader_version,
                     int min_producer, StringView kind, StringView noun);

}  // namespace headrace
