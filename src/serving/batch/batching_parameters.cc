#include "serving/batch/batching_parameters.h"

#include <algorithm>

#include "base/cpu_count.h"
#include "base/files/files.h"
#include "serving/proto_file.h"

namespace headrace::serving {
namespace {

// More threads than that are a slip of the pen, and would take the process'
// memory.
constexpr int64_t kMostBatchThreads = 4096;

Status CheckRanges(const BatchingOptions& o) {
  const struct {
    const char* name;
    int64_t value, least;
  } fields[] = {{"max_batch_size", o.max_batch_size, 1},
                {"batch_timeout_micros", o.batch_timeout_micros, 0},
                {"max_enqueued_batches", o.max_enqueued_batches, 1},
                {"num_batch_threads", o.num_batch_threads, 1},
                {"max_execution_batch_size", o.max_execution_batch_size, 1}};
  for (const auto& f : fields) {
    if (f.value >= f.least) continue;
    return InvalidArgument(f.name, " must be ",
                           f.least == 0 ? "non-negative" : "positive", "; was ",
                           f.value);
  }
  if (o.num_batch_threads > kMostBatchThreads) {
    return InvalidArgument("num_batch_threads must be at most ",
                           kMostBatchThreads, "; was ", o.num_batch_threads);
  }
  if (o.max_execution_batch_size > o.max_batch_size) {
    return InvalidArgument(
        "max_execution_batch_size must not be larger than max_batch_size; "
        "they are ",
        o.max_execution_batch_size, " and ", o.max_batch_size);
  }
  return OkStatus();
}

Status CheckAllowedSizes(const BatchingOptions& o) {
  const auto& sizes = o.allowed_batch_sizes;
  int64_t last = 0;
  for (const int64_t size : sizes) {
    if (size <= last) {
      return InvalidArgument(
          "allowed_batch_sizes entries must be monotonically increasing");
    }
    last = size;
  }
  if (!sizes.empty() && last != o.max_execution_batch_size) {
    return InvalidArgument(
        "Last entry in allowed_batch_sizes must match max_batch_size; last "
        "entry was ",
        last, ", expected ", o.max_execution_batch_size);
  }
  return OkStatus();
}

}  // namespace

StatusOr<BatchingParameters> ReadBatchingParameters(const std::string& path) {
  BatchingParameters parameters;
  HR_RETURN_IF_ERROR(ReadProtoFile(path, &parameters));
  return parameters;
}

StatusOr<BatchingOptions> CheckBatchingParameters(const BatchingParameters& p) {
  BatchingOptions o;
  if (p.has_max_batch_size()) o.max_batch_size = p.max_batch_size().value();
  if (p.has_batch_timeout_micros()) {
    o.batch_timeout_micros = p.batch_timeout_micros().value();
  }
  if (p.has_max_enqueued_batches()) {
    o.max_enqueued_batches = p.max_enqueued_batches().value();
  }
  o.num_batch_threads = p.has_num_batch_threads()
                            ? p.num_batch_threads().value()
                            : AvailableCpus();
  if (p.has_thread_pool_name()) {
    o.thread_pool_name = p.thread_pool_name().value();
  }
  o.allowed_batch_sizes.assign(p.allowed_batch_sizes().begin(),
                               p.allowed_batch_sizes().end());
  o.pad_variable_length_inputs = p.pad_variable_length_inputs();
  o.enable_large_batch_splitting = p.enable_large_batch_splitting().value();
  // Without splitting a batch is as large as a request may be.
  if (!o.enable_large_batch_splitting) {
    o.max_execution_batch_size = o.max_batch_size;
  } else if (p.has_max_execution_batch_size()) {
    o.max_execution_batch_size = p.max_execution_batch_size().value();
  } else {
    o.max_execution_batch_size =
        std::min(o.max_execution_batch_size, o.max_batch_size);
  }
  HR_RETURN_IF_ERROR(CheckRanges(o));
  HR_RETURN_IF_ERROR(CheckAllowedSizes(o));
  return o;
}

StatusOr<std::optional<BatchingOptions>> ReadModelBatching(
    const std::string& folder) {
  const std::string path = JoinPath(folder, kModelBatchingFile);
  const auto parameters = ReadBatchingParameters(path);
  if (absl::IsNotFound(parameters.status())) return std::nullopt;
  HR_RETURN_IF_ERROR(parameters.status());
  HR_ASSIGN_OR_RETURN(BatchingOptions options,
                      CheckBatchingParameters(*parameters));
  return options;
}

}  // namespace headrace::serving
