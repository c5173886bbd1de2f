#include "ops/signal/fourier.h"

#include <cmath>

namespace headrace {

Fourier::Fourier(int64_t n) : n_(n) {
  int64_t left = n;
  for (int64_t f = 2; f <= kGreatestRadix && left > 1; ++f) {
    while (left % f == 0) {
      factors_.push_back(f);
      left /= f;
    }
  }
  auto root = [](int64_t k, int64_t of) {
    return std::polar(1.0, -2 * M_PI * static_cast<double>(k) / of);
  };
  if (left == 1) {
    for (int64_t k = 0; k < n; ++k) roots_.push_back(root(k, n));
    return;
  }
  int64_t m = 1;
  while (m < 2 * n - 1) m *= 2;
  convolution_ = std::make_unique<Fourier>(m);
  chirp_transform_.assign(m, Complex());
  // k^2 modulo 2n, kept exact for the angle's sake.
  uint64_t square = 0;
  const uint64_t turn = 2 * static_cast<uint64_t>(n);
  for (int64_t k = 0; k < n; ++k) {
    chirp_.push_back(root(static_cast<int64_t>(square), 2 * n));
    const Complex c = std::conj(chirp_.back());
    chirp_transform_[k] = c;
    if (k > 0) chirp_transform_[m - k] = c;
    square = (square + 2 * static_cast<uint64_t>(k) + 1) % turn;
  }
  std::vector<Complex> scratch;
  convolution_->Transform(chirp_transform_.data(), false, &scratch);
}

void Fourier::Transform(Complex* row, bool inverse,
                        std::vector<Complex>* scratch) const {
  if (n_ == 1) return;
  if (convolution_) return Bluestein(row, inverse, scratch);
  scratch->assign(row, row + n_);
  Mixed(scratch->data(), row, n_, 1, 0, inverse);
}

// Decimation in time: `factor` interleaved parts, then butterflies.
void Fourier::Mixed(const Complex* in, Complex* out, int64_t n, int64_t stride,
                    size_t factor, bool inverse) const {
  if (n == 1) {
    out[0] = in[0];
    return;
  }
  const int64_t f = factors_[factor], part = n / f;
  for (int64_t p = 0; p < f; ++p) {
    Mixed(in + p * stride, out + p * part, part, stride * f, factor + 1,
          inverse);
  }
  Complex terms[kGreatestRadix];
  for (int64_t k = 0; k < part; ++k) {
    for (int64_t p = 0; p < f; ++p) {
      terms[p] = out[p * part + k] * Root(stride * p * k, inverse);
    }
    for (int64_t q = 0; q < f; ++q) {
      Complex sum = terms[0];
      for (int64_t p = 1; p < f; ++p) {
        sum += terms[p] * Root(n_ / f * (p * q % f), inverse);
      }
      out[q * part + k] = sum;
    }
  }
}

void Fourier::Bluestein(Complex* row, bool inverse,
                        std::vector<Complex>* scratch) const {
  auto turned = [inverse](Complex c) { return inverse ? std::conj(c) : c; };
  const int64_t m = convolution_->size();
  std::vector<Complex> work(m);
  // The inverse is the conjugate of the transform of the conjugate.
  for (int64_t k = 0; k < n_; ++k) work[k] = turned(row[k]) * chirp_[k];
  convolution_->Transform(work.data(), false, scratch);
  for (int64_t k = 0; k < m; ++k) work[k] *= chirp_transform_[k];
  convolution_->Transform(work.data(), true, scratch);
  for (int64_t k = 0; k < n_; ++k) {
    row[k] = turned(work[k] / static_cast<double>(m) * chirp_[k]);
  }
}

}  // namespace headrace
