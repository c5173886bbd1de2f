// Numbers as bytes: fixed width little endian, and varints (seven bits a byte,
// low bits first, the top bit says that more follow). The Get functions take
// from the front of `*in`, and leave it as it was when they return false:
// too few bytes, or a varint that does not fit its type.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/string_view.h"

namespace headrace {

static_assert(std::endian::native == std::endian::little,
              "numbers are copied to bytes as they lie in memory");

inline constexpr int kMaxVarint64Bytes = 10;

inline void StoreFixed32(char* p, uint32_t v) { std::memcpy(p, &v, 4); }
inline void StoreFixed64(char* p, uint64_t v) { std::memcpy(p, &v, 8); }

inline uint32_t LoadFixed32(const char* p) {
  uint32_t v;
  std::memcpy(&v, p, 4);
  return v;
}

inline uint64_t LoadFixed64(const char* p) {
  uint64_t v;
  std::memcpy(&v, p, 8);
  return v;
}

inline void PutFixed32(std::string* out, uint32_t v) {
  out->append(reinterpret_cast<const char*>(&v), 4);
}

inline void PutFixed64(std::string* out, uint64_t v) {
  out->append(reinterpret_cast<const char*>(&v), 8);
}

void PutVarint64(std::string* out, uint64_t v);
inline void PutVarint32(std::string* out, uint32_t v) { PutVarint64(out, v); }

// The bytes a varint of `v` takes, 1 to 10.
int VarintLength(uint64_t v);

bool GetFixed32(absl::string_view* in, uint32_t* v);
bool GetFixed64(absl::string_view* in, uint64_t* v);
bool GetVarint32(absl::string_view* in, uint32_t* v);
bool GetVarint64(absl::string_view* in, uint64_t* v);

// Takes `n` bytes.
bool GetBytes(absl::string_view* in, uint64_t n, absl::string_view* out);

}  // namespace headrace
