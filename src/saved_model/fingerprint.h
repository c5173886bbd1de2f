// fingerprint.pb: hashes that tell whether two SavedModels are the same.
#pragma once

#include <string>

#include "base/status.h"
#include "tensorflow/core/protobuf/fingerprint.pb.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"

namespace headrace {

inline constexpr char kFingerprintFile[] = "fingerprint.pb";

// Of a model with one graph and no others: of all of its bytes, of its parts
// without the numbers that functions got in this process, and of the index of
// its checkpoint. The parts' hashes are the same whenever the same program is
// saved with the same values; they are Headrace's own, but for the
// checkpoint's, which is upstream's. What is larger than the 2 GiB that can be
// serialized has no hash.
tensorflow::FingerprintDef FingerprintOf(const tensorflow::SavedModel& model,
                                         StringView checkpoint_index);

// NotFound where the folder has none, DataLoss where it is damaged.
StatusOr<tensorflow::FingerprintDef> ReadFingerprint(const std::string& folder);

}  // namespace headrace
