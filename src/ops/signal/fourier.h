// The discrete Fourier transform of many rows of one length, by pocketfft.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "base/status.h"
#include "ops/signal/fourier_loops.h"

namespace headrace {

// The rows of one call. Offsets and steps count elements of T, of which a
// complex number is two.
template <typename T>
struct FourierRows {
  const T* from = nullptr;
  T* to = nullptr;  // may be `from`, where rows keep their places
  int64_t count = 0;
  // Between the elements of a row. Real rows and the two sides of their
  // transforms are dense: 1 for reals, 2 for complex numbers.
  int64_t from_step = 2, to_step = 2;
  // Where row r begins. Called from several threads.
  absl::FunctionRef<void(int64_t r, int64_t* from, int64_t* to)> place;
  // The sign of the exponent; results are multiplied by `scale` alone.
  bool inverse = false;
  T scale = 1;
};

// Transforms of one length n > 0: row[k] := scale * sum of row[j]
// exp(-2 pi i j k / n), with + where inverse. T is float or double, which it
// computes in. A result depends on the row, its length and how many rows there
// are, never on the number of threads. Thread-safe.
template <typename T>
class Fourier {
 public:
  // The transform of complex rows, or of `real` ones to the n / 2 + 1 first
  // numbers of their transforms and back. Recent ones are kept.
  // ResourceExhausted when memory ends.
  static StatusOr<std::shared_ptr<const Fourier>> Get(int64_t n, bool real);
  ~Fourier();
  Fourier(const Fourier&) = delete;
  Fourier& operator=(const Fourier&) = delete;

  Status Run(const FourierRows<T>& rows) const;

 private:
  Fourier(int64_t n, bool real, void* plan);
  Status RunBatches(const FourierRows<T>& rows) const;
  Status RunLong(const FourierRows<T>& rows) const;
  // False when memory ends.
  bool RunLongRow(const T* from, T* to, bool inverse, T scale, T* middle) const;

  const FourierLoops<T>& loops_;
  const int64_t n_;
  const bool real_;
  void* const plan_;
};

}  // namespace headrace
