// What datasets of files read through.
#pragma once

#include <memory>
#include <string>

#include "data/dataset_op.h"
#include "formats/compression.h"

namespace headrace {

// Bytes of a file from front to back, through a buffer.
class BufferedSource {
 public:
  BufferedSource(const RandomAccessFile* file, Compression compression,
                 size_t buffer)
      : source_(OpenByteSource(file, compression)), size_(buffer) {}
  int64_t offset() const { return offset_; }

  // More bytes behind those held; false at the end.
  StatusOr<bool> Fill() {
    HR_RETURN_IF_ERROR(CheckStop());
    // The rest of a record moves to the front, so that a record always lies in
    // one piece.
    if (at_ > 0) {
      buffer_.erase(0, at_);
      at_ = 0;
    }
    const size_t have = buffer_.size();
    buffer_.resize(have + size_);
    HR_ASSIGN_OR_RETURN(const size_t n,
                        source_->Read(absl::MakeSpan(&buffer_[have], size_)));
    buffer_.resize(have + n);
    return n > 0;
  }
  StringView held() const { return StringView(buffer_).substr(at_); }
  void Consume(size_t n) {
    at_ += n;
    offset_ += static_cast<int64_t>(n);
  }
  // Passes over n bytes; OutOfRange when there are fewer.
  Status Skip(int64_t n) {
    while (n > 0) {
      const int64_t step = std::min(n, static_cast<int64_t>(held().size()));
      Consume(static_cast<size_t>(step));
      n -= step;
      if (n == 0) break;
      HR_ASSIGN_OR_RETURN(const bool more, Fill());
      if (!more) return OutOfRange("the file ends before its records do");
    }
    return OkStatus();
  }

 private:
  const std::unique_ptr<ByteSource> source_;
  const size_t size_;
  std::string buffer_;
  size_t at_ = 0;
  int64_t offset_ = 0;
};

struct StreamFormat {
  Compression compression = Compression::kNone;
  size_t buffer = 0;  // bytes
};

// By inputs `compression` and `buffer` of an op: their names are
// compression_type and buffer_size, and a size of 0 stands for `standard`.
inline StatusOr<StreamFormat> StreamInputs(const KernelContext& c,
                                           int compression, int buffer,
                                           int64_t standard) {
  // Larger buffers read no faster, and a number from outside must not take all
  // memory.
  constexpr int64_t kMostBuffer = 64 << 20;
  StreamFormat format;
  // Old forms of ops read plain files alone: they have no such input.
  if (compression < c.num_inputs()) {
    HR_ASSIGN_OR_RETURN(const std::string name,
                        TextInput(c, compression, "compression_type"));
    HR_ASSIGN_OR_RETURN(format.compression, ParseCompression(name));
  }
  HR_ASSIGN_OR_RETURN(int64_t bytes, IntInput(c, buffer, "buffer_size"));
  if (bytes < 0) {
    return InvalidArgument("`buffer_size` must be >= 0 (0 == default)");
  }
  if (bytes == 0) bytes = standard;
  format.buffer = static_cast<size_t>(std::min(bytes, kMostBuffer));
  return format;
}

}  // namespace headrace
