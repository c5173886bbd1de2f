// Any bytes as a file of batching parameters: what is accepted can be used.
#include "serving/batch/batch_tensors.h"
#include "serving/batch/batching_parameters.h"
#include "serving/proto_file.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, size_t size) {
  using namespace headrace;
  serving::BatchingParameters parameters;
  if (!serving::ReadProtoConfig(std::string(data, size), "f", &parameters)
           .ok()) {
    return 0;
  }
  const auto options = serving::CheckBatchingParameters(parameters);
  if (!options.ok()) return 0;
  for (const int64_t rows :
       {int64_t{0}, int64_t{1}, options->max_execution_batch_size}) {
    if (serving::ExecutionSize(*options, rows) < rows) __builtin_trap();
  }
  return 0;
}
