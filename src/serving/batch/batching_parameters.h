// How requests are put together: --batching_parameters_file, and the files of
// single models.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "tensorflow_serving/servables/tensorflow/session_bundle_config.pb.h"

namespace headrace::serving {

using BatchingParameters = tensorflow::serving::BatchingParameters;

// The parameters with their defaults, checked. Sizes count rows.
struct BatchingOptions {
  int64_t max_batch_size = 1000;      // most rows of a request
  int64_t batch_timeout_micros = 0;   // how long the first task waits
  int64_t max_enqueued_batches = 10;  // of a queue
  int64_t num_batch_threads = 1;      // of all models
  std::string thread_pool_name = "batch_threads";
  std::vector<int64_t> allowed_batch_sizes;
  bool pad_variable_length_inputs = false;
  bool enable_large_batch_splitting = false;
  int64_t max_execution_batch_size = 1000;  // most rows of a batch
};

// Where a model says how it wants to be batched, in its version's folder.
inline constexpr char kModelBatchingFile[] = "batching_params.pbtxt";

// InvalidArgument "Invalid protobuf file: 'F'..."; errors of reading the file.
StatusOr<BatchingParameters> ReadBatchingParameters(const std::string& path);

// InvalidArgument naming the parameter. max_execution_batch_size is, where the
// parameters have none, 1000 or the smaller max_batch_size.
StatusOr<BatchingOptions> CheckBatchingParameters(
    const BatchingParameters& parameters);

// Those of the version in that folder; none where it has no such file, which
// means that it is not batched. Threads are those of the server's own file.
StatusOr<std::optional<BatchingOptions>> ReadModelBatching(
    const std::string& folder);

}  // namespace headrace::serving
