#include "headrace/layer/initializers.h"

#include <cmath>
#include <map>
#include <memory>

#include "base/mutex.h"
#include "cc/compose.h"
#include "cc/seeds.h"

namespace headrace::tf {

using internal::Full;
using internal::Number;
using internal::Op;
using internal::Throw;

namespace {

constexpr double kStddevTruncated = 0.87962566103423978;  // cut at 2 deviations

// A seed that is drawn at its first use unless it was given.
class LazySeed {
 public:
  explicit LazySeed(std::optional<int64_t> given) : seed_(given) {}
  int64_t get() {
    MutexLock lock(mutex_);
    if (!seed_) seed_ = internal::NewSeed();
    return *seed_;
  }

 private:
  Mutex mutex_;
  std::optional<int64_t> seed_ ABSL_GUARDED_BY(mutex_);
};

void CheckFloating(DType dtype) {
  if (internal::IsFloating(dtype)) return;
  Throw(ErrorCode::kInvalidArgument,
        "Expected float or integer dtype, got " + DTypeName(dtype) + ".");
}

void CheckShape(const TensorShape& shape) {
  bool known = shape.known_rank;
  for (const int64_t d : shape.dims) known = known && d >= 0;
  if (known) return;
  Throw(ErrorCode::kInvalidArgument,
        "a weight of shape " + shape.ToString() + " cannot be initialized");
}

Tensor Draw(const char* op, const TensorShape& shape, DType dtype,
            int64_t seed) {
  const std::vector<Tensor> key = internal::OpAll(
      "StatelessRandomGetKeyCounter", {Tensor::From<int64_t>({seed, 0})});
  return Op(op, {Tensor::From(shape.dims), key[0], key[1], Tensor(1)},
            {{"dtype", internal::Core(dtype)}});
}

Tensor Uniform(const TensorShape& shape, DType dtype, int64_t seed, double low,
               double high) {
  const Tensor drawn = Draw("StatelessRandomUniformV2", shape, dtype, seed);
  const Tensor from = Number(dtype, low);
  return drawn * (Number(dtype, high) - from) + from;
}

Tensor Normal(const char* op, const TensorShape& shape, DType dtype,
              int64_t seed, double mean, double stddev) {
  return Draw(op, shape, dtype, seed) * Number(dtype, stddev) +
         Number(dtype, mean);
}

constexpr char kNormal[] = "StatelessRandomNormalV2";
constexpr char kTruncated[] = "StatelessTruncatedNormalV2";

// fn(shape, dtype, seed) of float dtypes as an initializer.
template <typename F>
Initializer Random(std::optional<int64_t> seed, F fn) {
  auto lazy = std::make_shared<LazySeed>(seed);
  return Initializer(
      [lazy, fn](const TensorShape& shape, DType dtype) {
        CheckFloating(dtype);
        CheckShape(shape);
        return fn(shape, dtype, lazy->get());
      },
      [seed, fn] { return Random(seed, fn); });
}

std::pair<double, double> FansOf(const TensorShape& shape) {
  const int rank = shape.rank();
  if (rank == 0) return {1, 1};
  if (rank == 1) return {shape[0], shape[0]};
  double field = 1;
  // Kernels of convolutions: each unit sees its channels at all places of the
  // window.
  for (int i = 0; i + 2 < rank; ++i) field *= shape[i];
  return {shape[rank - 2] * field, shape[rank - 1] * field};
}

Tensor OrthogonalOf(const TensorShape& shape, DType dtype, int64_t seed,
                    double gain) {
  if (shape.rank() < 2) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("The tensor to initialize must be at least "
                       "two-dimensional. Received: shape=",
                       shape.ToString(), " of rank ", shape.rank(), "."));
  }
  int64_t rows = 1;
  for (int i = 0; i + 1 < shape.rank(); ++i) rows *= shape[i];
  const int64_t cols = shape[shape.rank() - 1];
  // Tall: only then are Q's columns as many as those of the weight.
  const TensorShape flat{std::max(rows, cols), std::min(rows, cols)};
  const std::vector<Tensor> qr =
      internal::OpAll("Qr", {Normal(kNormal, flat, dtype, seed, 0, 1)},
                      {{"full_matrices", false}});
  const Tensor diagonal =
      Op("MatrixDiagPartV3", {qr[1], Tensor(0), Number(dtype, 0)});
  // A QR decomposition is unique up to signs. With R's diagonal positive Q is
  // drawn evenly from all orthogonal matrices (Mezzadri, 2007), whatever signs
  // the library chooses.
  Tensor q = qr[0] * Op("Sign", {diagonal});
  if (rows < cols) q = internal::Transpose(q, {1, 0});
  return Number(dtype, gain) * internal::Reshape(q, shape.dims);
}

using InitializerMaker = Initializer (*)();
template <Initializer (*F)(std::optional<int64_t>)>
Initializer Unseeded() {
  return F({});
}

const std::map<std::string, InitializerMaker>& NamedInitializers() {
  using namespace initializers;  // NOLINT
  static const auto* const named = new std::map<std::string, InitializerMaker>{
      {"zeros", Zeros},
      {"zero", Zeros},
      {"ones", Ones},
      {"one", Ones},
      {"glorot_uniform", Unseeded<GlorotUniform>},
      {"glorot_normal", Unseeded<GlorotNormal>},
      {"lecun_uniform", Unseeded<LecunUniform>},
      {"lecun_normal", Unseeded<LecunNormal>},
      {"he_uniform", Unseeded<HeUniform>},
      {"he_normal", Unseeded<HeNormal>},
      {"uniform", [] { return RandomUniform(); }},
      {"random_uniform", [] { return RandomUniform(); }},
      {"normal", [] { return RandomNormal(); }},
      {"random_normal", [] { return RandomNormal(); }},
      {"truncated_normal", [] { return TruncatedNormal(); }},
      {"variance_scaling", [] { return VarianceScaling(); }},
      {"orthogonal", [] { return Orthogonal(); }},
      {"identity", [] { return Identity(); }},
  };
  return *named;
}

}  // namespace

Initializer::Initializer(const std::string& name) {
  const auto found = NamedInitializers().find(name);
  if (found == NamedInitializers().end()) {
    Throw(ErrorCode::kInvalidArgument, "Unknown initializer: '" + name + "'.");
  }
  *this = found->second();
}

namespace initializers {

Initializer Constant(double value) {
  return Initializer([value](const TensorShape& shape, DType dtype) {
    CheckShape(shape);
    return Full(dtype, shape, value);
  });
}
Initializer Zeros() { return Constant(0); }
Initializer Ones() { return Constant(1); }

Initializer RandomUniform(double minval, double maxval, Seed seed) {
  return Random(seed, [=](const TensorShape& shape, DType dtype, int64_t s) {
    return Uniform(shape, dtype, s, minval, maxval);
  });
}

Initializer RandomNormal(double mean, double stddev, Seed seed) {
  return Random(seed, [=](const TensorShape& shape, DType dtype, int64_t s) {
    return Normal(kNormal, shape, dtype, s, mean, stddev);
  });
}

Initializer TruncatedNormal(double mean, double stddev, Seed seed) {
  return Random(seed, [=](const TensorShape& shape, DType dtype, int64_t s) {
    return Normal(kTruncated, shape, dtype, s, mean, stddev);
  });
}

Initializer VarianceScaling(double scale, const std::string& mode,
                            const std::string& distribution, Seed seed) {
  if (!(scale > 0)) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat(
              "`scale` must be positive float. Received: scale=", scale, "."));
  }
  if (mode != "fan_in" && mode != "fan_out" && mode != "fan_avg") {
    Throw(ErrorCode::kInvalidArgument,
          "Invalid `mode` argument: " + mode +
              ". Please use one of {'fan_in', 'fan_out', 'fan_avg'}.");
  }
  const bool uniform = distribution == "uniform";
  const bool untruncated = distribution == "untruncated_normal";
  if (!uniform && !untruncated && distribution != "truncated_normal" &&
      distribution != "normal") {
    Throw(ErrorCode::kInvalidArgument,
          "Invalid `distribution` argument: " + distribution + ".");
  }
  return Random(seed, [=](const TensorShape& shape, DType dtype, int64_t s) {
    const auto [in, out] = FansOf(shape);
    const double fans = mode == "fan_in"    ? in
                        : mode == "fan_out" ? out
                                            : (in + out) / 2;
    // 1 at least: weights with an axis of size 0 divide by no zero.
    const double variance = scale / std::max(1.0, fans);
    if (uniform) {
      // An even distribution from -l to l has the variance l^2 / 3.
      const double limit = std::sqrt(3 * variance);
      return Uniform(shape, dtype, s, -limit, limit);
    }
    const double stddev = std::sqrt(variance);
    if (untruncated) return Normal(kNormal, shape, dtype, s, 0, stddev);
    // Cutting the tails off makes the deviation smaller: made up for before.
    return Normal(kTruncated, shape, dtype, s, 0, stddev / kStddevTruncated);
  });
}

Initializer GlorotUniform(Seed seed) {
  return VarianceScaling(1, "fan_avg", "uniform", seed);
}
Initializer GlorotNormal(Seed seed) {
  return VarianceScaling(1, "fan_avg", "truncated_normal", seed);
}
Initializer LecunUniform(Seed seed) {
  return VarianceScaling(1, "fan_in", "uniform", seed);
}
Initializer LecunNormal(Seed seed) {
  return VarianceScaling(1, "fan_in", "truncated_normal", seed);
}
Initializer HeUniform(Seed seed) {
  return VarianceScaling(2, "fan_in", "uniform", seed);
}
Initializer HeNormal(Seed seed) {
  return VarianceScaling(2, "fan_in", "truncated_normal", seed);
}

Initializer Orthogonal(double gain, Seed seed) {
  return Random(seed, [=](const TensorShape& shape, DType dtype, int64_t s) {
    return OrthogonalOf(shape, dtype, s, gain);
  });
}

Initializer Identity(double gain) {
  return Initializer([gain](const TensorShape& shape, DType dtype) {
    CheckFloating(dtype);
    CheckShape(shape);
    if (shape.rank() != 2) {
      Throw(ErrorCode::kInvalidArgument,
            absl::StrCat("Identity matrix initializer can only be used for 2D "
                         "matrices. Received: shape=",
                         shape.ToString(), " of rank ", shape.rank(), "."));
    }
    const int64_t least = std::min(shape[0], shape[1]);
    const Tensor zeros = Full(dtype, shape, 0);
    return Op("MatrixSetDiagV3",
              {zeros, Full(dtype, {least}, gain), Tensor(0)});
  });
}

}  // namespace initializers
}  // namespace headrace::tf
