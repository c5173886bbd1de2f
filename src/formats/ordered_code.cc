#include "formats/ordered_code.h"

#include <bit>

namespace headrace {
namespace {

// The bytes a signed number takes: bytes of n * 7 - 1 bits and a sign.
int SignedLength(int64_t v) {
  const uint64_t magnitude = static_cast<uint64_t>(v < 0 ? ~v : v);
  const int bits = 64 - std::countl_zero(magnitude | 1);
  return bits / 7 + 1;
}

// The first two bytes of the header: n ones, from the top.
constexpr uint64_t HeaderOnes(int n) { return (0xffffu << (16 - n)) & 0xffff; }

}  // namespace

void PutOrderedNumber(std::string* out, uint64_t v) {
  // The count of bytes first, so that longer numbers sort behind shorter ones.
  const int n = (64 - std::countl_zero(v) + 7) / 8;
  out->push_back(static_cast<char>(n));
  for (int i = n - 1; i >= 0; --i)
    out->push_back(static_cast<char>(v >> 8 * i));
}

bool GetOrderedNumber(absl::string_view* in, uint64_t* v) {
  if (in->empty()) return false;
  const size_t n = static_cast<unsigned char>((*in)[0]);
  if (n > 8 || in->size() < n + 1) return false;
  uint64_t result = 0;
  for (size_t i = 1; i <= n; ++i) {
    result = result << 8 | static_cast<unsigned char>((*in)[i]);
  }
  if (n > 0 && (*in)[1] == 0) return false;  // not the shortest form
  in->remove_prefix(n + 1);
  *v = result;
  return true;
}

void PutOrderedSigned(std::string* out, int64_t v) {
  const int n = SignedLength(v);
  // Ten bytes of two's complement hold any header and any number.
  unsigned char bytes[10];
  uint64_t rest = static_cast<uint64_t>(v);
  for (int i = 9; i >= 2; --i, rest >>= 8) bytes[i] = rest & 0xff;
  bytes[0] = bytes[1] = v < 0 ? 0xff : 0;
  unsigned char* const first = bytes + 10 - n;
  const uint64_t header = HeaderOnes(n);
  // The ones in front tell the length: more of them sort later, and for
  // negative numbers (inverted) earlier.
  first[0] ^= header >> 8;
  if (n > 1) first[1] ^= header & 0xff;
  out->append(reinterpret_cast<char*>(first), n);
}

bool GetOrderedSigned(absl::string_view* in, int64_t* v) {
  if (in->empty()) return false;
  const auto byte = [&](size_t i) {
    return static_cast<unsigned char>((*in)[i]);
  };
  const bool negative = byte(0) < 0x80;
  const unsigned char flip = negative ? 0xff : 0;
  unsigned header = (byte(0) ^ flip) << 8;
  if (header == 0xff00) {
    if (in->size() < 2) return false;
    header |= byte(1) ^ flip;
  }
  const int n = std::countl_one(static_cast<uint16_t>(header));
  if (n > 10 || in->size() < static_cast<size_t>(n)) return false;
  uint64_t result = negative ? ~uint64_t{0} : 0;
  const uint64_t ones = HeaderOnes(n);
  for (int i = 0; i < n; ++i) {
    const unsigned char head = i == 0 ? ones >> 8 : i == 1 ? ones & 0xff : 0;
    const unsigned char b = byte(i) ^ head;
    // Bytes before the last eight only repeat the sign.
    if (i < n - 8 && b != flip) return false;
    result = result << 8 | b;
  }
  const int64_t number = static_cast<int64_t>(result);
  if ((number < 0) != negative || SignedLength(number) != n) return false;
  in->remove_prefix(n);
  *v = number;
  return true;
}

void PutOrderedString(std::string* out, absl::string_view s) {
  // 0 and 255 are escaped so that the end mark (0, 1) sorts before any byte
  // that a longer string could have there.
  for (const char c : s) {
    out->push_back(c);
    if (c == '\0') out->push_back('\xff');
    if (c == '\xff') out->push_back('\0');
  }
  out->append("\0\1", 2);
}

bool GetOrderedString(absl::string_view* in, std::string* s) {
  s->clear();
  for (size_t i = 0; i + 1 < in->size(); ++i) {
    const char c = (*in)[i];
    if (c != '\0' && c != '\xff') {
      s->push_back(c);
      continue;
    }
    const char next = (*in)[++i];
    if (c == '\0' && next == '\1') {
      in->remove_prefix(i + 1);
      return true;
    }
    if (next != (c == '\0' ? '\xff' : '\0')) return false;
    s->push_back(c);
  }
  return false;
}

}  // namespace headrace
