// Any bytes as a file of records; the first byte chooses the compression.
#include "base/files/files.h"
#include "base/files/memory_file_system.h"
#include "formats/events.h"
#include "formats/records.h"
#include "tensorflow/core/util/event.pb.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, size_t size) {
  using namespace headrace;
  if (size == 0) return 0;
  MemoryFileSystem fs;
  WriteFileAtomically(&fs, "r", StringView(data + 1, size - 1)).IgnoreError();
  const auto file = *fs.OpenToRead("r");
  RecordReader reader(file.get(), static_cast<Compression>(data[0] & 1));
  std::string record;
  for (int i = 0; i < 1000; ++i) {
    const auto more = reader.Next(&record);
    if (!more.ok() || !*more) break;
  }
  auto events = *EventReader::Open(&fs, "r");
  for (tensorflow::Event event;;) {
    const auto more = events->Next(&event);
    if (!more.ok() || !*more) break;
  }
  return 0;
}
