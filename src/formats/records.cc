// The layout is drawn in records.h.
#include "formats/records.h"

#include <algorithm>

#include "base/coding.h"
#include "base/crc32c.h"
#include "base/files/remote_file_system.h"

namespace headrace {
namespace {

constexpr size_t kHeaderBytes = 12;
constexpr size_t kFooterBytes = 4;
// Memory is taken in steps of this where a length cannot be checked before.
constexpr uint64_t kStepBytes = 4 << 20;

}  // namespace

StatusOr<std::unique_ptr<RecordWriter>> RecordWriter::Create(
    WritableFile* file, Compression compression,
    const DeflateOptions& options) {
  HR_ASSIGN_OR_RETURN(auto sink, OpenByteSink(file, compression, options));
  return std::unique_ptr<RecordWriter>(new RecordWriter(file, std::move(sink)));
}

Status RecordWriter::Flush() {
  HR_RETURN_IF_ERROR(sink_->Flush());
  return ShowToReaders(file_);
}

Status RecordWriter::Write(StringView record) {
  char header[kHeaderBytes], footer[kFooterBytes];
  StoreFixed64(header, record.size());
  // The length has a checksum of its own: readers trust it before they have
  // read the record.
  StoreFixed32(header + 8, MaskCrc(Crc32cExtend(0, header, 8)));
  StoreFixed32(footer, MaskCrc(Crc32c(record)));
  HR_RETURN_IF_ERROR(sink_->Write(StringView(header, kHeaderBytes)));
  HR_RETURN_IF_ERROR(sink_->Write(record));
  return sink_->Write(StringView(footer, kFooterBytes));
}

RecordReader::RecordReader(const RandomAccessFile* file,
                           Compression compression)
    : file_(file),
      compression_(compression),
      source_(OpenByteSource(file, compression)) {}

StatusOr<bool> RecordReader::ReadBytes(uint64_t n, std::string* out) {
  // A forged length ends here and not in memory.
  if (n > source_->MostLeft()) return false;
  while (n > 0) {
    const size_t step = std::min(n, kStepBytes), had = out->size();
    out->resize(had + step);
    HR_ASSIGN_OR_RETURN(const size_t got,
                        source_->Read(absl::MakeSpan(&(*out)[had], step)));
    if (got < step) {
      out->resize(had + got);
      return false;
    }
    n -= step;
  }
  return true;
}

StatusOr<bool> RecordReader::ReadRecord(std::string* record) {
  const auto corrupted = [&](const char* hint = "") {
    return DataLoss("corrupted record at ", offset_, " of ", file_->path(),
                    hint);
  };
  const auto truncated = [&] {
    return DataLoss("truncated record at ", offset_, " of ", file_->path());
  };
  record->clear();
  char header[kHeaderBytes];
  HR_ASSIGN_OR_RETURN(const size_t n, source_->Read(absl::MakeSpan(header)));
  // Between two records the file may end.
  if (n == 0) return false;
  if (n < kHeaderBytes) return truncated();
  if (UnmaskCrc(LoadFixed32(header + 8)) != Crc32cExtend(0, header, 8)) {
    return corrupted(offset_ == 0 ? " (Is this even a TFRecord file?)" : "");
  }
  const uint64_t length = LoadFixed64(header);
  if (length > UINT64_MAX - kFooterBytes) return corrupted();
  HR_ASSIGN_OR_RETURN(const bool whole,
                      ReadBytes(length + kFooterBytes, record));
  if (!whole) return truncated();
  const uint32_t stored = LoadFixed32(record->data() + length);
  record->resize(length);
  if (UnmaskCrc(stored) != Crc32c(*record)) return corrupted();
  offset_ += kHeaderBytes + length + kFooterBytes;
  return true;
}

StatusOr<bool> RecordReader::Next(std::string* record) {
  HR_RETURN_IF_ERROR(status_);
  StatusOr<bool> more = ReadRecord(record);
  if (!more.ok()) {
    // Behind a damaged record nobody knows where the next one begins, so the
    // error stays.
    status_ = more.status();
    record->clear();
  }
  return more;
}

Status RecordReader::Seek(uint64_t offset) {
  if (compression_ == Compression::kNone) {
    source_ = OpenByteSource(file_, compression_, offset);
  } else if (offset < offset_) {
    return Unimplemented(file_->path(),
                         ": going back in a packed file of records");
  } else {
    // A packed file can only be read through.
    std::string passed;
    for (uint64_t left = offset - offset_; left > 0;) {
      passed.clear();
      const uint64_t step = std::min(left, kStepBytes);
      HR_ASSIGN_OR_RETURN(const bool whole, ReadBytes(step, &passed));
      if (!whole) {
        return OutOfRange(file_->path(), ": no record at ", offset);
      }
      left -= step;
    }
  }
  offset_ = offset;
  status_ = OkStatus();
  return OkStatus();
}

}  // namespace headrace
