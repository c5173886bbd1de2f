// What the ops of the Uniform family share: integers that stand for
// (level - zero point) * scale, one pair for all or one a channel.
#pragma once

#include <string>

#include "op/op.h"

namespace headrace {

// Checks the scales in input `at` and the zero points in input `at` + 1 of a
// tensor of shape `x`, against the attribute PREFIXquantization_axis.
Status CheckUniform(ShapeContext& c, const std::string& prefix, const Shape& x,
                    int at);

// A tensor's scales and zero points at work. Borrows the inputs.
class UniformParams {
 public:
  // `at`: the input that holds the scales; zero points are behind it.
  UniformParams(const KernelContext& c, const std::string& prefix,
                const Shape& x, int at);

  int64_t channels() const { return channels_; }
  // The channel of element `i`.
  int64_t ChannelOf(int64_t i) const {
    return channels_ == 1 ? 0 : i / inner_ % channels_;
  }
  float scale(int64_t channel) const { return scales_[channel]; }
  int32_t zero(int64_t channel) const { return zeros_[channel]; }
  // Where there is one pair for all, it is every channel's.
  float scale_of(int64_t channel) const { return scale(Mine(channel)); }
  int32_t zero_of(int64_t channel) const { return zero(Mine(channel)); }

 private:
  int64_t Mine(int64_t channel) const { return channels_ == 1 ? 0 : channel; }

  const float* scales_;
  const int32_t* zeros_;
  int64_t channels_ = 1, inner_ = 1;
};

// The attributes PREFIXquantization_min_val and PREFIXquantization_max_val,
// within what I holds.
template <typename I>
class UniformBounds {
 public:
  UniformBounds(const ResolvedOp& op, const std::string& prefix);
  I Cut(int64_t v) const;

 private:
  int64_t low_, high_;
};

// InvalidArgument unless all scales in input `at`, of the operand of that name,
// are positive.
Status CheckScales(const KernelContext& c, StringView name, int at);

// Levels of 8 bits that `n` floats are laid over by their own range, with 0
// among them: what hybrid ops make of an operand of floats.
class OwnLevels {
 public:
  OwnLevels(const float* x, int64_t n);
  float scale() const { return static_cast<float>(scale_); }
  // The level of `v` less that of 0.
  int32_t operator()(float v) const;

 private:
  double scale_ = 0, zero_ = 0;
};

// Products with a positive or negative factor, rounded, by integers alone.
class FixedFactor {
 public:
  // InvalidArgument when the factor is not finite.
  static StatusOr<FixedFactor> Make(double factor);
  int32_t operator()(int32_t v) const {
    // 31 bits by 32: fits.
    const int64_t product = static_cast<int64_t>(v) * factor_;
    // Half up, in every sign.
    const int64_t half = int64_t{1} << (shift_ - 1);
    return static_cast<int32_t>((product + half) >> shift_);
  }

 private:
  int32_t factor_ = 0;
  int shift_ = 31;
};

}  // namespace headrace
