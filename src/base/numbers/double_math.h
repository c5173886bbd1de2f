// Declares the C library's double functions with their vector variants, so
// that a loop over them is vectorised where glibc has libmvec (errors below 4
// units in the last place). For *_loops.cc files only.
//
// A vector variant and the scalar function may differ in the last bit: run
// such loops over whole blocks, padding the last, so that an element's result
// does not depend on where a span is cut.
#pragma once

#include <math.h>

#if defined(__x86_64__) && defined(__GLIBC__) && \
    (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 35)
// Says that glibc has these functions for whole vectors too (libmvec, from 2.35
// on with all of them), so that loops that call them are vectorised.
#define HR_SIMD __attribute__((simd("notinbranch")))
extern "C" {
HR_SIMD double exp(double) noexcept;
HR_SIMD double expm1(double) noexcept;
HR_SIMD double log(double) noexcept;
HR_SIMD double log1p(double) noexcept;
HR_SIMD double sin(double) noexcept;
HR_SIMD double cos(double) noexcept;
HR_SIMD double tan(double) noexcept;
HR_SIMD double asin(double) noexcept;
HR_SIMD double acos(double) noexcept;
HR_SIMD double atan(double) noexcept;
HR_SIMD double sinh(double) noexcept;
HR_SIMD double cosh(double) noexcept;
HR_SIMD double tanh(double) noexcept;
HR_SIMD double asinh(double) noexcept;
HR_SIMD double acosh(double) noexcept;
HR_SIMD double atanh(double) noexcept;
HR_SIMD double erf(double) noexcept;
HR_SIMD double erfc(double) noexcept;
HR_SIMD double pow(double, double) noexcept;
HR_SIMD double atan2(double, double) noexcept;
}
#undef HR_SIMD
#endif
