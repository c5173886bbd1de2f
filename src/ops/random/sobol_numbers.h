// The table behind Sobol's sequences.
#pragma once

namespace headrace {

// How many dimensions the table has; the first one needs no numbers.
inline constexpr int kSobolDimensions = 1111;
inline constexpr int kSobolDegrees = 13;

// Dimension by dimension from the second on, number by number: an initial
// number m_k of dimension d is odd and below 2^k, so that k - 1 bits say it,
// lowest first; m_1 takes none. Six bits a character, lowest first, in the
// alphabet of base 64. A dimension has as many numbers as its polynomial has
// degrees; polynomials are all primitive ones in ascending order.
extern const char kSobolBits[];

}  // namespace headrace
