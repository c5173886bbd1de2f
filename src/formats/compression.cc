#include "formats/compression.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "formats/snappy.h"

namespace headrace {
namespace {

// Read and unpacked at a time: a system call costs little beside 256 KiB, which
// stay in the cache.
constexpr size_t kBufferBytes = 256 << 10;
// zlib's numbers: a window of 2^15 bytes, the most there is, reads any file; 16
// more mean gzip's header.
constexpr int kMostWindowBits = 15, kGzipBits = 16;

// zlib's name for a format: the bits of the window, and 16 more for gzip.
int WindowBits(Compression c, int bits = kMostWindowBits) {
  return c == Compression::kGzip ? bits + kGzipBits : bits;
}

class PlainSource : public ByteSource {
 public:
  PlainSource(const RandomAccessFile* file, uint64_t offset)
      : file_(file), offset_(offset) {}

  StatusOr<size_t> Read(absl::Span<char> out) override {
    size_t done = 0;
    while (done < out.size()) {
      if (begin_ == end_) {
        // Large reads go straight into the caller's memory, past the buffer.
        if (out.size() - done >= kBufferBytes) {
          HR_ASSIGN_OR_RETURN(const size_t n,
                              file_->ReadSome(offset_, out.subspan(done)));
          offset_ += n;
          return done + n;
        }
        buffer_.resize(kBufferBytes);
        HR_ASSIGN_OR_RETURN(end_,
                            file_->ReadSome(offset_, absl::MakeSpan(buffer_)));
        offset_ += end_;
        begin_ = 0;
        if (end_ == 0) break;
      }
      const size_t n = std::min(out.size() - done, end_ - begin_);
      std::memcpy(out.data() + done, buffer_.data() + begin_, n);
      begin_ += n;
      done += n;
    }
    return done;
  }

  uint64_t MostLeft() const override {
    const uint64_t size = file_->size();
    // A file may have become shorter since.
    return (size > offset_ ? size - offset_ : 0) + (end_ - begin_);
  }

 private:
  const RandomAccessFile* const file_;
  uint64_t offset_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;
};

class InflateSource : public ByteSource {
 public:
  InflateSource(const RandomAccessFile* file, Compression compression,
                uint64_t offset)
      : packed_(file, offset), path_(file->path()), buffer_(kBufferBytes) {
    ready_ = inflateInit2(&stream_, WindowBits(compression)) == Z_OK;
  }
  ~InflateSource() override {
    if (ready_) inflateEnd(&stream_);
  }

  StatusOr<size_t> Read(absl::Span<char> out) override {
    if (!ready_) return ResourceExhausted(path_, ": no memory to unpack");
    size_t done = 0;
    while (done < out.size()) {
      if (stream_.avail_in == 0) {
        HR_ASSIGN_OR_RETURN(const size_t n,
                            packed_.Read(absl::MakeSpan(buffer_)));
        // The end is only right between two packed streams.
        if (n == 0 && between_) break;
        if (n == 0) return DataLoss(path_, ": the packed bytes end too early");
        stream_.next_in = reinterpret_cast<Bytef*>(buffer_.data());
        stream_.avail_in = static_cast<uInt>(n);
      }
      // Several packed streams, one behind the other, count as one.
      if (between_ && inflateReset(&stream_) != Z_OK) return Broken();
      between_ = false;
      // zlib counts in 32 bits.
      const size_t room = std::min<size_t>(out.size() - done, 1u << 30);
      stream_.next_out = reinterpret_cast<Bytef*>(out.data() + done);
      stream_.avail_out = static_cast<uInt>(room);
      const int result = inflate(&stream_, Z_NO_FLUSH);
      done += room - stream_.avail_out;
      if (result == Z_STREAM_END) between_ = true;
      // Not an error: zlib could not go on without more input or room, and gets
      // them in the next turn.
      if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
        return Broken();
      }
    }
    return done;
  }

  // How much packed bytes unpack to is not known before.
  uint64_t MostLeft() const override { return UINT64_MAX; }

 private:
  Status Broken() const {
    return DataLoss(path_, ": the packed bytes are damaged: ",
                    stream_.msg == nullptr ? "?" : stream_.msg);
  }

  PlainSource packed_;
  const std::string path_;
  std::vector<char> buffer_;
  z_stream stream_ = {};
  bool ready_ = false;
  bool between_ = true;  // at the beginning, or behind the end, of a stream
};

// Blocks, each behind its packed length: four bytes, the highest first.
constexpr size_t kBlockHead = 4;
constexpr size_t kMostBlock = 64 << 20;

class SnappySource : public ByteSource {
 public:
  SnappySource(const RandomAccessFile* file, uint64_t offset)
      : packed_(file, offset), path_(file->path()) {}

  StatusOr<size_t> Read(absl::Span<char> out) override {
    size_t done = 0;
    while (done < out.size()) {
      if (at_ == block_.size()) {
        HR_ASSIGN_OR_RETURN(const bool more, NextBlock());
        if (!more) break;
      }
      const size_t n = std::min(out.size() - done, block_.size() - at_);
      std::memcpy(out.data() + done, block_.data() + at_, n);
      at_ += n;
      done += n;
    }
    return done;
  }

  uint64_t MostLeft() const override { return UINT64_MAX; }

 private:
  // False at the end of the file.
  StatusOr<bool> NextBlock() {
    unsigned char head[kBlockHead];
    HR_ASSIGN_OR_RETURN(const size_t n,
                        packed_.Read(absl::MakeSpan(
                            reinterpret_cast<char*>(head), kBlockHead)));
    if (n == 0) return false;
    const size_t size = size_t{head[0]} << 24 | size_t{head[1]} << 16 |
                        size_t{head[2]} << 8 | size_t{head[3]};
    // The length comes from the file: before memory is taken.
    if (n < kBlockHead || size > kMostBlock || size > packed_.MostLeft()) {
      return DataLoss(path_, ": the packed bytes end too early");
    }
    std::string bytes(size, 0);
    HR_ASSIGN_OR_RETURN(const size_t got,
                        packed_.Read(absl::MakeSpan(&bytes[0], size)));
    at_ = 0;
    block_.clear();
    if (got < size || !SnappyUnpack(bytes, &block_)) {
      return DataLoss(path_, ": the packed bytes are damaged");
    }
    return true;
  }

  PlainSource packed_;
  const std::string path_;
  std::string block_;
  size_t at_ = 0;
};

class PlainSink : public ByteSink {
 public:
  explicit PlainSink(WritableFile* file) : file_(file) {}

  Status Write(StringView data) override {
    if (buffer_.size() + data.size() < kBufferBytes) {
      buffer_.append(data.data(), data.size());
      return OkStatus();
    }
    HR_RETURN_IF_ERROR(Flush());
    // Large writes need no gathering.
    if (data.size() >= kBufferBytes) return file_->Append(data);
    buffer_.assign(data.data(), data.size());
    return OkStatus();
  }
  Status Flush() override {
    if (buffer_.empty()) return OkStatus();
    const Status status = file_->Append(buffer_);
    buffer_.clear();
    return status;
  }
  Status Finish() override { return Flush(); }

 private:
  WritableFile* const file_;
  std::string buffer_;
};

class DeflateSink : public ByteSink {
 public:
  DeflateSink(WritableFile* file, Compression compression,
              const DeflateOptions& o)
      : file_(file), buffer_(kBufferBytes) {
    ready_ = deflateInit2(&stream_, o.level, Z_DEFLATED,
                          WindowBits(compression, o.window_bits),
                          o.memory_level, o.strategy) == Z_OK;
  }
  ~DeflateSink() override {
    if (ready_) deflateEnd(&stream_);
  }
  bool ready() const { return ready_; }

  Status Write(StringView data) override {
    while (!data.empty()) {
      // zlib counts in 32 bits.
      const size_t n = std::min<size_t>(data.size(), 1u << 30);
      HR_RETURN_IF_ERROR(Run(data.substr(0, n), Z_NO_FLUSH));
      data.remove_prefix(n);
    }
    return OkStatus();
  }
  // All that was written can be unpacked by readers from here on; it costs a
  // few bytes.
  Status Flush() override { return Run("", Z_SYNC_FLUSH); }
  Status Finish() override { return Run("", Z_FINISH); }

 private:
  Status Run(StringView data, int flush) {
    // zlib's interface has no const; input is only read.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
    stream_.avail_in = static_cast<uInt>(data.size());
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(buffer_.data());
      stream_.avail_out = static_cast<uInt>(buffer_.size());
      if (deflate(&stream_, flush) == Z_STREAM_ERROR) {
        return Internal("zlib: the stream is finished already");
      }
      const size_t made = buffer_.size() - stream_.avail_out;
      if (made > 0) {
        HR_RETURN_IF_ERROR(file_->Append(StringView(buffer_.data(), made)));
      }
    } while (stream_.avail_out == 0);
    return OkStatus();
  }

  WritableFile* const file_;
  std::vector<char> buffer_;
  z_stream stream_ = {};
  bool ready_ = false;
};

class SnappySink : public ByteSink {
  // A full buffer may mean that there is more to come.
 public:
  explicit SnappySink(WritableFile* file) : file_(file) {}

  Status Write(StringView data) override {
    while (!data.empty()) {
      const size_t n = std::min(data.size(), kBufferBytes - block_.size());
      block_.append(data.data(), n);
      data.remove_prefix(n);
      if (block_.size() == kBufferBytes) HR_RETURN_IF_ERROR(Flush());
    }
    return OkStatus();
  }
  Status Flush() override {
    if (block_.empty()) return OkStatus();
    std::string packed;
    SnappyPack(block_, &packed);
    block_.clear();
    const uint32_t size = static_cast<uint32_t>(packed.size());
    const char head[kBlockHead] = {
        static_cast<char>(size >> 24), static_cast<char>(size >> 16),
        static_cast<char>(size >> 8), static_cast<char>(size)};
    HR_RETURN_IF_ERROR(file_->Append(StringView(head, kBlockHead)));
    return file_->Append(packed);
  }
  Status Finish() override { return Flush(); }

 private:
  WritableFile* const file_;
  std::string block_;
};

}  // namespace

StatusOr<Compression> ParseCompression(StringView name) {
  if (name.empty()) return Compression::kNone;
  if (name == "GZIP") return Compression::kGzip;
  if (name == "ZLIB") return Compression::kZlib;
  if (name == "SNAPPY") return Compression::kSnappy;
  return InvalidArgument("Unsupported compression_type: ", name, ".");
}

std::unique_ptr<ByteSource> OpenByteSource(const RandomAccessFile* file,
                                           Compression compression,
                                           uint64_t offset) {
  if (compression == Compression::kNone) {
    return std::make_unique<PlainSource>(file, offset);
  }
  if (compression == Compression::kSnappy) {
    return std::make_unique<SnappySource>(file, offset);
  }
  return std::make_unique<InflateSource>(file, compression, offset);
}

StatusOr<std::unique_ptr<ByteSink>> OpenByteSink(WritableFile* file,
                                                 Compression compression,
                                                 const DeflateOptions& o) {
  if (compression == Compression::kNone) {
    return std::make_unique<PlainSink>(file);
  }
  if (compression == Compression::kSnappy) {
    return std::make_unique<SnappySink>(file);
  }
  const auto check = [](StringView what, int value, int low, int high) {
    if (value >= low && value <= high) return OkStatus();
    return InvalidArgument("compression: ", what, " of ", value, ", not in [",
                           low, ", ", high, "]");
  };
  HR_RETURN_IF_ERROR(check("a level", o.level, -1, 9));
  HR_RETURN_IF_ERROR(check("window bits", o.window_bits, 9, kMostWindowBits));
  HR_RETURN_IF_ERROR(check("a memory level", o.memory_level, 1, 9));
  HR_RETURN_IF_ERROR(check("a strategy", o.strategy, 0, 4));
  auto sink = std::make_unique<DeflateSink>(file, compression, o);
  if (!sink->ready()) return ResourceExhausted("zlib: no memory to pack");
  return sink;
}

}  // namespace headrace
