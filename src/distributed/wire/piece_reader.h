// Reading protocol buffers' wire format from bytes in pieces.
#pragma once

#include <algorithm>
#include <cstdint>

#include "distributed/wire/bytes.h"

namespace headrace::distributed {

// False from any of it: there are not so many bytes. The bytes outlive it.
class PieceReader {
 public:
  explicit PieceReader(const Bytes& bytes)
      : bytes_(bytes), left_(bytes.size()) {}

  size_t left() const { return left_; }
  bool ReadByte(uint8_t* byte) {
    if (left_ == 0) return false;
    *byte = static_cast<uint8_t>(piece().data[at_]);
    Advance(1);
    return true;
  }
  // Also false where it is longer than 64 bits are.
  bool ReadVarint(uint64_t* value) {
    *value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      uint8_t byte;
      if (!ReadByte(&byte)) return false;
      *value |= uint64_t{byte & 0x7fu} << std::min(shift, 63);
      if ((byte & 0x80) == 0) return shift < 63 || byte <= 1;
    }
    return false;
  }
  // Adds so many bytes to *out, without a copy.
  bool Take(size_t size, Bytes* out) {
    if (size > left_) return false;
    while (size > 0) {
      const size_t n = std::min(size, piece().size - at_);
      out->Append({piece().owner, piece().data + at_, n});
      Advance(n);
      size -= n;
    }
    return true;
  }

 private:
  const Bytes::Piece& piece() const { return bytes_.pieces()[index_]; }
  void Advance(size_t n) {
    at_ += n;
    left_ -= n;
    if (at_ == piece().size) {
      at_ = 0;
      ++index_;
    }
  }
  const Bytes& bytes_;
  size_t left_;
  size_t index_ = 0, at_ = 0;
};

}  // namespace headrace::distributed
