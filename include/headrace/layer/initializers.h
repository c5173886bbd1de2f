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

// A function from shape and dtype to a tensor; copies are cheap, share a drawn
// seed, and so give the same values. Thread-safe when its function is, as those
// below are. Calls throw kInvalidArgument for shapes that are not fully known
// and for dtypes that the distribution does not have (random ones and Identity:
// floats alone).
class HR_API Initializer {
 public:
  using Function = std::function<Tensor(const TensorShape&, DType)>;
  Initializer(Function function) : function_(std::move(function)) {}  // NOLINT
  // `renewed` makes what Renewed gives.
  Initializer(Function function, std::function<Initializer()> renewed)
      : function_(std::move(function)), renewed_(std::move(renewed)) {}
  // By the name that Keras knows it by: "zeros", "ones", "glorot_uniform",
  // "glorot_normal", "lecun_uniform", "lecun_normal", "he_uniform",
  // "he_normal", "uniform", "normal" (and these with "random_"),
  // "truncated_normal", "variance_scaling", "orthogonal", "identity". Others
  // throw kInvalidArgument.
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

// Values of any number dtype; of bool, one that is not zero is true.
HR_API Initializer Zeros();
HR_API Initializer Ones();
HR_API Initializer Constant(double value);
// In [minval, maxval).
HR_API Initializer RandomUniform(double minval = -0.05, double maxval = 0.05,
                                 Seed seed = {});
// Normal values of that mean and standard deviation.
HR_API Initializer RandomNormal(double mean = 0, double stddev = 0.05,
                                Seed seed = {});
// The same, but none beyond two standard deviations: such values are drawn
// again.
HR_API Initializer TruncatedNormal(double mean = 0, double stddev = 0.05,
                                   Seed seed = {});
// Mean 0 and a variance of scale / n, n by `mode` the number of inputs
// ("fan_in"), of outputs ("fan_out") or their mean ("fan_avg"); of a kernel
// [sizes..., in, out] these are in and out times the product of the sizes.
// `distribution` is one of "truncated_normal" (widened, so that the variance
// holds in spite of the cut), "untruncated_normal", "uniform". Throws
// kInvalidArgument for other names and a scale of 0 or less.
HR_API Initializer VarianceScaling(
    double scale = 1, const std::string& mode = "fan_in",
    const std::string& distribution = "truncated_normal", Seed seed = {});
// VarianceScaling of scale 1 by fan_avg (Glorot and Bengio, 2010), of scale 1
// by fan_in (LeCun et al., 1998) and of scale 2 by fan_in (He et al., 2015).
HR_API Initializer GlorotUniform(Seed seed = {});
HR_API Initializer GlorotNormal(Seed seed = {});
HR_API Initializer LecunUniform(Seed seed = {});
HR_API Initializer LecunNormal(Seed seed = {});
HR_API Initializer HeUniform(Seed seed = {});
HR_API Initializer HeNormal(Seed seed = {});
// Of two or more axes: all but the last flattened, rows or columns (whichever
// are fewer) are orthogonal with norms of `gain` (Saxe et al., 2014).
// kInvalidArgument for fewer axes.
HR_API Initializer Orthogonal(double gain = 1, Seed seed = {});
// Of two axes, square or not: `gain` on the diagonal, else 0. kInvalidArgument
// for other numbers of axes.
HR_API Initializer Identity(double gain = 1);

}  // namespace initializers
}  // namespace headrace::tf
