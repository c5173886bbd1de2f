// What weights start from: tf.keras.initializers. For one seed, shape and dtype
// the values are the same as in Python, bit by bit.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "headrace/tensor.h"

namespace headrace::tf {

// A function from shape and dtype to a tensor; copies are cheap. Thread-safe
// when its function is. Calls throw kInvalidArgument for shapes or dtypes that
// the distribution does not have.
class HR_API Initializer {
 public:
  using Function = std::function<Tensor(const TensorShape&, DType)>;
  Initializer(Function function) : function_(std::move(function)) {}  // NOLINT
  // `renewed` makes what Renewed gives.
  Initializer(Function function, std::function<Initializer()> renewed)
      : function_(std::move(function)), renewed_(std::move(renewed)) {}
  // By the name that Keras knows it by: "glorot_uniform", "zeros", ...
  Initializer(const std::string& name);                              // NOLINT
  Initializer(const char* name) : Initializer(std::string(name)) {}  // NOLINT

  Tensor operator()(const TensorShape& shape,
                    DType dtype = DType::kFloat32) const {
    return function_(shape, dtype);
  }
  // One of the same kind that draws a seed of its own, unless a seed was given:
  // for further weights of the same options.
  Initializer Renewed() const { return renewed_ ? renewed_() : *this; }

 private:
  Function function_;
  std::function<Initializer()> renewed_;
};

// Seeds that are not given are drawn when the initializer is first called
// (SetRandomSeed); an initializer gives the same values at every call with the
// same shape.
namespace initializers {

using Seed = std::optional<int64_t>;

HR_API Initializer Zeros();
HR_API Initializer Ones();
HR_API Initializer Constant(double value);
HR_API Initializer RandomUniform(double minval = -0.05, double maxval = 0.05,
                                 Seed seed = {});
HR_API Initializer RandomNormal(double mean = 0, double stddev = 0.05,
                                Seed seed = {});
// None beyond two deviations.
HR_API Initializer TruncatedNormal(double mean = 0, double stddev = 0.05,
                                   Seed seed = {});
// A variance of scale / n, n by `mode` ("fan_in", "fan_out", "fan_avg") and
// `distribution` one of "truncated_normal", "untruncated_normal", "uniform".
HR_API Initializer VarianceScaling(
    double scale = 1, const std::string& mode = "fan_in",
    const std::string& distribution = "truncated_normal", Seed seed = {});
HR_API Initializer GlorotUniform(Seed seed = {});
HR_API Initializer GlorotNormal(Seed seed = {});
HR_API Initializer LecunUniform(Seed seed = {});
HR_API Initializer LecunNormal(Seed seed = {});
HR_API Initializer HeUniform(Seed seed = {});
HR_API Initializer HeNormal(Seed seed = {});
// Of two or more axes.
HR_API Initializer Orthogonal(double gain = 1, Seed seed = {});
// Of two axes.
HR_API Initializer Identity(double gain = 1);

}  // namespace initializers
}  // namespace headrace::tf
