// SobolSample: points that fill the unit cube evenly, in Gray-code order.
#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "base/thread_pool.h"
#include "op/op.h"
#include "ops/random/sobol_numbers.h"

namespace headrace {
namespace {

// Direction numbers of one dimension, for 32 digits.
using Directions = std::array<uint32_t, 32>;

// --- Primitive polynomials over two elements, as bits, highest degree first.

uint32_t MultiplyModulo(uint32_t a, uint32_t b, uint32_t p, int degree) {
  uint32_t r = 0;
  for (; b; b >>= 1) {
    if (b & 1) r ^= a;
    a <<= 1;
    if (a >> degree & 1) a ^= p;
  }
  return r;
}

uint32_t PowerOfX(uint32_t e, uint32_t p, int degree) {
  uint32_t r = 1, a = degree > 1 ? 2 : 2 ^ p;
  for (; e; e >>= 1) {
    if (e & 1) r = MultiplyModulo(r, a, p, degree);
    a = MultiplyModulo(a, a, p, degree);
  }
  return r;
}

// True when x has order 2^degree - 1 modulo p.
bool IsPrimitive(uint32_t p, int degree) {
  const uint32_t order = (1u << degree) - 1;
  if (PowerOfX(order, p, degree) != 1) return false;
  uint32_t rest = order;
  for (uint32_t q = 2; q <= rest; ++q) {
    if (rest % q) continue;
    while (rest % q == 0) rest /= q;
    if (q < order && PowerOfX(order / q, p, degree) == 1) return false;
  }
  return true;
}

// --- The table.

uint32_t SobolBit(int64_t i) {
  const char c = kSobolBits[i / 6];
  const int value = c >= 'a'   ? c - 'a' + 26
                    : c >= 'A' ? c - 'A'
                    : c >= '0' ? c - '0' + 52
                    : c == '+' ? 62
                               : 63;
  return value >> (i % 6) & 1;
}

// The numbers of a polynomial; reads their bits from `bit` on.
Directions DirectionsOf(uint32_t p, int degree, int64_t* bit) {
  std::array<uint32_t, 32> m;
  for (int k = 0; k < degree; ++k) {
    m[k] = 1;
    for (int b = 0; b < k; ++b) m[k] |= SobolBit((*bit)++) << (b + 1);
  }
  for (int k = degree; k < 32; ++k) {
    // The recurrence of Bratley and Fox (Algorithm 659, 1988), whose
    // coefficients are the polynomial's.
    m[k] = m[k - degree] ^ m[k - degree] << degree;
    for (int i = 1; i < degree; ++i) {
      if (p >> (degree - i) & 1) m[k] ^= m[k - i] << i;
    }
  }
  for (int k = 0; k < 32; ++k) m[k] <<= 31 - k;
  return m;
}

const std::vector<Directions>& AllDirections() {
  static const auto* all = [] {
    auto* made = new std::vector<Directions>(1);
    // The first dimension has no polynomial: the digits backwards (van der
    // Corput).
    for (int k = 0; k < 32; ++k) (*made)[0][k] = 1u << (31 - k);
    int64_t bit = 0;
    for (int degree = 1; degree <= kSobolDegrees; ++degree) {
      // Odd ones: a polynomial without a constant term is divisible by x.
      for (uint32_t p = (1u << degree) + 1; p < 2u << degree; p += 2) {
        if (!IsPrimitive(p, degree)) continue;
        made->push_back(DirectionsOf(p, degree, &bit));
      }
    }
    return made;
  }();
  return *all;
}

// --- The op.

// Input i, a scalar of at least `least`, where it is known; else -1.
StatusOr<int64_t> Checked(const ShapeContext& c, int i, int64_t least,
                          const char* text) {
  HR_RETURN_IF_ERROR(CheckRank(c.input(i), 0));
  bool known = false;
  int64_t v = -1;
  HR_RETURN_IF_ERROR(c.IntValue(i, &known, &v));
  if (!known) return int64_t{-1};
  if (v < least) return InvalidArgument(text);
  return v;
}

Status SobolShape(ShapeContext& c) {
  HR_ASSIGN_OR_RETURN(const int64_t dim,
                      Checked(c, 0, 1, "dim must be at least one"));
  HR_ASSIGN_OR_RETURN(const int64_t count,
                      Checked(c, 1, 1, "num_results must be at least one"));
  HR_ASSIGN_OR_RETURN(const int64_t skip,
                      Checked(c, 2, 0, "skip must be non-negative"));
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (count > 0 && dim > 0 && count * dim >= kMost) {
    return InvalidArgument("num_results*dim must be less than ", kMost);
  }
  if (std::max<int64_t>(count, 0) + std::max<int64_t>(skip, 0) >= kMost) {
    return InvalidArgument("num_results+skip must be less than ", kMost);
  }
  if (dim > kSobolDimensions) {
    return Unimplemented("dim must be at most ", kSobolDimensions, ", got ",
                         dim);
  }
  c.set_output(0, Shape{count, dim});
  return OkStatus();
}

// Points [begin, end), numbered from 1, of `dim` dimensions.
template <typename T>
void Points(int64_t begin, int64_t end, int64_t dim, T* out) {
  const auto& all = AllDirections();
  const auto first = static_cast<uint32_t>(begin);
  std::vector<uint32_t> at(dim, 0);
  for (int k = 0; k < 32; ++k) {
    // Point n is the sum of the directions of n's Gray code, so a part of the
    // work may begin anywhere.
    if (!((first ^ first >> 1) >> k & 1)) continue;
    for (int64_t d = 0; d < dim; ++d) at[d] ^= all[d][k];
  }
  for (int64_t n = begin; n < end; ++n, out += dim) {
    for (int64_t d = 0; d < dim; ++d) {
      out[d] = static_cast<T>(static_cast<double>(at[d]) * 0x1p-32);
    }
    // From n to n + 1 one digit of the Gray code changes: the lowest that n has
    // not set. One exclusive or a point.
    const int next = __builtin_ctzll(static_cast<uint64_t>(n) + 1);
    if (next > 31) return;
    for (int64_t d = 0; d < dim; ++d) at[d] ^= all[d][next];
  }
}

Status RunSobol(KernelContext& c) {
  const int64_t dim = c.output(0).dim(1);
  // Point 0, the corner of the cube, is left out.
  const int64_t from = int64_t{c.in<int32_t>(2)[0]} + 1;
  ParallelFor(
      c.output(0).dim(0), static_cast<double>(dim),
      [&](int64_t begin, int64_t end) {
        if (c.output(0).dtype() == DType::kFloat) {
          Points(from + begin, from + end, dim, c.out<float>(0) + begin * dim);
        } else {
          Points(from + begin, from + end, dim, c.out<double>(0) + begin * dim);
        }
      });
  return OkStatus();
}

HR_OP(SobolSample)
    .Input("dim: int32")
    .Input("num_results: int32")
    .Input("skip: int32")
    .Output("samples: dtype")
    .Attr("dtype: {float, double} = DT_FLOAT")
    .Doc("The points of Sobol's sequence after the first `skip`.")
    .Shape(SobolShape)
    .Cpu(Compute<RunSobol>);

}  // namespace
}  // namespace headrace
