// Modified Bessel functions that the standard library lacks, in double, to
// about 1e-14. Pure functions.
#pragma once

namespace headrace {

// exp(-|x|) I0(x) and exp(-|x|) I1(x).
double BesselI0e(double x);
double BesselI1e(double x);
// exp(x) K0(x) and exp(x) K1(x); infinite at 0 and below.
double BesselK0e(double x);
double BesselK1e(double x);

}  // namespace headrace
