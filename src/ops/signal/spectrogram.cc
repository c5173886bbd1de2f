// AudioSpectrogram and Mfcc: what speech recognisers read.
#include <cmath>
#include <limits>
#include <vector>

#include "op/op.h"
#include "ops/signal/fourier.h"

namespace headrace {
namespace {

// --- AudioSpectrogram.

// The frames' length, a power of two, or an error.
StatusOr<int64_t> LengthOf(const ResolvedOp& op) {
  const int64_t window = op.int_attr("window_size");
  const int64_t stride = op.int_attr("stride");
  if (window < 2 || stride < 1 ||
      window > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("Spectrogram initialization failed for window size ",
                           window, " and stride ", stride);
  }
  int64_t n = 1;
  while (n < window) n *= 2;
  return n;
}

Status SpectrogramShape(ShapeContext& c) {
  HR_ASSIGN_OR_RETURN(const int64_t n, LengthOf(c.op()));
  const Shape& in = c.input(0);
  if (!in.known_rank()) {
    c.set_output(0, Shape{-1, -1, n / 2 + 1});
    return OkStatus();
  }
  if (in.rank() != 2) {
    return InvalidArgument("input must be 2-dimensional", in);
  }
  const int64_t window = c.op().int_attr("window_size");
  int64_t frames = -1;
  if (in[0] >= 0) {
    frames =
        in[0] < window ? 0 : 1 + (in[0] - window) / c.op().int_attr("stride");
  }
  HR_ASSIGN_OR_RETURN(Shape out, Shape::Make({in[1], frames, n / 2 + 1}, true));
  c.set_output(0, std::move(out));
  return OkStatus();
}

// One channel's frames through a Hann window, with zeros after it.
void Frame(const float* in, int64_t channels, int64_t window, int64_t stride,
           absl::Span<const double> hann, int64_t n, int64_t frames,
           double* out) {
  for (int64_t f = 0; f < frames; ++f, out += n) {
    for (int64_t i = 0; i < window; ++i) {
      out[i] = in[(f * stride + i) * channels] * hann[i];
    }
    std::fill(out + window, out + n, 0.0);
  }
}

Status RunSpectrogram(KernelContext& c) {
  if (c.output(0).num_elements() == 0) return OkStatus();
  const int64_t window = c.op().int_attr("window_size");
  const int64_t stride = c.op().int_attr("stride");
  const bool squared = c.op().bool_attr("magnitude_squared");
  HR_ASSIGN_OR_RETURN(const int64_t n, LengthOf(c.op()));
  const int64_t channels = c.input(0).dim(1), frames = c.output(0).dim(1);
  const int64_t half = n / 2 + 1;
  std::vector<double> hann(window);
  for (int64_t i = 0; i < window; ++i) {
    hann[i] = 0.5 - 0.5 * std::cos(2 * M_PI * static_cast<double>(i) /
                                   static_cast<double>(window));
  }
  HR_ASSIGN_OR_RETURN(const Shape in_shape, Shape::Make({frames, n}));
  HR_ASSIGN_OR_RETURN(const Shape out_shape, Shape::Make({frames, half}));
  HR_ASSIGN_OR_RETURN(Tensor in, c.Temporary(DType::kDouble, in_shape));
  HR_ASSIGN_OR_RETURN(Tensor spectrum,
                      c.Temporary(DType::kComplex128, out_shape));
  HR_ASSIGN_OR_RETURN(auto transform, Fourier<double>::Get(n, true));
  auto place = [&](int64_t r, int64_t* a, int64_t* b) {
    *a = r * n;
    *b = r * half * 2;
  };
  float* out = c.out<float>(0);
  for (int64_t k = 0; k < channels; ++k) {
    HR_RETURN_IF_ERROR(c.CheckCancelled());
    Frame(c.in<float>(0) + k, channels, window, stride, hann, n, frames,
          in.data<double>());
    HR_RETURN_IF_ERROR(
        transform->Run({.from = in.data<double>(),
                        .to = reinterpret_cast<double*>(spectrum.raw()),
                        .count = frames,
                        .from_step = 1,
                        .to_step = 2,
                        .place = place}));
    for (complex128 z : spectrum.span<complex128>()) {
      const double power = std::norm(z);
      *out++ = static_cast<float>(squared ? power : std::sqrt(power));
    }
  }
  return OkStatus();
}

HR_OP(AudioSpectrogram)
    .Input("input: float")
    .Output("spectrogram: float")
    .Attr("window_size: int")
    .Attr("stride: int")
    .Attr("magnitude_squared: bool = false")
    .Doc("How loud the frequencies of [length, channels] are over time.")
    .Shape(SpectrogramShape)
    .Cpu(Compute<RunSpectrogram>);

// --- Mfcc.

double MelOf(double hertz) { return 1127 * std::log1p(hertz / 700); }

// Triangles over the mel scale, each from its left neighbour's centre to its
// right one's.
class Filterbank {
 public:
  Filterbank(int64_t bins, double rate, int64_t count, double low, double high)
      : count_(count), lower_(bins, 0), weights_(bins, 0) {
    const double from = MelOf(low), to = MelOf(high);
    std::vector<double> centers(count + 1);
    for (int64_t i = 0; i <= count; ++i) {
      centers[i] = from + (to - from) / static_cast<double>(count + 1) *
                              static_cast<double>(i + 1);
    }
    const double width = 0.5 * rate / static_cast<double>(bins - 1);
    // The first bin, of the mean, never counts.
    begin_ = BinOf(1.5 + low / width);
    last_ = BinOf(high / width);
    int64_t at = 0;
    for (int64_t i = begin_; i <= last_ && i < bins; ++i) {
      const double mel = MelOf(static_cast<double>(i) * width);
      while (at < count && centers[at] < mel) ++at;
      const double left = at > 0 ? centers[at - 1] : from;
      lower_[i] = at - 1;
      weights_[i] = (centers[at] - mel) / (centers[at] - left);
    }
  }

  // False when the spectrum ends below the highest frequency.
  bool covered() const { return last_ < static_cast<int64_t>(weights_.size()); }
  // Adds the roots of `power` to `out`, one number a triangle.
  void Apply(const float* power, double* out) const {
    for (int64_t i = begin_; i <= last_; ++i) {
      const double v = std::sqrt(static_cast<double>(power[i]));
      const double down = v * weights_[i];
      const int64_t k = lower_[i];
      if (k >= 0) out[k] += down;
      if (k + 1 < count_) out[k + 1] += v - down;
    }
  }

 private:
  static int64_t BinOf(double v) {
    return static_cast<int64_t>(std::min(v, 1e15));
  }

  const int64_t count_;
  int64_t begin_, last_;
  std::vector<int64_t> lower_;  // the triangle that falls at a bin, or -1
  std::vector<double> weights_;
};

Status MfccShape(ShapeContext& c) {
  const Shape& in = c.input(0);
  if (in.known_rank() && in.rank() != 3) {
    return InvalidArgument("spectrogram must be 3-dimensional", in);
  }
  if (c.input(1).known_rank() && c.input(1).rank() != 0) {
    return InvalidArgument("Input sample_rate should be a scalar tensor, got ",
                           c.input(1), " instead.");
  }
  const int64_t count = c.op().int_attr("dct_coefficient_count");
  Shape out = in.known_rank() ? in : Shape::UnknownOfRank(3);
  out.set_dim(2, std::max<int64_t>(count, -1));
  HR_RETURN_IF_ERROR(Shape::Make(out.dims(), true).status());
  c.set_output(0, std::move(out));
  return OkStatus();
}

// Rows of cosines.
std::vector<double> CosinesOf(int64_t rows, int64_t columns) {
  std::vector<double> table(rows * columns);
  const auto n = static_cast<double>(columns);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      table[i * columns + j] =
          std::sqrt(2 / n) * std::cos(M_PI / n * static_cast<double>(i) *
                                      (static_cast<double>(j) + 0.5));
    }
  }
  return table;
}

Status RunMfcc(KernelContext& c) {
  const ResolvedOp& op = c.op();
  const Tensor& in = c.input(0);
  const double low = op.float_attr("lower_frequency_limit");
  const double high = op.float_attr("upper_frequency_limit");
  const int64_t filters = op.int_attr("filterbank_channel_count");
  const int64_t count = op.int_attr("dct_coefficient_count");
  const int32_t rate = *c.in<int32_t>(1);
  const int64_t bins = in.dim(2);
  // Attributes from outside: tables of these sizes (128 MiB) can still be made.
  constexpr int64_t kMostFilters = 1 << 20, kMostCosines = 1 << 24;
  if (rate <= 0 || bins < 2 || filters < 1 || filters > kMostFilters ||
      count < 1 || count > filters || !(low >= 0) || !(high > low) ||
      !std::isfinite(high)) {
    return InvalidArgument("Mfcc initialization failed for channel count ",
                           bins, ", sample rate ", rate,
                           " and filterbank_channel_count ", filters);
  }
  if (count * filters > kMostCosines) {
    return ResourceExhausted("Mfcc of ", count, " coefficients of ", filters,
                             " filters");
  }
  if (c.output(0).num_elements() == 0) return OkStatus();
  const Filterbank bank(bins, rate, filters, low, high);
  float* out = c.out<float>(0);
  if (!bank.covered()) {  // as upstream has it
    std::fill_n(out, c.output(0).num_elements(), 0.0f);
    return OkStatus();
  }
  const auto cosines = CosinesOf(count, filters);
  std::vector<double> sums(filters);
  for (int64_t r = 0; r < in.dim(0) * in.dim(1); ++r) {
    std::fill(sums.begin(), sums.end(), 0.0);
    bank.Apply(in.data<float>() + r * bins, sums.data());
    for (double& v : sums) v = std::log(std::max(v, 1e-12));
    for (int64_t i = 0; i < count; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < filters; ++j) {
        sum += cosines[i * filters + j] * sums[j];
      }
      *out++ = static_cast<float>(sum);
    }
  }
  return OkStatus();
}

HR_OP(Mfcc)
    .Input("spectrogram: float")
    .Input("sample_rate: int32")
    .Output("output: float")
    .Attr("upper_frequency_limit: float = 4000")
    .Attr("lower_frequency_limit: float = 20")
    .Attr("filterbank_channel_count: int = 40")
    .Attr("dct_coefficient_count: int = 13")
    .Doc("Mel-frequency cepstral coefficients of squared spectrograms.")
    .Shape(MfccShape)
    .Cpu(Compute<RunMfcc>);

}  // namespace
}  // namespace headrace
