// The layout is drawn in table.h.
#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/coding.h"
#include "base/crc32c.h"
#include "formats/snappy.h"
#include "formats/table.h"

namespace headrace {
namespace {

// LevelDB's: two handles of at most 20 bytes each and the magic number; behind
// each block its type and checksum.
constexpr size_t kFooterSize = 48;
constexpr size_t kTrailerSize = 5;

// The entries of a block, without its restarts; false when it is too short.
bool EntriesOf(StringView block, StringView* entries) {
  if (block.size() < 4) return false;
  // Restarts are for searching within a block; blocks are read from front to
  // back here, as they are small.
  const uint64_t restarts = LoadFixed32(block.data() + block.size() - 4);
  if (restarts > block.size() / 4 - 1) return false;
  *entries = block.substr(0, block.size() - 4 * (restarts + 1));
  return true;
}

// Takes one entry from the front of *in; *key is the one before, and becomes
// this one's.
bool NextEntry(StringView* in, std::string* key, StringView* value) {
  uint32_t shared, unshared, value_size;
  StringView suffix;
  if (!GetVarint32(in, &shared) || !GetVarint32(in, &unshared) ||
      !GetVarint32(in, &value_size) || shared > key->size() ||
      !GetBytes(in, unshared, &suffix) || !GetBytes(in, value_size, value)) {
    return false;
  }
  key->resize(shared);
  key->append(suffix.data(), suffix.size());
  return true;
}

}  // namespace

Status TableReader::Damaged(StringView what) const {
  return DataLoss(path(), ": not a readable table: ", what);
}

StatusOr<std::unique_ptr<TableReader>> TableReader::Open(
    std::unique_ptr<RandomAccessFile> file) {
  std::unique_ptr<TableReader> table(new TableReader(std::move(file)));
  HR_RETURN_IF_ERROR(table->ReadIndex());
  return table;
}

Status TableReader::ReadIndex() {
  if (file_->size() < kFooterSize) return Damaged("too short");
  char footer[kFooterSize];
  HR_RETURN_IF_ERROR(
      file_->Read(file_->size() - kFooterSize, absl::MakeSpan(footer)));
  if (LoadFixed64(footer + kFooterSize - 8) != kTableMagic) {
    return Damaged("bad magic number");
  }
  StringView rest(footer, kFooterSize - 8);
  Handle meta, index;
  if (!GetVarint64(&rest, &meta.offset) || !GetVarint64(&rest, &meta.size) ||
      !GetVarint64(&rest, &index.offset) || !GetVarint64(&rest, &index.size)) {
    return Damaged("bad block handle");
  }
  HR_ASSIGN_OR_RETURN(const std::string block, ReadBlock(index));
  StringView entries, value;
  if (!EntriesOf(block, &entries)) return Damaged("bad index block");
  std::string key;
  while (!entries.empty()) {
    Handle handle;
    if (!NextEntry(&entries, &key, &value) ||
        !GetVarint64(&value, &handle.offset) ||
        !GetVarint64(&value, &handle.size)) {
      return Damaged("bad index entry");
    }
    // Get() searches by halves, which needs the order.
    if (!index_.empty() && key <= index_.back().last_key) {
      return Damaged("index out of order");
    }
    index_.push_back({key, handle});
  }
  return OkStatus();
}

StatusOr<std::string> TableReader::ReadBlock(Handle handle) const {
  const uint64_t size = file_->size();
  if (handle.offset > size || handle.size > size - handle.offset ||
      kTrailerSize > size - handle.offset - handle.size) {
    return Damaged("a block lies outside the file");
  }
  std::string block(handle.size + kTrailerSize, '\0');
  HR_RETURN_IF_ERROR(file_->Read(handle.offset, absl::MakeSpan(block)));
  const uint32_t stored = UnmaskCrc(LoadFixed32(&block[handle.size + 1]));
  if (Crc32cExtend(0, block.data(), handle.size + 1) != stored) {
    return Damaged("block checksum mismatch");
  }
  const char type = block[handle.size];
  block.resize(handle.size);
  if (type == 0) return block;
  if (type != 1)
    return Damaged(absl::StrCat("block of unknown type ", int{type}));
  std::string unpacked;
  if (!SnappyUnpack(block, &unpacked)) return Damaged("bad packed block");
  return unpacked;
}

Status TableReader::Scan(
    absl::FunctionRef<Status(StringView, StringView)> fn) const {
  std::string key, before;
  bool first = true;
  for (const IndexEntry& entry : index_) {
    HR_ASSIGN_OR_RETURN(const std::string block, ReadBlock(entry.handle));
    StringView entries, value;
    if (!EntriesOf(block, &entries)) return Damaged("bad block");
    // Blocks are read alone by Get too: the first key of each shares nothing.
    key.clear();
    while (!entries.empty()) {
      if (!NextEntry(&entries, &key, &value)) return Damaged("bad entry");
      if ((!first && key <= before) || key > entry.last_key) {
        return Damaged("keys out of order");
      }
      HR_RETURN_IF_ERROR(fn(key, value));
      before = key;
      first = false;
    }
  }
  return OkStatus();
}

StatusOr<std::string> TableReader::Get(StringView wanted) const {
  const auto found = std::lower_bound(
      index_.begin(), index_.end(), wanted,
      [](const IndexEntry& e, StringView key) { return e.last_key < key; });
  if (found != index_.end()) {
    HR_ASSIGN_OR_RETURN(const std::string block, ReadBlock(found->handle));
    StringView entries, value;
    if (!EntriesOf(block, &entries)) return Damaged("bad block");
    std::string key;
    while (!entries.empty()) {
      if (!NextEntry(&entries, &key, &value)) return Damaged("bad entry");
      if (key == wanted) return std::string(value);
      if (key > wanted) break;
    }
  }
  return NotFound(path(), ": no key '", absl::CHexEscape(wanted), "'");
}

}  // namespace headrace
