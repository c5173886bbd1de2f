// Special functions as polynomials over ranges. The coefficients come, when a
// function is first asked for, from its slow and exact form (series, continued
// fractions, integrals: exact_functions.h), so that each function is written
// once; special_loops.cc evaluates them.
#pragma once

#include <type_traits>

namespace headrace {

// The interpolant of a smooth function at Chebyshev's points, on `kPieces`
// equal parts of [low, high]. Coefficients are those of powers of the place
// within the piece, which runs from -1 to 1.
template <int kDegree, int kPieces>
struct Fit {
  double low, high, scale;
  double c[kDegree + 1][kPieces];
};

// For results in single precision one piece does; for double many short ones.
template <typename T, int kDegree>
using FitFor = std::conditional_t<sizeof(T) == 4, Fit<kDegree, 1>, Fit<15, 16>>;

// Each function is fitted near 0 and, in a variable that goes to 0, far away.
template <typename T, int kNear, int kFar>
struct TwoFits {
  FitFor<T, kNear> near;
  FitFor<T, kFar> far;
};

// D(a) / a over a^2 up to 16; D(a) a over 1 / a^2.
constexpr double kDawsonEnd = 4;
template <typename T>
using DawsonFits = TwoFits<T, 22, 9>;
template <typename T>
const DawsonFits<T>& FitsOfDawson();

// Ei(x) - log(x) over x; Ei(x) x exp(-x) over 1 / x.
constexpr double kExpintEnd = 6;
template <typename T>
using ExpintFits = TwoFits<T, 16, 22>;
template <typename T>
const ExpintFits<T>& FitsOfExpint();

// -Li(-w) / w of w = x - 1 from -1/2 to 1.
template <typename T>
using SpenceFit = FitFor<T, 17>;
template <typename T>
const SpenceFit<T>& FitOfSpence();

// C(a) / a and S(a) / a^3 over a^4; f(a) a and g(a) a^3 over 1 / a^4, where
// C = 1/2 + f sin - g cos and S = 1/2 - f cos - g sin of pi a^2 / 2.
constexpr double kFresnelEnd = 1.6;
template <typename T>
struct FresnelFits {
  FitFor<T, 9> cosine, sine;
  FitFor<T, 16> f, g;
};
template <typename T>
const FresnelFits<T>& FitsOfFresnel();

// exp(-a) I(a), for order 1 over a, of a; the same times sqrt(a) over 1 / a.
constexpr double kBesselIEnd = 8;
template <typename T>
using BesselIFits = TwoFits<T, 21, 8>;
template <typename T>
const BesselIFits<T>& FitsOfBesselI(int order);

// Of x^2 up to 4: I, and K + log(x / 2) I, for order 0; for order 1 I over x,
// and (K - log(x / 2) I - 1 / x) over x. Over 1 / x: exp(x) K sqrt(x).
constexpr double kBesselKEnd = 2;
template <typename T>
struct BesselKFits {
  FitFor<T, 8> i;
  FitFor<T, 10> regular;
  FitFor<T, 11> far;
};
template <typename T>
const BesselKFits<T>& FitsOfBesselK(int order);

}  // namespace headrace
