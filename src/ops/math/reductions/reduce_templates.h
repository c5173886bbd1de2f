// The bodies of reduction loops. For *_loops.cc and reduce_plain.cc alone: all
// of it lives in the level's namespace.
#pragma once

#include "ops/math/loops/wrapping.h"
#include "ops/math/reductions/reduce_loops.h"

namespace headrace::HR_LEVEL {
namespace {

// Sums run in 64 lanes and blocks of 1,024 elements on every level of the
// instruction set, as the order of additions decides the bits: results are the
// same on all processors. Blocks also keep the error of long float sums small.
constexpr int kLanes = 64;
constexpr int64_t kBlock = 1024;

template <typename T>
constexpr T kLowest = std::numeric_limits<T>::has_infinity
                          ? -std::numeric_limits<T>::infinity()
                          : std::numeric_limits<T>::lowest();
template <typename T>
constexpr T kHighest = std::numeric_limits<T>::has_infinity
                           ? std::numeric_limits<T>::infinity()
                           : std::numeric_limits<T>::max();

// How one element enters, and how two results become one.
template <typename T, typename A>
struct SumOf {
  using In = T;
  using Acc = A;
  static constexpr Acc kInit = Acc(0);
  [[gnu::always_inline]] static Acc Map(T x) { return static_cast<Acc>(x); }
  [[gnu::always_inline]] static Acc Join(Acc a, Acc b) { return Plus(a, b); }
};
template <typename T, typename A>
struct SquaresOf : SumOf<T, A> {
  [[gnu::always_inline]] static A Map(T x) {
    return Times(static_cast<A>(x), static_cast<A>(x));
  }
};
template <typename T, typename A>
struct ProductOf : SumOf<T, A> {
  static constexpr A kInit = A(1);
  [[gnu::always_inline]] static A Join(A a, A b) { return Times(a, b); }
};
template <typename T, typename A>
struct MaxOf : SumOf<T, A> {
  static constexpr A kInit = kLowest<A>;
  [[gnu::always_inline]] static A Join(A a, A b) {
    // A NaN wins wherever it stands: |, not ||, so that vectors need no branch.
    return (b > a) | (b != b) ? b : a;
  }
};
template <typename T, typename A>
struct MinOf : SumOf<T, A> {
  static constexpr A kInit = kHighest<A>;
  [[gnu::always_inline]] static A Join(A a, A b) {
    return (b < a) | (b != b) ? b : a;
  }
};

// Memory answers reads of several pages at once faster than of one after
// another (25 for 20 GB/s of two processors), so where there is enough to read
// this many places are read side by side, some 256 KB apart.
constexpr int kStreams = 4;
constexpr int64_t kApart = 64 * kBlock;  // elements

// Lanes are joined in halves: a tree whose form does not depend on n. Sizes are
// constants and runs go level by level together, as the next block waits for
// the last level.
template <typename Op, int kHalf, int kCount>
[[gnu::always_inline]] inline void JoinLanes(
    typename Op::Acc (&lanes)[kCount][kLanes]) {
#pragma GCC unroll 4
  for (int s = 0; s < kCount; ++s) {
#pragma GCC ivdep
    for (int j = 0; j < kHalf; ++j) {
      lanes[s][j] = Op::Join(lanes[s][j], lanes[s][j + kHalf]);
    }
  }
  if constexpr (kHalf > 1) JoinLanes<Op, kHalf / 2>(lanes);
}

// kCount runs of at most kBlock elements, `apart` from one another, side by
// side.
template <typename Op, int kCount>
void ReduceBlocks(const typename Op::In* x, int64_t apart, int64_t n,
                  typename Op::Acc* out) {
  using Acc = typename Op::Acc;
  if (n < kLanes) {
    for (int s = 0; s < kCount; ++s) {
      out[s] = Op::kInit;
      for (int64_t i = 0; i < n; ++i) {
        out[s] = Op::Join(out[s], Op::Map(x[s * apart + i]));
      }
    }
    return;
  }
  Acc lanes[kCount][kLanes];
  for (int s = 0; s < kCount; ++s) {
    for (int j = 0; j < kLanes; ++j) lanes[s][j] = Op::Map(x[s * apart + j]);
  }
  int64_t i = kLanes;
  for (; i + kLanes <= n; i += kLanes) {
#pragma GCC unroll 4
    for (int s = 0; s < kCount; ++s) {
      for (int j = 0; j < kLanes; ++j) {
        lanes[s][j] = Op::Join(lanes[s][j], Op::Map(x[s * apart + i + j]));
      }
    }
  }
  for (int s = 0; s < kCount; ++s) {
    for (int j = 0; i + j < n; ++j) {
      lanes[s][j] = Op::Join(lanes[s][j], Op::Map(x[s * apart + i + j]));
    }
  }
  JoinLanes<Op, kLanes / 2>(lanes);
  for (int s = 0; s < kCount; ++s) out[s] = lanes[s][0];
}

// Results of blocks, which meet as the digits of a binary counter do: two of
// equal size at once, so that additions are pairwise and errors grow with the
// logarithm.
template <typename Op>
class BlockSums {
 public:
  using Acc = typename Op::Acc;
  void Add(Acc s) {
    for (int64_t b = count_++; b & 1; b >>= 1) s = Op::Join(stack_[--top_], s);
    stack_[top_++] = s;
  }
  // What is left are sums of different sizes, the smallest first.
  Acc Result() {
    Acc s = stack_[--top_];
    while (top_ > 0) s = Op::Join(stack_[--top_], s);
    return s;
  }

 private:
  Acc stack_[64];  // one level for each bit of the number of blocks
  int top_ = 0;
  int64_t count_ = 0;
};

// kCount runs of n elements, `apart` from one another; out[s * to_apart] is the
// result of the s-th.
template <typename Op, int kCount>
void ReduceSideBySide(const typename Op::In* x, int64_t apart, int64_t n,
                      typename Op::Acc* out, int64_t to_apart) {
  typename Op::Acc sums[kCount];
  if (n <= kBlock) {
    ReduceBlocks<Op, kCount>(x, apart, n, sums);
    for (int s = 0; s < kCount; ++s) out[s * to_apart] = sums[s];
    return;
  }
  BlockSums<Op> runs[kCount];
  for (int64_t i = 0; i < n; i += kBlock) {
    ReduceBlocks<Op, kCount>(x + i, apart, n - i < kBlock ? n - i : kBlock,
                             sums);
    for (int s = 0; s < kCount; ++s) runs[s].Add(sums[s]);
  }
  for (int s = 0; s < kCount; ++s) out[s * to_apart] = runs[s].Result();
}

template <typename Op>
void ReduceRuns(const void* from, int64_t n, int64_t count, void* to) {
  const auto* x = static_cast<const typename Op::In*>(from);
  auto* out = static_cast<typename Op::Acc*>(to);
  int64_t r = 0;
  if (n >= kLanes) {
    const int64_t apart = n < kApart ? kApart / n : 1;
    for (; count - r >= kStreams * apart; r += kStreams * apart) {
      for (int64_t i = r; i < r + apart; ++i) {
        ReduceSideBySide<Op, kStreams>(x + i * n, apart * n, n, out + i, apart);
      }
    }
  }
  for (; r < count; ++r) ReduceSideBySide<Op, 1>(x + r * n, 0, n, out + r, 0);
}

template <typename Op>
void ReduceRowBlock(const typename Op::In* x, int64_t stride, int64_t rows,
                    int64_t n, typename Op::Acc* out) {
  using In = typename Op::In;
  for (int64_t j = 0; j < n; ++j) out[j] = Op::Map(x[j]);
  int64_t i = 1;
  // Three rows at a time: the result is read and written a third as often.
  for (; i + 3 <= rows; i += 3) {
    const In* a = x + i * stride;
    const In* b = a + stride;
    const In* c = b + stride;
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) {
      out[j] =
          Op::Join(Op::Join(Op::Join(out[j], Op::Map(a[j])), Op::Map(b[j])),
                   Op::Map(c[j]));
    }
  }
  for (; i < rows; ++i) {
    const In* a = x + i * stride;
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) out[j] = Op::Join(out[j], Op::Map(a[j]));
  }
}

template <typename Op>
void ReduceRows(const void* from, int64_t stride, int64_t rows, int64_t n,
                void* to, void* scratch) {
  using Acc = typename Op::Acc;
  const auto* x = static_cast<const typename Op::In*>(from);
  Acc* out = static_cast<Acc*>(to);
  Acc* stack = static_cast<Acc*>(scratch);
  if (rows <= kReduceRows) {
    // The neutral element.
    if (rows == 0) {
      for (int64_t j = 0; j < n; ++j) out[j] = Op::kInit;
    } else {
      ReduceRowBlock<Op>(x, stride, rows, n, out);
    }
    return;
  }
  auto join = [n](const Acc* a, Acc* b) {
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) b[j] = Op::Join(a[j], b[j]);
  };
  int top = 0;
  int64_t block = 0;
  for (int64_t i = 0; i < rows; i += kReduceRows, ++block) {
    // Made where it may stay.
    Acc* s = stack + top * n;
    ReduceRowBlock<Op>(x + i * stride, stride,
                       rows - i < kReduceRows ? rows - i : kReduceRows, n, s);
    ++top;
    for (int64_t b = block; b & 1; b >>= 1) {
      Acc* left = stack + (top - 2) * n;
      Acc* right = left + n;
#pragma GCC ivdep
      for (int64_t j = 0; j < n; ++j) left[j] = Op::Join(left[j], right[j]);
      --top;
    }
  }
  Acc* s = stack + (top - 1) * n;
  while (--top > 0) {
    join(stack + (top - 1) * n, s);
  }
  for (int64_t j = 0; j < n; ++j) out[j] = s[j];
}

template <typename Op>
ReduceLoops LoopsOf() {
  return {ReduceRuns<Op>, ReduceRows<Op>, DTypeOf<typename Op::Acc>};
}

template <typename T, typename A, bool kOrdered>
ReduceLoops Pick(Reduction r) {
  switch (r) {
    case Reduction::kSum:
      return LoopsOf<SumOf<T, A>>();
    case Reduction::kProd:
      return LoopsOf<ProductOf<T, A>>();
    case Reduction::kSumSquares:
      return LoopsOf<SquaresOf<T, A>>();
    case Reduction::kMax:
      if constexpr (kOrdered) return LoopsOf<MaxOf<T, A>>();
      break;
    case Reduction::kMin:
      if constexpr (kOrdered) return LoopsOf<MinOf<T, A>>();
      break;
    case Reduction::kWideSum:
      if constexpr (std::numeric_limits<T>::is_integer) {
        return LoopsOf<SumOf<T, int64_t>>();
      } else {
        return LoopsOf<SumOf<T, A>>();
      }
  }
  return {};
}

}  // namespace
}  // namespace headrace::HR_LEVEL
