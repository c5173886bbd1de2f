// Parts of tensors as members send and take them.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>

#include "distributed/wire/fields.h"
#include "tensor/tensor.h"

namespace headrace::distributed {

// Memory of a tensor that parts keep alive.
struct Source {
  std::shared_ptr<const Tensor> owner;
  const char* data = nullptr;

  Bytes Part(int64_t at, int64_t size) const {
    Bytes bytes;
    bytes.Append({owner, data + at, static_cast<size_t>(size)});
    return bytes;
  }
};
inline Source SourceOf(const Tensor& t) {
  return {std::make_shared<const Tensor>(t), static_cast<const char*>(t.raw())};
}
// Bytes [begin, end) of a stream.
struct Range {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

// Bytes of a tensor whose memory may be the caller's for the call alone: then a
// copy of them.
inline StatusOr<Source> KeptSource(const Tensor& t, Range range) {
  Source source = SourceOf(t);
  if (t.counted()) return source;
  HR_ASSIGN_OR_RETURN(const Tensor copy,
                      Tensor::Allocate(DType::kUint8, Shape{range.size()}));
  std::memcpy(copy.raw(), source.data + range.begin, range.size());
  source = SourceOf(copy);
  source.data -= range.begin;
  return source;
}

inline Status CheckSize(const Bytes& part, int64_t size) {
  if (static_cast<int64_t>(part.size()) == size) return OkStatus();
  return InvalidArgument("a member sent ", part.size(), " bytes where ", size,
                         " were due");
}

// Calls f(bytes, count) for blocks of whole elements that lie as their type
// wants, though pieces end anywhere.
template <typename F>
void ForBlocks(const Bytes& part, int64_t element, F f) {
  constexpr int64_t kBlock = 16 << 10;
  alignas(64) char block[kBlock];
  int64_t held = 0;
  for (const Bytes::Piece& p : part.pieces()) {
    const char* from = p.data;
    auto left = static_cast<int64_t>(p.size);
    while (left > 0) {
      if (held == 0 && left >= element &&
          reinterpret_cast<uintptr_t>(from) % element == 0) {
        const int64_t whole = left / element;
        f(from, whole);
        from += whole * element;
        left -= whole * element;
        continue;
      }
      const int64_t n = std::min(left, kBlock - held);
      std::memcpy(block + held, from, n);
      held += n;
      from += n;
      left -= n;
      if (held < kBlock && held % element != 0) continue;
      f(block, held / element);
      held = 0;
    }
  }
}

inline int64_t Mod(int64_t a, int64_t n) { return (a % n + n) % n; }

}  // namespace headrace::distributed
