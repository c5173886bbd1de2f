// ParameterizedTruncatedNormal and its stateless form: normal numbers between
// bounds, by rejection, in upstream's order: numbers come in batches that share
// their parameters, and each batch goes on in the stream where the last
// stopped.
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/random/random_fill.h"
#include "op/vectorize.h"
#include "ops/random/generator.h"

namespace headrace {
namespace {

// Upstream's number: more misses are an error, and each batch sets aside groups
// of words for as many.
constexpr int64_t kMostRejections = 1000;
// Batches of upstream's op when all parameters are scalars.
constexpr int64_t kScalarBatch = 100;
// Bounds this many deviations out leave plain normal numbers likely enough.
constexpr double kNormalReach = 1.3;

using Floats = TypeList<half, bfloat16, float, double>;

// Numbers of one stream, made a few groups at a time.
template <typename T>
class Stream {
 public:
  Stream(const Philox& at, bool normal) : at_(at), normal_(normal) {}
  T Next() {
    // Groups are independent of one another, so a block is made by the vector
    // loops and handed out one by one.
    if (used_ == kSize) {
      if (normal_) {
        FillNormal<T>(at_, numbers_, kSize);
      } else {
        FillUniform<T>(at_, numbers_, kSize);
      }
      at_.Skip(kGroups);
      used_ = 0;
    }
    ++taken_;
    return numbers_[used_++];
  }
  static constexpr int kPerGroup = sizeof(T) == 8 ? 2 : 4;
  // Groups of which numbers were taken.
  // A group of which one number was taken is used up, as upstream's generators
  // take whole groups.
  uint64_t groups() const { return (taken_ + kPerGroup - 1) / kPerGroup; }

 private:
  static constexpr int kGroups = 16, kSize = kGroups * kPerGroup;
  Philox at_;
  const bool normal_;
  T numbers_[kSize];
  int used_ = kSize;
  uint64_t taken_ = 0;
};

struct Bounds {
  double mean, deviation, low, high;
};

// One batch: `count` numbers at out[0], out[stride], ... `at` moves on past the
// groups that they took.
template <typename T>
class Batch {
 public:
  Batch(Philox* at, T* out, int64_t count, int64_t stride)
      : at_(at), out_(out), count_(count), stride_(stride) {}

  Status Fill(Bounds b) {
    const bool bounded = std::isfinite(b.low) || std::isfinite(b.high);
    // Written so that NaN parameters are refused too.
    if (!(b.deviation > 0) || !(b.low < b.high) || !bounded) {
      return InvalidArgument("Invalid parameters");
    }
    // One-sided bounds are lower ones; two bounds stand right of the mean.
    if (b.low == -INFINITY || b.high < b.mean) {
      // A mirror image: with the deviation's sign turned the bounds change
      // places, and Keep turns the numbers back.
      std::swap(b.low, b.high);
      b.deviation = -b.deviation;
    }
    bounds_ = b;
    low_ = C((C(b.low) - C(b.mean)) / C(b.deviation));
    high_ = C((C(b.high) - C(b.mean)) / C(b.deviation));
    // Robert, "Simulation of truncated normal variables" (1995): the interval's
    // length up to which uniform proposals are kept more often than exponential
    // ones.
    const C root = std::sqrt(low_ * low_ + 4);
    const C cutoff =
        2 * std::exp(C(0.5) + low_ * (low_ - root) / 4) / (low_ + root);
    const bool normal = (low_ < -kNormalReach && high_ >= 0) ||
                        (high_ > kNormalReach && low_ <= 0);
    Stream<T> stream(*at_, normal);
    HR_RETURN_IF_ERROR(normal                  ? ByNormal(stream)
                       : high_ - low_ < cutoff ? ByUniform(stream)
                                               : ByExponential(stream));
    at_->Skip(stream.groups());
    return OkStatus();
  }

 private:
  using C = std::conditional_t<sizeof(T) == 8, double, float>;
  static constexpr int kPerGroup = Stream<T>::kPerGroup;

  bool Keep(C normal) {
    out_[kept_++ * stride_] =
        static_cast<T>(normal * C(bounds_.deviation) + C(bounds_.mean));
    // The limit counts misses in a row.
    rejected_ = 0;
    return kept_ == count_;
  }
  Status Reject(const char* sampler) {
    if (++rejected_ <= kMostRejections) return OkStatus();
    return Internal("TruncatedNormal ", sampler,
                    " rejection sampler exceeded maximum iterations. Please "
                    "contact tensorflow-dev@googlegroups.com");
  }

  Status ByNormal(Stream<T>& normals) {
    while (kept_ < count_) {
      const C x = static_cast<C>(normals.Next());
      if (x >= low_ && x <= high_) {
        Keep(x);
      } else {
        HR_RETURN_IF_ERROR(Reject("randn"));
      }
    }
    return OkStatus();
  }

  // A group of places between the bounds, then one of odds to keep them.
  Status ByUniform(Stream<T>& uniform) {
    // The density's largest value in the interval stands at 0 or, where 0 lies
    // to the left, at the lower bound.
    const C plus = low_ < 0 ? 0 : low_ * low_;
    while (true) {
      C place[kPerGroup];
      for (C& z : place) {
        z = static_cast<C>(uniform.Next()) * (high_ - low_) + low_;
      }
      C odds[kPerGroup];
      for (C& u : odds) u = static_cast<C>(uniform.Next());
      for (int i = 0; i < kPerGroup; ++i) {
        const C g = (plus - place[i] * place[i]) / 2;
        if (odds[i] <= std::exp(g)) {
          // The rest of the group is thrown away, as upstream throws it.
          if (Keep(place[i])) return OkStatus();
        } else {
          HR_RETURN_IF_ERROR(Reject("uniform"));
        }
      }
    }
  }

  // Exponential numbers right of the lower bound, likely as they may be kept.
  Status ByExponential(Stream<T>& uniform) {
    // Robert's best rate for an exponential proposal that begins at the lower
    // bound.
    const C alpha = (low_ + std::sqrt(low_ * low_ + 4)) / 2;
    while (true) {
      // The inverse of the exponential distribution, moved to the bound.
      const C z = -std::log(static_cast<C>(uniform.Next())) / alpha + low_;
      const C u = static_cast<C>(uniform.Next());
      const C x = low_ < alpha ? alpha - z : low_ - alpha;
      const C g = std::exp(-x * x / 2);
      if (u <= g && z < high_) {
        if (Keep(z)) return OkStatus();
      } else {
        HR_RETURN_IF_ERROR(Reject("exponential distribution"));
      }
    }
  }

  Philox* const at_;
  T* const out_;
  const int64_t count_, stride_;
  Bounds bounds_{};
  C low_ = 0, high_ = 0;
  int64_t kept_ = 0, rejected_ = 0;
};

// Groups that a run sets aside for a batch of `count` numbers.
uint64_t StretchOf(int64_t count) {
  // Two numbers for each try, four numbers in a group of words.
  return static_cast<uint64_t>(2 * kMostRejections * (count + 3) / 4);
}

double BroadcastAt(const Tensor& t, int64_t i) {
  double v = 0;
  DispatchDType(t.dtype(), Floats{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    v = static_cast<double>(t.data<T>()[t.num_elements() == 1 ? 0 : i]);
  });
  return v;
}

// Calls fill(T tag, batch) for each batch, in order; the first error.
template <typename F>
Status ForBatches(DType dtype, int64_t batches, const F& fill) {
  Status status;
  DispatchDType(dtype, Floats{}, [&](auto tag) {
    // One after another: each batch begins in the stream where the last one
    // stopped, which is known only then.
    for (int64_t b = 0; b < batches && status.ok(); ++b) status = fill(tag, b);
  });
  return status;
}

// Inputs first..first+3 are means, deviations, lower and upper bounds.
Bounds BoundsAt(const KernelContext& c, int first, int64_t i) {
  return {BroadcastAt(c.input(first), i), BroadcastAt(c.input(first + 1), i),
          BroadcastAt(c.input(first + 2), i),
          BroadcastAt(c.input(first + 3), i)};
}

class ParameterizedTruncatedNormal : public Kernel {
 public:
  explicit ParameterizedTruncatedNormal(const ResolvedOp& op)
      : generator_(op) {}
  Status Run(KernelContext& c) override {
    HR_RETURN_IF_ERROR(AllocateFrom(c, 0));
    Tensor& out = c.output(0);
    if (out.rank() == 0) {
      return InvalidArgument("Shape tensor must not be empty, got ",
                             c.input(0).Describe());
    }
    const int64_t n = out.num_elements();
    if (n == 0) return OkStatus();
    int64_t batches = out.shape()[0];
    HR_ASSIGN_OR_RETURN(const bool scalars, CheckParameters(c, batches));
    int64_t each = n / batches;
    // Upstream cuts the numbers into batches of this size when they all share
    // their parameters; the cuts decide what is drawn.
    if (scalars) {
      each = std::min(kScalarBatch, n);
      if (n > kScalarBatch || batches > 1) each = kScalarBatch;
      batches = (n + each - 1) / each;
    }
    HR_ASSIGN_OR_RETURN(
        Philox at,
        generator_.Reserve(static_cast<uint64_t>(batches) * StretchOf(each)));
    return ForBatches(out.dtype(), batches, [&](auto tag, int64_t b) -> Status {
      using T = typename decltype(tag)::type;
      const int64_t count = std::min(each, n - b * each);
      return Batch<T>(&at, out.data<T>() + b * each, count, 1)
          .Fill(BoundsAt(c, 1, b));
    });
  }

 private:
  // Whether all parameters are single numbers.
  static StatusOr<bool> CheckParameters(const KernelContext& c,
                                        int64_t batches) {
    constexpr const char* kNames[] = {"means", "stdevs", "minvals", "maxvals"};
    bool scalars = true;
    for (int i = 0; i < 4; ++i) {
      const Tensor& t = c.input(i + 1);
      const int64_t n = t.num_elements();
      if (t.rank() > 1 || (n != 1 && n != batches)) {
        return InvalidArgument(
            "Input ", kNames[i],
            " should have length 1 or shape[0], got shape: ", t.shape());
      }
      scalars = scalars && n == 1;
    }
    return scalars;
  }
  SeededGenerator generator_;
};

HR_OP(ParameterizedTruncatedNormal)
    .Input("shape: T")
    .Input("means: dtype")
    .Input("stdevs: dtype")
    .Input("minvals: dtype")
    .Input("maxvals: dtype")
    .Output("output: dtype")
    .Attr("seed: int = 0")
    .Attr("seed2: int = 0")
    .Attr("dtype: {half, bfloat16, float, double}")
    .Attr("T: {int32, int64}")
    .Doc("Normal numbers between bounds; each row has its own parameters.")
    .Traits({OpTrait::kNoEffect})
    .Stateful()
    .Shape([](ShapeContext& c) { return RandomShape(c, 0); })
    .NoGradient()
    .Cpu(Bind<ParameterizedTruncatedNormal>);

// Where the parameters of place `k` of `all` stand in a tensor of shape `t`.
int64_t BroadcastIndex(const Shape& all, const Shape& t, int64_t k) {
  int64_t at = 0, stride = 1;
  for (int d = all.rank() - 1, e = t.rank() - 1; e >= 0; --d, --e) {
    if (t[e] != 1) at += k % all[d] * stride;
    k /= all[d];
    stride *= t[e];
  }
  return at;
}

Status StatelessBounded(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(Philox at, StatelessGenerator(c.input(1)));
  HR_RETURN_IF_ERROR(AllocateFrom(c, 0));
  Tensor& out = c.output(0);
  Shape all;
  for (int i = 2; i < 6; ++i) {
    HR_ASSIGN_OR_RETURN(all, BroadcastShapes(all, c.input(i).shape()));
  }
  const int extra = out.rank() - all.rank();
  if (extra < 0 || out.shape().Sub(extra, out.rank()) != all) {
    return InvalidArgument("Shape passed in must end with broadcasted shape.");
  }
  const int64_t n = out.num_elements();
  if (n == 0) return OkStatus();
  const int64_t batches = all.num_elements(), each = n / batches;
  return ForBatches(out.dtype(), batches, [&](auto tag, int64_t b) -> Status {
    using T = typename decltype(tag)::type;
    auto parameter = [&](int i) {
      return BroadcastAt(c.input(i),
                         BroadcastIndex(all, c.input(i).shape(), b));
    };
    // Number k of parameter b stands at b + k * batches: the parameters' shape
    // is the end of the output's.
    return Batch<T>(&at, out.data<T>() + b, each, batches)
        .Fill({parameter(2), parameter(3), parameter(4), parameter(5)});
  });
}

HR_OP(StatelessParameterizedTruncatedNormal)
    .Input("shape: S")
    .Input("seed: Tseed")
    .Input("means: dtype")
    .Input("stddevs: dtype")
    .Input("minvals: dtype")
    .Input("maxvals: dtype")
    .Output("output: dtype")
    .Attr("S: {int32, int64}")
    .Attr("Tseed: {int32, int64} = DT_INT64")
    .Attr("dtype: {half, bfloat16, float, double}")
    .Doc("Normal numbers of a seed between bounds.")
    .Shape(SeedShape)
    .NoGradient()
    .Vectorize(VectorizeInLoop)
    .Cpu(Compute<StatelessBounded>);

}  // namespace
}  // namespace headrace
