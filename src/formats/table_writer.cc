// The layout is drawn in table.h.
#include "absl/strings/str_cat.h"
#include "base/coding.h"
#include "base/crc32c.h"
#include "formats/table.h"

namespace headrace {
namespace {

// LevelDB's default, so that files are upstream's byte for byte.
constexpr int kRestartInterval = 16;
constexpr size_t kFooterHandles = 40;

size_t CommonPrefix(StringView a, StringView b) {
  const size_t n = std::min(a.size(), b.size());
  return std::mismatch(a.begin(), a.begin() + n, b.begin()).first - a.begin();
}

// A short key k with a <= k < b, as LevelDB chooses it.
std::string Separator(StringView a, StringView b) {
  const size_t same = CommonPrefix(a, b);
  if (same < a.size() && same < b.size()) {
    const unsigned char byte = a[same];
    if (byte < 0xff && byte + 1 < static_cast<unsigned char>(b[same])) {
      std::string key(a.substr(0, same + 1));
      key.back() = static_cast<char>(byte + 1);
      return key;
    }
  }
  return std::string(a);
}

// A short key at or behind `a`.
std::string Successor(StringView a) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (static_cast<unsigned char>(a[i]) == 0xff) continue;
    std::string key(a.substr(0, i + 1));
    key.back() = static_cast<char>(static_cast<unsigned char>(a[i]) + 1);
    return key;
  }
  return std::string(a);
}

}  // namespace

TableWriter::TableWriter(WritableFile* file, size_t block_size)
    : file_(file), block_size_(block_size) {}

void TableWriter::Block::Add(StringView key, StringView value,
                             int restart_interval) {
  size_t shared = 0;
  if (since_restart < restart_interval) {
    shared = CommonPrefix(last_key, key);
  } else {
    restarts.push_back(static_cast<uint32_t>(bytes.size()));
    since_restart = 0;
  }
  PutVarint32(&bytes, static_cast<uint32_t>(shared));
  PutVarint32(&bytes, static_cast<uint32_t>(key.size() - shared));
  PutVarint32(&bytes, static_cast<uint32_t>(value.size()));
  absl::StrAppend(&bytes, key.substr(shared), value);
  last_key.assign(key.data(), key.size());
  ++since_restart;
}

Status TableWriter::Add(StringView key, StringView value) {
  // Lengths and places of a block are 32 bits, and a block is at least one
  // entry.
  if (key.size() > UINT32_MAX / 4 || value.size() > UINT32_MAX / 4) {
    return InvalidArgument("table: a key of ", key.size(),
                           " bytes with a value of ", value.size());
  }
  if (!empty_ && key <= last_key_) {
    return InvalidArgument("table: key '", key, "' comes behind '", last_key_,
                           "'");
  }
  // The index entry of a block waits for the next key, as it needs only part
  // the two.
  if (!waiting_handle_.empty()) {
    index_.Add(Separator(last_key_, key), waiting_handle_, 1);
    waiting_handle_.clear();
  }
  block_.Add(key, value, kRestartInterval);
  last_key_.assign(key.data(), key.size());
  empty_ = false;
  return block_.size() >= block_size_ ? Flush() : OkStatus();
}

Status TableWriter::Flush() {
  if (block_.bytes.empty()) return OkStatus();
  return Write(&block_, &waiting_handle_);
}

Status TableWriter::Write(Block* block, std::string* handle) {
  std::string& bytes = block->bytes;
  for (const uint32_t restart : block->restarts) PutFixed32(&bytes, restart);
  PutFixed32(&bytes, static_cast<uint32_t>(block->restarts.size()));
  handle->clear();
  PutVarint64(handle, file_->size());
  PutVarint64(handle, bytes.size());
  // The block's type: not packed.
  bytes.push_back('\0');
  PutFixed32(&bytes, MaskCrc(Crc32c(bytes)));
  const Status status = file_->Append(bytes);
  *block = Block();
  return status;
}

Status TableWriter::Finish() {
  HR_RETURN_IF_ERROR(Flush());
  if (!waiting_handle_.empty()) {
    index_.Add(Successor(last_key_), waiting_handle_, 1);
    waiting_handle_.clear();
  }
  Block metaindex;
  std::string footer, index_handle;
  // Empty, but readers of the format look for it.
  HR_RETURN_IF_ERROR(Write(&metaindex, &footer));
  HR_RETURN_IF_ERROR(Write(&index_, &index_handle));
  footer += index_handle;
  // Padded, so that the footer is as long for short handles as for long ones.
  footer.resize(kFooterHandles);
  PutFixed64(&footer, kTableMagic);
  return file_->Append(footer);
}

}  // namespace headrace
