#include "ops/math/loops/strided.h"

#include <cstring>

#include "base/thread_pool.h"

namespace headrace {
namespace {

struct Sixteen {
  uint64_t a, b;
};

template <typename W>
void CopyLine(const char* from, int64_t from_stride, char* to,
              int64_t to_stride, int64_t n) {
  const W* x = reinterpret_cast<const W*>(from);
  W* y = reinterpret_cast<W*>(to);
  if (from_stride == 1 && to_stride == 1) {
    std::memcpy(y, x, n * sizeof(W));
    return;
  }
  for (int64_t i = 0; i < n; ++i) y[i * to_stride] = x[i * from_stride];
}

using LineFn = void (*)(const char*, int64_t, char*, int64_t, int64_t);
LineFn LineOf(int size) {
  switch (size) {
    case 1:
      return CopyLine<uint8_t>;
    case 2:
      return CopyLine<uint16_t>;
    case 4:
      return CopyLine<uint32_t>;
    case 8:
      return CopyLine<uint64_t>;
    default:
      return CopyLine<Sixteen>;
  }
}

}  // namespace

void CopyStrided(const Sizes& dims, int size, const void* from,
                 const Sizes& from_strides, void* to, const Sizes& to_strides) {
  const int rank = static_cast<int>(dims.size());
  const LineFn line = LineOf(size);
  int64_t lines = 1;
  for (int i = 0; i + 1 < rank; ++i) lines *= dims[i];
  const int64_t n = rank ? dims[rank - 1] : 1;
  const int64_t fs = rank ? from_strides[rank - 1] : 1;
  const int64_t ts = rank ? to_strides[rank - 1] : 1;
  if (n == 0) return;
  ParallelFor(lines, n * 1.0 + 3, [&](int64_t begin, int64_t end) {
    for (int64_t l = begin; l < end; ++l) {
      int64_t rest = l, at_from = 0, at_to = 0;
      for (int i = rank - 2; i >= 0; --i) {
        const int64_t k = rest % dims[i];
        rest /= dims[i];
        at_from += k * from_strides[i];
        at_to += k * to_strides[i];
      }
      line(static_cast<const char*>(from) + at_from * size, fs,
           static_cast<char*>(to) + at_to * size, ts, n);
    }
  });
}

Sizes DenseStrides(const Sizes& dims) {
  Sizes strides(dims.size());
  int64_t stride = 1;
  for (int i = static_cast<int>(dims.size()) - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= dims[i];
  }
  return strides;
}

bool Collapse(const Sizes& dims, const Sizes& strides, int64_t* stride) {
  int64_t next = -1;  // what the next stride outwards must be
  *stride = 1;
  for (int i = static_cast<int>(dims.size()) - 1; i >= 0; --i) {
    if (dims[i] == 1) continue;
    if (next < 0) {
      *stride = strides[i];
    } else if (strides[i] != next) {
      return false;
    }
    next = strides[i] * dims[i];
  }
  return true;
}

}  // namespace headrace
