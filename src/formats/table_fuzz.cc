// Any bytes as a sorted table.
#include "base/files/files.h"
#include "base/files/memory_file_system.h"
#include "formats/table.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, size_t size) {
  using namespace headrace;
  MemoryFileSystem fs;
  WriteFileAtomically(&fs, "t", StringView(data, size)).IgnoreError();
  auto table = TableReader::Open(*fs.OpenToRead("t"));
  if (!table.ok()) return 0;
  (*table)
      ->Scan([](StringView, StringView) { return OkStatus(); })
      .IgnoreError();
  (*table)->Get("key").status().IgnoreError();
  return 0;
}
