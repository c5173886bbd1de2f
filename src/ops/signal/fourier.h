// The discrete Fourier transform of a row, for any length.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

namespace headrace {

// Transforms rows of one length n > 0: factors of n up to kGreatestRadix by
// mixed radices, other lengths by Bluestein's convolution. Computes in double.
// Thread-safe once made.
class Fourier {
 public:
  using Complex = std::complex<double>;
  explicit Fourier(int64_t n);

  int64_t size() const { return n_; }
  // row[k] := sum of row[j] exp(-2 pi i j k / n), with + where `inverse`; the
  // inverse is not divided by n. `scratch` is the caller's, of any size.
  void Transform(Complex* row, bool inverse,
                 std::vector<Complex>* scratch) const;

 private:
  void Mixed(const Complex* in, Complex* out, int64_t n, int64_t stride,
             size_t factor, bool inverse) const;
  void Bluestein(Complex* row, bool inverse,
                 std::vector<Complex>* scratch) const;
  // exp(-2 pi i k / n), conjugated where `inverse`.
  Complex Root(int64_t k, bool inverse) const {
    const Complex w = roots_[static_cast<size_t>(k % n_)];
    return inverse ? std::conj(w) : w;
  }

  static constexpr int64_t kGreatestRadix = 31;
  int64_t n_;
  std::vector<int64_t> factors_;
  std::vector<Complex> roots_;
  // Of Bluestein's: the chirp, its transform, the convolution's length.
  std::unique_ptr<Fourier> convolution_;
  std::vector<Complex> chirp_, chirp_transform_;
};

}  // namespace headrace
