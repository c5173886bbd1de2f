// Keys and entries of any bytes in a well-formed index (a fuzzer cannot find
// checksums), beside a data file of any bytes. The input is a list of lengths
// and pieces: key, entry, key, entry, ..., data.
#include <map>

#include "base/coding.h"
#include "base/files/files.h"
#include "base/files/memory_file_system.h"
#include "formats/checkpoint_reader.h"
#include "formats/checkpoint_writer.h"
#include "formats/element_size.h"
#include "formats/table.h"
#include "tensorflow/core/protobuf/tensor_bundle.pb.h"

namespace headrace {
namespace {

void WriteTable(FileSystem* fs, const std::string& path,
                const std::map<std::string, std::string>& entries) {
  auto file = *fs->OpenToWrite(path, WriteMode::kTruncate);
  TableWriter table(file.get());
  for (const auto& [key, value] : entries) {
    table.Add(key, value).IgnoreError();
  }
  table.Finish().IgnoreError();
}

void ReadAll(const CheckpointReader& reader) {
  for (const std::string& key : reader.keys()) {
    const auto tensor = reader.Lookup(key);
    if (!tensor.ok()) continue;
    reader.ReadStrings(key).status().IgnoreError();
    const auto count = CountElements(tensor->dims);
    if (!count.ok() || *count > 1000000) continue;
    std::string out(*count * ElementSize(tensor->dtype), '\0');
    reader.Read(key, absl::MakeSpan(out)).IgnoreError();
  }
}

}  // namespace
}  // namespace headrace

extern "C" int LLVMFuzzerTestOneInput(const char* data, size_t size) {
  using namespace headrace;
  StringView in(data, size), length, key, entry;
  std::map<std::string, std::string> entries;
  while (GetBytes(&in, 2, &length) &&
         GetBytes(&in, static_cast<unsigned char>(length[0]), &key) &&
         GetBytes(&in, static_cast<unsigned char>(length[1]), &entry)) {
    entries.emplace(key, entry);
  }
  MemoryFileSystem fs;
  WriteTable(&fs, "old", entries);
  tensorflow::BundleHeaderProto header;
  header.set_num_shards(1);
  entries.emplace("", header.SerializeAsString());
  WriteTable(&fs, CheckpointIndexPath("new"), entries);
  WriteFileAtomically(&fs, CheckpointDataPath("new", 0, 1), in).IgnoreError();
  for (const char* prefix : {"old", "new"}) {
    const auto reader = CheckpointReader::Open(&fs, prefix);
    if (reader.ok()) ReadAll(**reader);
  }
  MergeCheckpoints(&fs, {"new"}, "merged").IgnoreError();
  return 0;
}
