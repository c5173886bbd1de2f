// The places of a row's largest elements, and gradients back to such places.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/cancellation.h"
#include "base/threads.h"
#include "op/op.h"

namespace headrace {

// Falling order; NaN first.
template <typename W>
bool Above(W a, W b) {
  // NaN counts as above all numbers: an order needs a place for it.
  return a > b || (a != a && b == b);
}

// A key whose rising order is the falling order of 32-bit numbers.
inline uint32_t KeyOf(float v) {
  if (v == 0) v = 0.0f;  // both zeros are equal
  const uint32_t b = __builtin_bit_cast(uint32_t, v);
  if (v != v) return 0;
  // The bits of floats rise with positive numbers and fall with negative ones:
  // all bits of these are turned, of those the sign's; then all once more for
  // falling order.
  return ~(b & 0x80000000 ? ~b : b | 0x80000000);
}
inline uint32_t KeyOf(int32_t v) {
  return ~(static_cast<uint32_t>(v) ^ 0x80000000);
}
inline uint32_t KeyOf(uint32_t v) { return ~v; }

template <typename T>
inline constexpr bool kHasKey =
    std::is_same_v<T, float> || std::is_same_v<T, int32_t> ||
    std::is_same_v<T, uint32_t>;

// Positions of a whole row in falling order, by counting 11 bits at a time.
template <typename T>
void RadixSort(const T* x, int64_t n, std::vector<uint64_t>& a,
               std::vector<uint64_t>& b) {
  a.resize(n);
  b.resize(n);
  // 11 bits three times: the counts (24 KiB) stay in the first cache.
  uint32_t counts[3][2048] = {};
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t key = KeyOf(x[i]);
    // Key and place in one number, so that elements move together; equal keys
    // keep their order.
    a[i] = uint64_t{key} << 32 | static_cast<uint64_t>(i);
    ++counts[0][key & 2047];
    ++counts[1][key >> 11 & 2047];
    ++counts[2][key >> 22];
  }
  for (int pass = 0; pass < 3; ++pass) {
    const int shift = 32 + pass * 11;
    uint32_t at = 0;
    for (uint32_t& count : counts[pass]) {
      const uint32_t c = count;
      count = at;
      at += c;
    }
    for (uint64_t e : a) b[counts[pass][e >> shift & 2047]++] = e;
    a.swap(b);
  }
}

// Few of many: a short sorted list of the best so far.
template <typename T>
void FewOfRow(const T* x, int64_t n, int64_t k, int64_t* places) {
  using W = ComputeType<T>;
  std::vector<W> best(k);
  int64_t have = 0;
  auto insert = [&](W v, int64_t i) {
    int64_t at = have < k ? have++ : k - 1;
    for (; at > 0 && Above(v, best[at - 1]); --at) {
      best[at] = best[at - 1];
      places[at] = places[at - 1];
    }
    best[at] = v;
    places[at] = i;
  };
  int64_t i = 0;
  for (; i < k; ++i) insert(static_cast<W>(x[i]), i);
  // Most blocks hold nothing that is among the best so far: 64 comparisons
  // without a branch pass over one.
  constexpr int kBlock = 64;
  for (; i + kBlock <= n; i += kBlock) {
    // Read once a block; what is inserted meanwhile only raises it.
    const W least = best[k - 1];
    int any = 0;
    for (int j = 0; j < kBlock; ++j) {
      const W v = static_cast<W>(x[i + j]);
      any |= (v > least) | (v != v);
    }
    if (!any) continue;
    for (int j = 0; j < kBlock; ++j) {
      const W v = static_cast<W>(x[i + j]);
      if (Above(v, best[k - 1])) insert(v, i + j);
    }
  }
  for (; i < n; ++i) {
    const W v = static_cast<W>(x[i]);
    if (Above(v, best[k - 1])) insert(v, i);
  }
}

// std::sort, cut into pieces that a stop may wait for.
template <typename It, typename Before>
void SortByPieces(It begin, It end, const Before& before) {
  // 131,072 elements at some 60 ns each: 8 ms between two looks at a stop.
  constexpr int64_t kPiece = 1 << 17;
  const int64_t n = end - begin;
  StopMeter meter;
  for (int64_t i = 0; i < n; i += kPiece) {
    meter.Add(60.0 * kPiece);
    std::sort(begin + i, begin + std::min(n, i + kPiece), before);
  }
  for (int64_t size = kPiece; size < n; size *= 2) {
    for (int64_t i = 0; i + size < n; i += 2 * size) {
      meter.Add(10.0 * static_cast<double>(size));
      std::inplace_merge(begin + i, begin + i + size,
                         begin + std::min(n, i + 2 * size), before);
    }
  }
}

// A thread's room for RadixSort.
struct SortRoom {
  std::vector<uint64_t> a, b;
};

template <typename T>
void ManyOfRow(const T* x, int64_t n, int64_t k, int64_t* places) {
  using W = ComputeType<T>;
  if constexpr (kHasKey<T>) {
    // Where a quarter or more is wanted, counting beats selection.
    if (n >= 512 && n < (int64_t{1} << 32) && k * 4 >= n) {
      // A thread's own, kept for its next rows.
      SortRoom& room = OwnObject<SortRoom>();
      RadixSort(x, n, room.a, room.b);
      for (int64_t i = 0; i < k; ++i) places[i] = room.a[i] & 0xffffffff;
      return;
    }
  }
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), int64_t{0});
  auto before = [x](int64_t a, int64_t b) {
    const W u = static_cast<W>(x[a]), v = static_cast<W>(x[b]);
    if (Above(u, v)) return true;
    // Of equal elements the first comes first: places break ties.
    return Above(v, u) ? false : a < b;
  };
  if (k < n) {
    // The k best in front, in any order; these alone are sorted.
    std::nth_element(order.begin(), order.begin() + k, order.end(), before);
  }
  SortByPieces(order.begin(), order.begin() + k, before);
  std::copy_n(order.begin(), k, places);
}

// The places of the k largest of n elements, in falling order; of equal ones
// the first comes first.
template <typename T>
void LargestOfRow(const T* x, int64_t n, int64_t k, int64_t* places) {
  // Inserting into a longer list costs more than selecting.
  if (k <= 64 && k * 8 <= n) {
    FewOfRow(x, n, k, places);
  } else {
    ManyOfRow(x, n, k, places);
  }
}

// What lies at `places` of the last dimension of x, added up, in x's shape:
// rows are laid side by side.
inline Value ToPlacesOfLast(GradientContext& g, const Value& x,
                            const Value& places, const Value& d) {
  auto as_int32 = [&](const Value& v) {
    return v.dtype() == DType::kInt32
               ? v
               : g("Cast", {v}, {{"DstT", DType::kInt32}});
  };
  Value shape = g.ShapeOf(x);
  Value last = g("Sub", {g("Size", {shape}), g.Int32(1)});
  Value n = g("GatherV2", {shape, last, g.Int32(0)});
  Value k = g("GatherV2", {g.ShapeOf(places), last, g.Int32(0)});
  Value flat =
      g("Reshape", {as_int32(places), g("Pack", {g.Int32(-1), k}, {{"N", 2}})});
  Value rows = g("GatherV2", {g("Shape", {flat}), g.Int32(0), g.Int32(0)});
  Value starts = g("Mul", {g("Range", {g.Int32(0), rows, g.Int32(1)}), n});
  // Places in the tensor laid flat: the row's beginning and the place in the
  // row.
  Value at = g("AddV2", {flat, g("ExpandDims", {starts, g.Int32(1)})});
  Value index = g("Reshape", {at, g.Int32s({-1, 1})});
  Value size = g("Reshape", {g("Size", {x}), g.Int32s({1})});
  // Adds up, where a place came twice.
  Value sums = g("ScatterNd", {index, g("Reshape", {d, g.Int32s({-1})}), size});
  return g("Reshape", {sums, shape});
}

}  // namespace headrace
