// Conversions between any two types, put together from direct ones: a small
// type goes by its hub (float for small floats, int8 for integers under a
// byte), a complex one by its real part.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "ops/math/loops/loop_tables.h"

namespace headrace {
namespace {

constexpr int kTypes = 33;  // DataType numbers in use are below
constexpr int kFloat = 1, kDouble = 2, kInt8 = 6, kComplex64 = 8,
              kComplex128 = 18;
// Casts of rare pairs go by float or double in tiles of this many elements, 4
// KiB, which stay in the first cache.
constexpr int64_t kCastTile = 512;

bool IsComplex(int t) { return t == kComplex64 || t == kComplex128; }
int RealOf(int t) { return t == kComplex64 ? kFloat : kDouble; }

// The type of direct casts that stands for `t`; -1 if it has no numbers.
int HubOf(int t) {
  if (IsComplex(t)) return RealOf(t);
  for (int direct : kCastTypeNumbers) {
    if (direct == t) return t;
  }
  if (AtActiveLevel([&](auto level) { return ToHub<level>(t); }) == nullptr)
    return -1;
  // Numbers from 29 are the integers of 2 and 4 bits; what else has a hub is a
  // small float.
  return t >= 29 ? kInt8 : kFloat;
}

int IndexOf(int direct) {
  for (int i = 0; i < kCastTypes; ++i) {
    if (kCastTypeNumbers[i] == direct) return i;
  }
  return -1;
}

template <typename T>
void RealPart(const void* x, void* y, int64_t n) {
  const T* a = static_cast<const T*>(x);
  T* r = static_cast<T*>(y);
  for (int64_t i = 0; i < n; ++i) r[i] = a[2 * i];
}

// Backwards, so that a tile may be widened where it lies.
template <typename T>
void ToComplex(const void* x, void* y, int64_t n) {
  const T* a = static_cast<const T*>(x);
  T* r = static_cast<T*>(y);
  for (int64_t i = n; i-- > 0;) {
    r[2 * i] = a[i];
    r[2 * i + 1] = T{0};
  }
}

UnaryLoop ToHubLoop(int t) {
  if (t == kComplex64) return RealPart<float>;
  if (t == kComplex128) return RealPart<double>;
  return AtActiveLevel([&](auto level) { return ToHub<level>(t); });
}
UnaryLoop FromHubLoop(int t) {
  if (t == kComplex64) return ToComplex<float>;
  if (t == kComplex128) return ToComplex<double>;
  return AtActiveLevel([&](auto level) { return FromHub<level>(t); });
}

// Up to three steps; the missing ones are null.
struct Route {
  UnaryLoop up = nullptr, middle = nullptr, down = nullptr;
  UnaryLoop single = nullptr;  // set when one loop is all
  int from_bytes = 0, to_bytes = 0;
};
Route routes[kTypes][kTypes];

int BytesOf(int t) {
  switch (t) {
    // Numbers of DataType: int32, float, uint32 here, and so on.
    case 3:
    case 1:
    case 22:
      return 4;
    case 2:
    case 9:
    case 23:
    case kComplex64:
      return 8;
    case 5:
    case 14:
    case 17:
    case 19:
      return 2;
    case kComplex128:
      return 16;
    default:
      return 1;
  }
}

// Tile by tile over the route from type `kFrom` to type `kTo`.
template <int kFrom, int kTo>
void RunRoute(const void* x, void* y, int64_t n) {
  const Route& route = routes[kFrom][kTo];
  // A tile of the widest hub, double.
  alignas(64) char one[kCastTile * 8], two[kCastTile * 8];
  for (int64_t i = 0; i < n; i += kCastTile) {
    const int64_t m = std::min(kCastTile, n - i);
    const void* at = static_cast<const char*>(x) + i * route.from_bytes;
    void* to = static_cast<char*>(y) + i * route.to_bytes;
    if (route.up) {
      // The last step writes to the result; those before it to tiles.
      void* out = route.middle || route.down ? one : to;
      route.up(at, out, m);
      at = out;
    }
    if (route.middle) {
      void* out = route.down ? two : to;
      route.middle(at, out, m);
      at = out;
    }
    if (route.down) route.down(at, to, m);
  }
}

template <int... kPairs>
constexpr std::array<UnaryLoop, sizeof...(kPairs)> MakeRunners(
    std::integer_sequence<int, kPairs...>) {
  return {RunRoute<kPairs / kTypes, kPairs % kTypes>...};
}
constexpr auto kRunners =
    MakeRunners(std::make_integer_sequence<int, kTypes * kTypes>());

template <int kBytes>
void Copy(const void* x, void* y, int64_t n) {
  // A result may lie over its argument, where nothing is to be done.
  if (x != y) std::memmove(y, x, n * kBytes);
}
UnaryLoop CopyLoop(int bytes) {
  switch (bytes) {
    case 1:
      return Copy<1>;
    case 2:
      return Copy<2>;
    case 4:
      return Copy<4>;
    case 8:
      return Copy<8>;
    default:
      return Copy<16>;
  }
}

// Complex to complex: twice as many reals.
template <bool kWiden>
void BetweenComplex(const void* x, void* y, int64_t n) {
  const int f = IndexOf(kFloat), d = IndexOf(kDouble);
  AtActiveLevel([&](auto level) {
    return DirectCast<level>(kWiden ? f : d, kWiden ? d : f);
  })(x, y, 2 * n);
}

void PlanRoute(int from, int to, Route& r) {
  const int a = HubOf(from), b = HubOf(to);
  if (a < 0 || b < 0) return;
  r.from_bytes = BytesOf(from);
  r.to_bytes = BytesOf(to);
  if (from == to) {
    r.single = CopyLoop(r.to_bytes);
  } else if (IsComplex(from) && IsComplex(to)) {
    r.single =
        from == kComplex64 ? BetweenComplex<true> : BetweenComplex<false>;
  } else {
    if (from != a) r.up = ToHubLoop(from);
    if (a != b) {
      r.middle = AtActiveLevel([&](auto level) {
        return DirectCast<level>(IndexOf(a), IndexOf(b));
      });
    }
    if (to != b) r.down = FromHubLoop(to);
    // One loop alone runs over the whole; several go tile by tile.
    const int steps = !!r.up + !!r.middle + !!r.down;
    if (steps == 1) r.single = r.up ? r.up : r.middle ? r.middle : r.down;
    if (steps > 1) r.single = kRunners[from * kTypes + to];
  }
}

}  // namespace

UnaryLoop FindCastLoop(int from, int to) {
  // Once: looking for a loop is then an index, and levels of instructions do
  // not change.
  static const bool planned = [] {
    for (int i = 0; i < kTypes; ++i) {
      for (int j = 0; j < kTypes; ++j) PlanRoute(i, j, routes[i][j]);
    }
    return true;
  }();
  (void)planned;
  if (from < 0 || from >= kTypes || to < 0 || to >= kTypes) return nullptr;
  return routes[from][to].single;
}

}  // namespace headrace
