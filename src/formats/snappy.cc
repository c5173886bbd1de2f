// Layout:
//   size of the result:varint, then elements; the low two bits of an element's
//   first byte are its kind:
//     0  literal: upper six bits are length - 1, or 60..63 say that the length
//        - 1 follows in 1..4 bytes; then the bytes
//     1  copy: length 4 + 3 bits, offset 3 bits (high) and one byte
//     2  copy: length 1 + 6 bits, offset in two bytes
//     3  copy: length 1 + 6 bits, offset in four bytes
#include "formats/snappy.h"

#include <cstdint>

#include "base/coding.h"

namespace headrace {
namespace {

// No element makes more of its bytes than 64 of three: what claims more is
// damaged, and known to be before memory is taken for it.
constexpr uint64_t kMostGrowth = 22;

// Takes `n` little endian bytes.
bool GetNumber(absl::string_view* in, int n, uint32_t* v) {
  if (in->size() < static_cast<size_t>(n)) return false;
  *v = 0;
  for (int i = 0; i < n; ++i) {
    *v |= static_cast<uint32_t>(static_cast<unsigned char>((*in)[i])) << 8 * i;
  }
  in->remove_prefix(n);
  return true;
}

bool Literal(absl::string_view* in, unsigned tag, uint64_t room,
             std::string* out) {
  uint64_t length = tag >> 2;
  if (length >= 60) {
    uint32_t long_length;
    if (!GetNumber(in, static_cast<int>(length) - 59, &long_length)) {
      return false;
    }
    length = long_length;
  }
  absl::string_view bytes;
  // Counted in 64 bits: 2^32 - 1 and one more does not begin at 0 again.
  if (++length > room || !GetBytes(in, length, &bytes)) return false;
  out->append(bytes.data(), bytes.size());
  return true;
}

bool Copy(absl::string_view* in, unsigned tag, uint64_t room,
          std::string* out) {
  uint32_t offset, length = (tag >> 2) + 1;
  if ((tag & 3) == 1) {
    if (!GetNumber(in, 1, &offset)) return false;
    length = 4 + ((tag >> 2) & 7);
    offset |= (tag >> 5) << 8;
  } else if (!GetNumber(in, (tag & 3) == 2 ? 2 : 4, &offset)) {
    return false;
  }
  if (offset == 0 || offset > out->size() || length > room) return false;
  // Byte by byte: with an offset below the length, bytes that the copy itself
  // puts there are repeated.
  for (; length > 0; --length) out->push_back((*out)[out->size() - offset]);
  return true;
}

}  // namespace

bool SnappyUnpack(absl::string_view in, std::string* out) {
  out->clear();
  uint32_t size;
  if (!GetVarint32(&in, &size) || size > in.size() * kMostGrowth) return false;
  out->reserve(size);
  while (!in.empty()) {
    const unsigned tag = static_cast<unsigned char>(in[0]);
    in.remove_prefix(1);
    const uint64_t room = size - out->size();
    if (!((tag & 3) == 0 ? Literal(&in, tag, room, out)
                         : Copy(&in, tag, room, out))) {
      return false;
    }
  }
  return out->size() == size;
}

void SnappyPack(absl::string_view in, std::string* out) {
  // Literals alone, as long as two bytes of length say: what any reader
  // unpacks, written at memory's speed. Packing would gain little: states and
  // tensors are mostly numbers.
  constexpr size_t kLiteral = 1 << 16;
  constexpr char kTwoBytesOfLength = static_cast<char>(61 << 2);
  out->clear();
  PutVarint32(out, static_cast<uint32_t>(in.size()));
  for (size_t at = 0; at < in.size(); at += kLiteral) {
    const absl::string_view part = in.substr(at, kLiteral);
    const size_t length = part.size() - 1;
    out->push_back(kTwoBytesOfLength);
    out->push_back(static_cast<char>(length & 255));
    out->push_back(static_cast<char>(length >> 8));
    out->append(part.data(), part.size());
  }
}

}  // namespace headrace
