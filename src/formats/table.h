// Sorted string tables: immutable files of keys and values in the order of
// their keys' bytes. The index of every checkpoint is one, and so is a whole
// checkpoint of the first format. Files are LevelDB's, byte for byte:
//
//   table  := block* metaindex index footer
//   block  := entry* restart* count type crc   (what an entry of `index` points
//             at is all up to `count`; type and crc follow)
//     entry   := shared:varint unshared:varint value_size:varint
//                the key's last `unshared` bytes, value
//                ("shared": bytes that the key has in common with the key
//                before; 0 at each restart)
//     restart := fixed32, where an entry that shares nothing begins
//     count   := fixed32, how many restarts
//     type    := byte, 0 plain, 1 snappy
//     crc     := fixed32, masked crc32c of the block and its type
//   metaindex := block without entries
//   index     := block of (key, handle): key is at or behind the last key of a
//                block and before the first of the next
//     handle  := offset:varint size:varint
//   footer := metaindex handle, index handle, zeros up to 40 bytes,
//             fixed64 0xdb4775248b80fb57
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/files/file_system.h"
#include "base/status.h"

namespace headrace {

// What a table ends with.
inline constexpr uint64_t kTableMagic = 0xdb4775248b80fb57;

// Writes a table. Not thread-safe.
class TableWriter {
 public:
  // Blocks are closed when they reach this size: upstream's for checkpoints.
  static constexpr size_t kBlockSize = 256 << 10;

  // `file` is borrowed, and must be empty.
  explicit TableWriter(WritableFile* file, size_t block_size = kBlockSize);

  // Keys must come in strictly rising order, else InvalidArgument.
  Status Add(StringView key, StringView value);
  // Writes what is left. The file is neither synced nor closed.
  Status Finish();

 private:
  // A block that grows.
  struct Block {
    std::string bytes;
    std::vector<uint32_t> restarts = {0};
    std::string last_key;
    int since_restart = 0;

    void Add(StringView key, StringView value, int restart_interval);
    size_t size() const { return bytes.size() + 4 * restarts.size() + 4; }
  };

  Status Flush();
  // Writes the block and empties it; *handle is what the index says of it.
  Status Write(Block* block, std::string* handle);

  WritableFile* const file_;
  const size_t block_size_;
  Block block_, index_;
  // A written block enters the index when the next key is known, so that the
  // shortest key between them can be used.
  std::string waiting_handle_;
  std::string last_key_;
  bool empty_ = true;
};

// Reads a table. All checksums are checked, and nothing of the file is
// believed: damage of any kind is DataLoss. Thread-safe.
class TableReader {
 public:
  // Reads the footer and the index.
  static StatusOr<std::unique_ptr<TableReader>> Open(
      std::unique_ptr<RandomAccessFile> file);

  // Calls fn for every entry in order, and stops at its first error, which is
  // returned. The views are valid during the call.
  Status Scan(
      absl::FunctionRef<Status(StringView key, StringView value)> fn) const;

  // The value of a key; NotFound when there is none. Reads one block.
  StatusOr<std::string> Get(StringView key) const;

  const std::string& path() const { return file_->path(); }

 private:
  struct Handle {
    uint64_t offset, size;
  };
  struct IndexEntry {
    std::string last_key;
    Handle handle;
  };

  explicit TableReader(std::unique_ptr<RandomAccessFile> file)
      : file_(std::move(file)) {}
  Status ReadIndex();
  StatusOr<std::string> ReadBlock(Handle handle) const;
  Status Damaged(StringView what) const;

  const std::unique_ptr<RandomAccessFile> file_;
  std::vector<IndexEntry> index_;
};

}  // namespace headrace
