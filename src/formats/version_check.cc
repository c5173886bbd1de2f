#include "formats/version_check.h"

#include "tensorflow/core/framework/versions.pb.h"

namespace headrace {
Status CheckVersions(const tensorflow::VersionDef& versions, int reader_version,
                     int min_producer, StringView kind, StringView noun) {
  if (reader_version < min_producer) {
    return Internal(kind, " version ", reader_version,
                    " of the reader is below its own min producer ",
                    min_producer);
  }
  if (versions.producer() < min_producer) {
    return InvalidArgument(kind, " producer version ", versions.producer(),
                           " below min producer ", min_producer,
                           " supported by TensorFlow ", kTensorFlowVersion,
                           ".  Please regenerate your ", noun, ".");
  }
  if (versions.min_consumer() > reader_version) {
    return InvalidArgument(kind, " min consumer version ",
                           versions.min_consumer(), " above current version ",
                           reader_version, " for TensorFlow ",
                           kTensorFlowVersion, ".  Please upgrade TensorFlow.");
  }
  for (const int bad : versions.bad_consumers()) {
    if (bad == reader_version) {
      return InvalidArgument(
          kind, " disallows consumer version ", bad,
          ".  Please upgrade TensorFlow: this version is likely buggy.");
    }
  }
  return OkStatus();
}

}  // namespace headrace
