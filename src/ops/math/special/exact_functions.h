// Special functions by series, continued fractions and integrals: exact to
// some units in the last place of a Wide, but slow. fits.h makes fast ones
// of them.
#pragma once

#include <complex>

namespace headrace {

// Of 64 bits or more on the machines that have it.
using Wide = long double;

// Dawson's integral: exp(-x^2) times the integral of exp(t^2) from 0 to x.
Wide ExactDawson(Wide x);
// Spence's: the integral of log(t) / (1 - t) from 1 to 1 + w, w from -1/2 to 1.
Wide ExactSpence(Wide w);
// The integrals from 0 to x >= 0 of cos and sin of pi t^2 / 2.
std::complex<Wide> ExactFresnel(Wide x);
// g + i f of fits.h, for x > 0.
std::complex<Wide> FresnelEnvelope(Wide x);

// Modified Bessel functions of orders 0 and 1, for x >= 0; I and K times
// exp(-x) and exp(x).
Wide ExactScaledI(int order, Wide x);
Wide ExactScaledK(int order, Wide x);
// I by its series, of order 1 over x.
Wide SeriesI(int order, Wide x);
// What of K has no singularity at 0; see BesselKFits::regular.
Wide RegularK(int order, Wide x);

}  // namespace headrace
