#include "base/coding.h"

namespace headrace {

void PutVarint64(std::string* out, uint64_t v) {
  char bytes[kMaxVarint64Bytes];
  int n = 0;
  while (v >= 0x80) {
    bytes[n++] = static_cast<char>(v | 0x80);
    v >>= 7;
  }
  bytes[n++] = static_cast<char>(v);
  out->append(bytes, n);
}

int VarintLength(uint64_t v) {
  const int bits = 64 - std::countl_zero(v | 1);
  return (bits + 6) / 7;
}

bool GetFixed32(absl::string_view* in, uint32_t* v) {
  if (in->size() < 4) return false;
  *v = LoadFixed32(in->data());
  in->remove_prefix(4);
  return true;
}

bool GetFixed64(absl::string_view* in, uint64_t* v) {
  if (in->size() < 8) return false;
  *v = LoadFixed64(in->data());
  in->remove_prefix(8);
  return true;
}

bool GetVarint64(absl::string_view* in, uint64_t* v) {
  uint64_t result = 0;
  for (size_t i = 0; i < in->size() && i < kMaxVarint64Bytes; ++i) {
    const uint64_t byte = static_cast<unsigned char>((*in)[i]);
    if (i == kMaxVarint64Bytes - 1 && byte > 1) return false;
    result |= (byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      *v = result;
      in->remove_prefix(i + 1);
      return true;
    }
  }
  return false;
}

bool GetVarint32(absl::string_view* in, uint32_t* v) {
  absl::string_view rest = *in;
  uint64_t wide;
  if (!GetVarint64(&rest, &wide) || wide > UINT32_MAX) return false;
  *v = static_cast<uint32_t>(wide);
  *in = rest;
  return true;
}

bool GetBytes(absl::string_view* in, uint64_t n, absl::string_view* out) {
  if (n > in->size()) return false;
  *out = in->substr(0, n);
  in->remove_prefix(n);
  return true;
}

}  // namespace headrace
