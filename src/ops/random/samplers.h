// Numbers drawn by rejection, one at a time, in upstream's order: every output
// has its own stretch of kPhiloxReservedSamples groups of the stream.
#pragma once

#include "ops/random/generator.h"

namespace headrace {

// Gamma of shape `alpha` and scale 1 (Marsaglia and Tsang).
double DrawGamma(Philox generator, double alpha);
// Poisson of mean `rate` (Knuth below 10, else Hoermann's rejection). Rates
// that are not finite come back as they are; negative ones give 0.
double DrawPoisson(Philox generator, double rate);
// Binomial of `count` trials of probability `p` (sums of geometric numbers or
// Hoermann's BTRS), from where `uniform` stands. NaN where the parameters make
// no sense.
double DrawBinomial(PhiloxDoubles& uniform, double count, double p);

}  // namespace headrace
