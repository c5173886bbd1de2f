#include "serving/http/inflate.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

namespace headrace::serving {
namespace {

// zlib's number for the largest window in gzip's form.
constexpr int kGzipWindow = 16 + MAX_WBITS;
constexpr size_t kFirstBytes = 16 << 10;

class GzipReader {
 public:
  GzipReader() { ready_ = inflateInit2(&stream_, kGzipWindow) == Z_OK; }
  ~GzipReader() {
    if (ready_) inflateEnd(&stream_);
  }
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  Status Read(StringView in, size_t most, std::string* out) {
    if (!ready_) return ResourceExhausted("out of memory in inflating a body");
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    size_t left = in.size(), size = 0;
    for (;;) {
      if (size == out->size()) {
        // One byte more than there may be tells that there is more.
        if (size > most) {
          return ResourceExhausted("the body inflates to more than ", most,
                                   " bytes");
        }
        out->resize(std::min(most + 1, std::max(kFirstBytes, 2 * size)));
      }
      constexpr size_t kTurn = std::numeric_limits<uInt>::max();
      const auto feed = static_cast<uInt>(std::min(left, kTurn));
      const auto room = static_cast<uInt>(std::min(out->size() - size, kTurn));
      stream_.avail_in = feed;
      stream_.next_out = reinterpret_cast<Bytef*>(out->data() + size);
      stream_.avail_out = room;
      const int result = inflate(&stream_, Z_NO_FLUSH);
      left -= feed - stream_.avail_in;
      size += room - stream_.avail_out;
      if (result == Z_STREAM_END) {
        if (left == 0) break;
        if (inflateReset(&stream_) != Z_OK) return Damaged();
      } else if (result == Z_MEM_ERROR) {
        return ResourceExhausted("out of memory in inflating a body");
      } else if (result != Z_OK) {
        return Damaged();
      }
    }
    if (size > most) {
      return ResourceExhausted("the body inflates to more than ", most,
                               " bytes");
    }
    out->resize(size);
    return OkStatus();
  }

 private:
  static Status Damaged() {
    return InvalidArgument("the body is no whole gzip stream");
  }

  z_stream stream_{};
  bool ready_ = false;
};

}  // namespace

Status InflateGzip(StringView in, size_t most, std::string* out) {
  out->clear();
  return GzipReader().Read(in, most, out);
}

}  // namespace headrace::serving
