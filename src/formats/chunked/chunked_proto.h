// Messages in chunks (`.cpb`), the form of protos that are larger than the
// 2 GiB that one can be serialized in: a Riegeli file of parts, whose last
// record, ChunkMetadata, says where each belongs.
#pragma once

#include <string>

#include "base/files/file_system.h"
#include "google/protobuf/message.h"

namespace headrace {

inline constexpr char kChunkedSuffix[] = ".cpb";
// The most bytes of a serialized message: protobuf counts them in an int.
inline constexpr uint64_t kMostProtoBytes = 0x7fffffff;
// The largest part that is written, where a message can be cut at all.
inline constexpr uint64_t kChunkBytes = uint64_t{1} << 30;

// Merges all parts into `message`, which is empty. DataLoss, naming file and
// place, where something is damaged, or does not fit the message;
// Unimplemented for packings that are not read, and numbers in chunks of their
// own. Versions are not compared, as TensorFlow's reader does not.
Status ReadChunkedProto(const RandomAccessFile& file,
                        google::protobuf::Message* message);
Status ReadChunkedProto(FileSystem* fs, const std::string& path,
                        google::protobuf::Message* message);

// Writes parts of up to `chunk_bytes` bytes, and takes `message` apart while it
// does. Lists of messages, maps, strings and messages within messages are cut;
// ResourceExhausted where what is left is still larger than 2 GiB.
Status WriteChunkedProto(google::protobuf::Message* message, WritableFile* file,
                         uint64_t chunk_bytes = kChunkBytes);
// The same, in place of what is at `path`, at once.
Status WriteChunkedProto(google::protobuf::Message* message, FileSystem* fs,
                         const std::string& path,
                         uint64_t chunk_bytes = kChunkBytes);

}  // namespace headrace
