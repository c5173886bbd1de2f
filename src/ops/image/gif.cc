// GIF files, animated or not:
//   "GIF8??"  width, height (uint16)  flags  background  aspect  [colours]
//   records:  0x21 label blocks                               extension
//             0x2c left, top, width, height (uint16) flags [colours] image
//             0x3b                                            end
// A block is its length in a byte and so many bytes; an empty one ends the run.
// flags: 0x80 colours follow, 2 << (flags & 7) of them; 0x40 interlaced rows.
#include <algorithm>
#include <cstring>
#include <vector>

#include "ops/image/codecs.h"

namespace headrace {
namespace {

constexpr char kCutShort[] = "Failed to read from given file";
constexpr char kDefective[] = "Image is defective, decoding aborted";
constexpr int kCodes = 4096;

struct Frame {
  int64_t left, top, width, height;
  int transparent = -1;  // the colour that shows what was there before
  StringView colors;     // red, green, blue each
  std::vector<uint8_t> pixels;
};

// The bytes of a run of blocks, without end: past it `ok` is false.
class Blocks {
 public:
  explicit Blocks(StringView* rest) : rest_(rest) {}
  // The next code of `bits`, or -1 where the run or the file ends.
  int Code(int bits) {
    while (count_ < bits) {
      if (left_ == 0 && !Begin()) return -1;
      if (rest_->empty()) return -1;
      // = |Codes fill bytes from their low bits and may reach over bytes and
      // blocks.
      window_ |= uint32_t{static_cast<uint8_t>((*rest_)[0])} << count_;
      rest_->remove_prefix(1);
      --left_;
      count_ += 8;
    }
    const int code = static_cast<int>(window_ & ((1u << bits) - 1));
    window_ >>= bits;
    count_ -= bits;
    return code;
  }
  // To what follows the run; false where the file ends before.
  bool Skip() {
    for (;;) {
      if (rest_->size() < left_) return false;
      rest_->remove_prefix(left_);
      left_ = 0;
      if (ended_) return true;
      if (!Begin() && !ended_) return false;
    }
  }

 private:
  bool Begin() {
    if (ended_ || rest_->empty()) return false;
    left_ = static_cast<uint8_t>((*rest_)[0]);
    rest_->remove_prefix(1);
    ended_ = left_ == 0;
    return !ended_;
  }
  StringView* rest_;
  size_t left_ = 0;  // of the block
  bool ended_ = false;
  uint32_t window_ = 0;
  int count_ = 0;
};

// Codes to pixels: a code is a pixel, or a code before and a pixel.
class Unpacker {
 public:
  Unpacker(int bits, size_t wanted, std::vector<uint8_t>* to)
      : bits_(bits), wanted_(wanted), to_(to) {
    Clear();
  }

  // Null, or what is wrong.
  const char* Run(Blocks& blocks) {
    const int clear = 1 << bits_, end = clear + 1;
    while (to_->size() < wanted_) {
      const int code = blocks.Code(size_);
      if (code < 0) return kCutShort;
      if (code == end) return "Image EOF detected before image complete";
      if (code == clear) {
        Clear();
        continue;
      }
      // The entry that is about to be made is known but for its last pixel.
      if (code > next_ || (code == next_ && last_ < 0)) return kDefective;
      if (code >= clear && code <= end) return kDefective;
      Take(code);
    }
    return nullptr;
  }

 private:
  void Clear() {
    // The first codes stand for the pixels, the next two for "clear" and "end".
    next_ = (1 << bits_) + 2;
    size_ = bits_ + 1;
    last_ = -1;
  }

  void Take(int code) {
    const bool own = code == next_;  // the last string and its first pixel
    int at = own ? last_ : code;
    int length = 0;
    const int literals = 1 << bits_;
    // A string is a chain from its last pixel to its first, so it comes out
    // backwards.
    for (; at >= literals; at = before_[at]) room_[length++] = pixel_[at];
    const auto first = static_cast<uint8_t>(at);
    room_[length++] = first;
    // A file may hold more pixels than its frame.
    const size_t take =
        std::min<size_t>(static_cast<size_t>(length), wanted_ - to_->size());
    for (size_t i = 0; i < take; ++i) to_->push_back(room_[length - 1 - i]);
    // The string of a code that is made by this very step ends with the pixel
    // that it begins with.
    if (own && to_->size() < wanted_) to_->push_back(first);
    // A full table stays as it is until the next "clear".
    if (last_ >= 0 && next_ < kCodes) {
      before_[next_] = static_cast<uint16_t>(last_);
      pixel_[next_] = first;
      ++next_;
      // Codes get a bit longer when the next one would not fit; 12 bits is the
      // most.
      if (next_ == 1 << size_ && size_ < 12) ++size_;
    }
    last_ = code;
  }

  const int bits_;
  const size_t wanted_;
  std::vector<uint8_t>* to_;
  int next_, size_, last_;
  uint16_t before_[kCodes];
  uint8_t pixel_[kCodes], room_[kCodes];
};

// Rows in the order of the file to those of the image.
void Straighten(Frame& frame) {
  // The four passes of interlaced files.
  constexpr int kBegin[] = {0, 4, 2, 1}, kStep[] = {8, 8, 4, 2};
  std::vector<uint8_t> straight(frame.pixels.size());
  const uint8_t* from = frame.pixels.data();
  for (int pass = 0; pass < 4; ++pass) {
    for (int64_t y = kBegin[pass]; y < frame.height; y += kStep[pass]) {
      std::memcpy(straight.data() + y * frame.width, from, frame.width);
      from += frame.width;
    }
  }
  frame.pixels = std::move(straight);
}

class GifReader {
 public:
  explicit GifReader(StringView bytes) : rest_(bytes) {}

  // Null, or what is wrong.
  const char* ReadScreen() {
    if (rest_.size() < 6) return kCutShort;
    // The signature was looked at when the format was found.
    rest_.remove_prefix(6);
    static constexpr char kNone[] = "No screen descriptor detected";
    if (rest_.size() < 7) return kNone;
    const uint8_t flags = Byte(4);
    rest_.remove_prefix(7);
    return ReadColors(flags, &colors_) ? kNone : nullptr;
  }

  // All frames; null, or what is wrong with what follows them.
  const char* ReadFrames() {
    for (;;) {
      if (rest_.empty()) return kCutShort;
      const uint8_t kind = Byte(0);
      rest_.remove_prefix(1);
      const char* wrong = nullptr;
      if (kind == 0x3b) return nullptr;
      if (kind == 0x21) {
        wrong = ReadExtension();
      } else if (kind == 0x2c) {
        wrong = ReadImage();
      } else {
        wrong = "Wrong record type detected";
      }
      if (wrong) return wrong;
    }
  }

  const std::vector<Frame>& frames() const { return frames_; }

 private:
  uint8_t Byte(size_t at) const { return static_cast<uint8_t>(rest_[at]); }
  int64_t Short(size_t at) const { return Byte(at) | Byte(at + 1) << 8; }

  const char* ReadColors(uint8_t flags, StringView* colors) {
    if ((flags & 0x80) == 0) return nullptr;
    // Three bytes for each of 2 << n colours.
    const size_t size = size_t{6} << (flags & 7);
    if (rest_.size() < size) return kCutShort;
    *colors = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return nullptr;
  }

  const char* ReadExtension() {
    // label, length, flags, delay (uint16), transparent colour
    // A graphic control extension: it holds for the next image alone. Of
    // several the first counts.
    if (rest_.size() >= 6 && Byte(0) == 0xf9 && Byte(1) == 4 && !control_) {
      control_ = true;
      transparent_ = Byte(2) & 1 ? Byte(5) : -1;
    }
    if (rest_.empty()) return kCutShort;
    rest_.remove_prefix(1);
    return Blocks(&rest_).Skip() ? nullptr : kCutShort;
  }

  const char* ReadImage() {
    if (rest_.size() < 9) return kCutShort;
    Frame frame{Short(0), Short(2), Short(4), Short(6)};
    const uint8_t flags = Byte(8);
    rest_.remove_prefix(9);
    frame.colors = colors_;
    if (const char* wrong = ReadColors(flags, &frame.colors)) return wrong;
    frame.transparent = control_ ? transparent_ : -1;
    control_ = false;
    if (frame.width == 0 || frame.height == 0) return "Unknown error";
    // A few bytes can name frames of any size, so the sum of their pixels is
    // bounded before room is made.
    room_ -= frame.width * frame.height;
    if (room_ < 0) return "Too many pixels";
    if (rest_.empty()) return kCutShort;
    const int bits = Byte(0);
    rest_.remove_prefix(1);
    if (bits < 1 || bits > 8) return kDefective;
    Blocks blocks(&rest_);
    const auto wanted = static_cast<size_t>(frame.width * frame.height);
    const char* wrong = Unpacker(bits, wanted, &frame.pixels).Run(blocks);
    if (wrong) return wrong;
    if (!blocks.Skip()) return kCutShort;
    if (flags & 0x40) Straighten(frame);
    frames_.push_back(std::move(frame));
    return nullptr;
  }

  StringView rest_, colors_;
  bool control_ = false;
  int transparent_ = -1;
  int64_t room_ = kMaxImageElements;  // pixels that may yet come
  std::vector<Frame> frames_;
};

// Lays a frame over what `canvas` ([height, width, 3]) shows.
Status Paint(const Frame& frame, int64_t height, int64_t width,
             uint8_t* canvas) {
  const int64_t colors = frame.colors.size() / 3;
  // Frames may reach over the canvas.
  const int64_t rows = std::min(frame.height, height - frame.top);
  const int64_t columns = std::min(frame.width, width - frame.left);
  for (int64_t y = 0; y < rows; ++y) {
    const uint8_t* from = frame.pixels.data() + y * frame.width;
    uint8_t* to = canvas + ((frame.top + y) * width + frame.left) * 3;
    for (int64_t x = 0; x < columns; ++x, to += 3) {
      const int color = from[x];
      if (color == frame.transparent) continue;
      if (color >= colors) {
        return InvalidArgument("found color index ", color,
                               " outside of color map range ", colors);
      }
      std::memcpy(to, frame.colors.data() + color * 3, 3);
    }
  }
  return OkStatus();
}

}  // namespace

StatusOr<Tensor> DecodeGif(StringView bytes, bool animated) {
  auto invalid = [&](auto... what) {
    return InvalidArgument("Invalid GIF data (size ", bytes.size(), "), ",
                           what...);
  };
  GifReader reader(bytes);
  if (const char* wrong = reader.ReadScreen()) {
    return invalid("failed to open gif file: ", wrong);
  }
  const char* wrong = reader.ReadFrames();
  const std::vector<Frame>& frames = reader.frames();
  // What is wrong behind whole frames is forgiven, as upstream does.
  if (frames.empty()) {
    return invalid("failed to slurp gif file: ",
                   wrong ? wrong : "No Image Descriptor detected");
  }
  int64_t height = 0, width = 0;
  // The canvas is as large as the largest frame; the size that the file's head
  // gives is not looked at.
  for (const Frame& frame : frames) {
    height = std::max(height, frame.height);
    width = std::max(width, frame.width);
  }
  const int64_t count = animated ? static_cast<int64_t>(frames.size()) : 1;
  const int64_t size = height * width * 3;  // at most 2^34
  if (size >= kMaxImageElements || count >= kMaxImageElements / size) {
    return invalid("too large: ", count, " frames of ", height, " by ", width);
  }
  HR_ASSIGN_OR_RETURN(
      Tensor image,
      Tensor::Allocate(DType::kUint8, Shape{count, height, width, 3}));
  uint8_t* to = image.data<uint8_t>();
  std::memset(to, 0, size);
  for (int64_t k = 0; k < count; ++k, to += size) {
    // Frames show what the one before left where they are transparent or
    // smaller.
    if (k > 0) std::memcpy(to, to - size, size);
    if (frames[k].colors.empty()) {
      return invalid("missing color map for frame ", k);
    }
    const Status painted = Paint(frames[k], height, width, to);
    if (!painted.ok()) return invalid(painted.message());
  }
  return image;
}

}  // namespace headrace
