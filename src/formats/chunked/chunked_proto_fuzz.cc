// Any bytes as a message in chunks. The first byte says how: as the file
// itself; or, since no bytes found by chance have its hashes, as the records of
// one, each behind its length of two bytes, the last of them the metadata,
// whose chunks get the places and sizes of the others.
#include "base/coding.h"
#include "base/files/files.h"
#include "base/files/memory_file_system.h"
#include "formats/chunked/chunked_proto.h"
#include "formats/chunked/riegeli.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"
#include "tensorflow/tools/proto_splitter/chunk.pb.h"

namespace headrace {
namespace {

Status WriteRecords(StringView bytes, WritableFile* file) {
  HR_ASSIGN_OR_RETURN(RiegeliWriter writer, RiegeliWriter::Create(file));
  std::vector<std::pair<uint64_t, uint64_t>> written;
  while (bytes.size() >= 2) {
    const uint64_t size = static_cast<unsigned char>(bytes[0]) |
                          static_cast<unsigned char>(bytes[1]) << 8;
    bytes.remove_prefix(2);
    const StringView record = bytes.substr(0, size);
    bytes.remove_prefix(record.size());
    tensorflow::proto_splitter::ChunkMetadata metadata;
    if (!bytes.empty() || !metadata.ParseFromArray(
                              record.data(), static_cast<int>(record.size()))) {
      HR_ASSIGN_OR_RETURN(const uint64_t place, writer.Write(record));
      written.emplace_back(place, record.size());
      continue;
    }
    for (size_t i = 0;
         i < written.size() && i < static_cast<size_t>(metadata.chunks_size());
         ++i) {
      auto* info = metadata.mutable_chunks(static_cast<int>(i));
      info->set_offset(written[i].first);
      info->set_size(written[i].second);
    }
    return writer.Write(metadata.SerializeAsString()).status();
  }
  return OkStatus();
}

}  // namespace
}  // namespace headrace

extern "C" int LLVMFuzzerTestOneInput(const char* data, size_t size) {
  using namespace headrace;
  if (size == 0) return 0;
  MemoryFileSystem fs;
  const StringView bytes(data + 1, size - 1);
  if ((data[0] & 1) != 0) {
    const auto file = *fs.OpenToWrite("m", WriteMode::kTruncate);
    WriteRecords(bytes, file.get()).IgnoreError();
  } else {
    WriteFileAtomically(&fs, "m", bytes).IgnoreError();
  }
  tensorflow::SavedModel model;
  if (!ReadChunkedProto(&fs, "m", &model).ok()) return 0;
  constexpr uint64_t kSmall = 64;
  WriteChunkedProto(&model, &fs, "again", kSmall).IgnoreError();
  return 0;
}
