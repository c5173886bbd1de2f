// Any bytes as a warm-up file.
#include "base/files/files.h"
#include "base/files/memory_file_system.h"
#include "serving/warmup/warmup_file.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, size_t size) {
  using namespace headrace;
  MemoryFileSystem fs;
  WriteFileAtomically(&fs, "w", StringView(data, size)).IgnoreError();
  serving::ReadWarmupFile(&fs, "w", "w", [](serving::PredictionLog&) {
    return OkStatus();
  }).IgnoreError();
  return 0;
}
