// What the *_loops.cc files of this room are made of. For them alone: all of
// it lives in the level's namespace.
#pragma once

#include <cstdint>

#include "base/numbers/float_types.h"
#include "base/numbers/vector_math.h"
#include "ops/math/loops/loop_tables.h"

namespace headrace::HR_LEVEL {

// A complex number whose arithmetic is inlined and follows the schoolbook.
template <typename T>
struct Complex {
  T re, im;
};
using Complex64 = Complex<float>;
using Complex128 = Complex<double>;

// Upstream's DataType numbers.
template <typename T>
inline constexpr uint8_t kType = 0;
template <>
inline constexpr uint8_t kType<float> = 1;
template <>
inline constexpr uint8_t kType<double> = 2;
template <>
inline constexpr uint8_t kType<int32_t> = 3;
template <>
inline constexpr uint8_t kType<uint8_t> = 4;
template <>
inline constexpr uint8_t kType<int16_t> = 5;
template <>
inline constexpr uint8_t kType<int8_t> = 6;
template <>
inline constexpr uint8_t kType<Complex64> = 8;
template <>
inline constexpr uint8_t kType<int64_t> = 9;
template <>
inline constexpr uint8_t kType<bool> = 10;
template <>
inline constexpr uint8_t kType<bfloat16> = 14;
template <>
inline constexpr uint8_t kType<uint16_t> = 17;
template <>
inline constexpr uint8_t kType<Complex128> = 18;
template <>
inline constexpr uint8_t kType<half> = 19;
template <>
inline constexpr uint8_t kType<uint32_t> = 22;
template <>
inline constexpr uint8_t kType<uint64_t> = 23;

// Loops over F::Run(x).
template <typename F, typename T, typename R = T>
void Map(const void* x, void* y, int64_t n) {
  const T* a = static_cast<const T*>(x);
  R* r = static_cast<R*>(y);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) r[i] = F::Run(a[i]);
}

// The same in whole blocks, the last one padded: for functions whose vector
// and scalar forms may differ in the last bit.
constexpr int64_t kBlock = 16;
// kBlock, but the compiler must not know it: it would unroll the loop over one
// block instead of making vector code of it.
HR_VECTOR int64_t OneBlock() {
  int64_t n = kBlock;
  asm("" : "+r"(n));
  return n - n % kBlock;
}
template <typename F, typename T>
void MapBlocks(const void* x, void* y, int64_t n) {
  const T* a = static_cast<const T*>(x);
  T* r = static_cast<T*>(y);
  const int64_t rest = n % kBlock, whole = n - rest;
  if (whole > 0) Map<F, T>(a, r, whole);
  if (rest == 0) return;
  T block[kBlock];
  // Padded by the first of the rest: real arguments, which can raise no
  // exception that they would not raise anyway.
  for (int64_t i = 0; i < kBlock; ++i) block[i] = a[whole + (i < rest ? i : 0)];
  Map<F, T>(block, block, OneBlock());
  for (int64_t i = 0; i < rest; ++i) r[whole + i] = block[i];
}

template <typename F, typename T, typename R = T>
void Map2(const void* x, const void* z, void* y, int64_t n, int kind) {
  const T* a = static_cast<const T*>(x);
  const T* b = static_cast<const T*>(z);
  R* r = static_cast<R*>(y);
  // Three loops: with a step that is 0 or 1 at run time there is no vector
  // code.
  if (kind == 0) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) r[i] = F::Run(a[i], b[i]);
  } else if (kind == 1) {
    // Read before the loop: the result may lie over it.
    const T s = *a;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) r[i] = F::Run(s, b[i]);
  } else {
    const T s = *b;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) r[i] = F::Run(a[i], s);
  }
}

// The same in whole blocks, the last one padded.
template <typename F, typename T>
void Map2Blocks(const void* x, const void* z, void* y, int64_t n, int kind) {
  const T* a = static_cast<const T*>(x);
  const T* b = static_cast<const T*>(z);
  T* r = static_cast<T*>(y);
  const int64_t rest = n % kBlock, whole = n - rest;
  T p[kBlock], q[kBlock];
  // Gathered before the whole blocks run: the result may lie over a single
  // operand.
  for (int64_t i = 0; i < kBlock && rest > 0; ++i) {
    const int64_t at = whole + (i < rest ? i : 0);
    p[i] = kind == 1 ? *a : a[at];
    q[i] = kind == 2 ? *b : b[at];
  }
  if (whole > 0) Map2<F, T>(a, b, r, whole, kind);
  if (rest == 0) return;
  Map2<F, T>(p, q, p, OneBlock(), kind);
  for (int64_t i = 0; i < rest; ++i) r[whole + i] = p[i];
}

// The same for calls on fixed memory: of one element, and of kCount.
template <typename T>
HR_VECTOR T* Aligned(void* x) {
  return static_cast<T*>(__builtin_assume_aligned(x, 64));
}
template <typename T>
HR_VECTOR const T* Aligned(const void* x) {
  return static_cast<const T*>(__builtin_assume_aligned(x, 64));
}
template <typename F, typename T, typename R>
void OneOf(BoundCall& c) {
  *Aligned<R>(c.out) = F::Run(*Aligned<T>(c.in[0]));
  RunNext(c);
}
template <int64_t kCount, typename F, typename T, typename R>
void SomeOf(BoundCall& c) {
  const T* a = Aligned<T>(c.in[0]);
  R* r = Aligned<R>(c.out);
#pragma GCC ivdep
  for (int64_t i = 0; i < kCount; ++i) r[i] = F::Run(a[i]);
  RunNext(c);
}
template <typename F, typename T, typename R>
void OneOf2(BoundCall& c) {
  *Aligned<R>(c.out) = F::Run(*Aligned<T>(c.in[0]), *Aligned<T>(c.in[1]));
  RunNext(c);
}
template <int64_t kCount, typename F, typename T, typename R>
void SomeOf2(BoundCall& c) {
  const T *a = Aligned<T>(c.in[0]), *b = Aligned<T>(c.in[1]);
  R* r = Aligned<R>(c.out);
#pragma GCC ivdep
  for (int64_t i = 0; i < kCount; ++i) r[i] = F::Run(a[i], b[i]);
  RunNext(c);
}
// Four or a whole block where an element costs so little that those behind the
// last are not missed.
constexpr float kCheapElement = 1.0f;
template <typename F, typename T, typename R = T>
consteval SmallLoops SmallMap(float ns) {
  if (ns >= kCheapElement) return {&OneOf<F, T, R>};
  return {&OneOf<F, T, R>, &SomeOf<4, F, T, R>, &SomeOf<kBoundBlock, F, T, R>};
}
template <typename F, typename T, typename R = T>
consteval SmallLoops SmallMap2(float ns) {
  if (ns >= kCheapElement) return {&OneOf2<F, T, R>};
  return {&OneOf2<F, T, R>, &SomeOf2<4, F, T, R>,
          &SomeOf2<kBoundBlock, F, T, R>};
}

// float spans from and to half and bfloat16, as fast as the level can.
void Widen(const half* x, float* y, int64_t n);
void Widen(const bfloat16* x, float* y, int64_t n);
void Narrow(const float* x, half* y, int64_t n);
void Narrow(const float* x, bfloat16* y, int64_t n);

// A float loop over half or bfloat16, tile by tile.
constexpr int64_t kTile = 512;
template <UnaryLoop F, typename S, typename R = S>
void ViaFloat(const void* x, void* y, int64_t n) {
  const S* a = static_cast<const S*>(x);
  R* r = static_cast<R*>(y);
  alignas(64) float tile[kTile];
  for (int64_t i = 0; i < n; i += kTile) {
    const int64_t m = n - i < kTile ? n - i : kTile;
    Widen(a + i, tile, m);
    if constexpr (sizeof(R) == sizeof(S)) {
      F(tile, tile, m);
      Narrow(tile, r + i, m);
    } else {
      F(tile, r + i, m);
    }
  }
}

template <BinaryLoop F, typename S, typename R = S>
void ViaFloat2(const void* x, const void* z, void* y, int64_t n, int kind) {
  const S* a = static_cast<const S*>(x);
  const S* b = static_cast<const S*>(z);
  R* r = static_cast<R*>(y);
  alignas(64) float ta[kTile], tb[kTile];
  if (kind == 1) Widen(a, ta, 1);
  if (kind == 2) Widen(b, tb, 1);
  for (int64_t i = 0; i < n; i += kTile) {
    const int64_t m = n - i < kTile ? n - i : kTile;
    if (kind != 1) Widen(a + i, ta, m);
    if (kind != 2) Widen(b + i, tb, m);
    if constexpr (sizeof(R) == sizeof(S)) {
      // Over the operand that changes: the single one is needed for every tile.
      float* out = kind == 1 ? tb : ta;
      F(ta, tb, out, m, kind);
      Narrow(out, r + i, m);
    } else {
      F(ta, tb, r + i, m, kind);
    }
  }
}

// Element types, for rows of one op and several types. The types' costs follow
// from `ns`, that of four bytes.
template <typename... Ts>
struct Types {};
using IntegerTypes = Types<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t,
                           uint32_t, uint64_t>;
using ComplexTypes = Types<Complex64, Complex128>;
template <typename T>
constexpr float CostOf(float ns) {
  // Memory's pace decides: cost goes by bytes.
  return ns * (sizeof(T) / 4.0f);
}

// Rows of a table: y = F::Run(x).
template <typename F, typename... Ts>
consteval LoopTable<sizeof...(Ts)> Unary(const char* op, float ns,
                                         Types<Ts...>) {
  return {{{op, kType<Ts>, kType<Ts>, &Map<F, Ts>, nullptr, nullptr,
            CostOf<Ts>(ns), SmallMap<F, Ts>(CostOf<Ts>(ns))}...}};
}
// By a loop over float.
template <UnaryLoop kLoop>
consteval LoopTable<2> UnarySmall(const char* op, float ns) {
  return {{{op, kType<half>, kType<half>, &ViaFloat<kLoop, half>, nullptr,
            nullptr, ns + 0.2f},
           {op, kType<bfloat16>, kType<bfloat16>, &ViaFloat<kLoop, bfloat16>,
            nullptr, nullptr, ns + 0.2f}}};
}
template <typename F>
consteval LoopTable<4> UnaryFloats(const char* op, float ns) {
  return JoinTables(Unary<F>(op, ns, Types<float, double>()),
                    UnarySmall<&Map<F, float>>(op, ns));
}

// The same of two operands.
template <typename F, typename... Ts>
consteval LoopTable<sizeof...(Ts)> Binary(const char* op, float ns,
                                          Types<Ts...>) {
  return {{{op, kType<Ts>, kType<Ts>, nullptr, &Map2<F, Ts>, nullptr,
            CostOf<Ts>(ns), SmallMap2<F, Ts>(CostOf<Ts>(ns))}...}};
}
template <BinaryLoop kLoop>
consteval LoopTable<2> BinarySmall(const char* op, float ns) {
  return {{{op, kType<half>, kType<half>, nullptr, &ViaFloat2<kLoop, half>,
            nullptr, ns + 0.3f},
           {op, kType<bfloat16>, kType<bfloat16>, nullptr,
            &ViaFloat2<kLoop, bfloat16>, nullptr, ns + 0.3f}}};
}
template <typename F>
consteval LoopTable<4> BinaryFloats(const char* op, float ns) {
  return JoinTables(Binary<F>(op, ns, Types<float, double>()),
                    BinarySmall<&Map2<F, float>>(op, ns));
}

}  // namespace headrace::HR_LEVEL
