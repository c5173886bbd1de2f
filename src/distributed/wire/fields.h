// Fields of protocol buffers' wire format, written and read around bytes that
// are not copied.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "distributed/wire/piece_reader.h"

namespace headrace::distributed {

// Wire types.
inline constexpr uint32_t kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5;

inline void PutVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) {
    out->push_back(static_cast<char>(value | 0x80));
  }
  out->push_back(static_cast<char>(value));
}

inline size_t VarintSize(uint64_t value) {
  size_t n = 1;
  for (; value >= 0x80; value >>= 7) ++n;
  return n;
}

// f(tag, value of a number or length of a text, the text or the bytes of a
// number of fixed size), for each field. Why it is no message; null where it is
// one.
template <typename F>
const char* ForFields(const Bytes& bytes, F f) {
  PieceReader reader(bytes);
  while (reader.left() > 0) {
    uint64_t tag, value = 0;
    if (!reader.ReadVarint(&tag) || tag > UINT32_MAX || tag >> 3 == 0) {
      return "no field";
    }
    Bytes text;
    bool read = false;
    switch (tag & 7) {
      case kVarint:
        read = reader.ReadVarint(&value);
        break;
      case kFixed64:
        read = reader.Take(8, &text);
        break;
      case kFixed32:
        read = reader.Take(4, &text);
        break;
      case kLength:
        read = reader.ReadVarint(&value) && reader.Take(value, &text);
        break;
    }
    if (!read) return "it is cut short";
    f(static_cast<uint32_t>(tag), value, std::move(text));
  }
  return nullptr;
}

// To where there is room for them.
inline void CopyTo(const Bytes& bytes, char* out) {
  for (const Bytes::Piece& piece : bytes.pieces()) {
    std::memcpy(out, piece.data, piece.size);
    out += piece.size;
  }
}

}  // namespace headrace::distributed
