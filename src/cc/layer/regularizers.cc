#include "headrace/layer/regularizers.h"

#include <cmath>
#include <map>

#include "cc/compose.h"

namespace headrace::tf {

using internal::Op;
using internal::Throw;

namespace {

// As a float32, which Keras makes of it.
double Checked(double factor, const char* name) {
  if (std::isfinite(factor)) return static_cast<float>(factor);
  Throw(ErrorCode::kInvalidArgument,
        absl::StrCat("Value: ", factor,
                     " is not a valid regularization penalty number, expected "
                     "an int or float value for argument ",
                     name, "."));
}

Tensor Absolute(const Tensor& w, double factor) {
  return factor * internal::SumAll(Op("Abs", {w}));
}
Tensor Squared(const Tensor& w, double factor) {
  return 2.0 * factor * Op("L2Loss", {w});
}

Tensor Alignment(const Tensor& w, double factor, bool rows) {
  const TensorShape shape = w.shape();
  if (shape.rank() != 2 || shape[0] < 0 || shape[1] < 0) {
    Throw(ErrorCode::kInvalidArgument,
          "Inputs to OrthogonalRegularizer must have rank 2. Received: "
          "inputs.shape=" +
              shape.ToString());
  }
  const Tensor squares = internal::Reduce("Sum", Op("Square", {w}),
                                          {rows ? 1 : 0}, /*keep_dims=*/true);
  const Tensor x =
      w * Op("Rsqrt",
             {Op("Maximum", {squares, internal::Number(w.dtype(), 1e-12)})});
  const Tensor products =
      Op("MatMul", {x, x}, {{"transpose_a", !rows}, {"transpose_b", rows}});
  const int64_t size = shape[rows ? 0 : 1];
  const Tensor off =
      Op("MatrixSetDiagV3",
         {products, internal::Full(w.dtype(), {size}, 0), internal::Int(0)});
  const double count = static_cast<double>(size);
  const double pairs = std::max(count * (count - 1) / 2, 1.0);
  return factor * 0.5 * internal::SumAll(Op("Abs", {off})) / pairs;
}

using RegularizerMaker = Regularizer (*)();

const std::map<std::string, RegularizerMaker>& NamedRegularizers() {
  using namespace regularizers;  // NOLINT
  static const auto* const named = new std::map<std::string, RegularizerMaker>{
      {"l1", [] { return L1(); }},
      {"l2", [] { return L2(); }},
      {"l1_l2", [] { return L1L2(); }},
      {"orthogonal_regularizer", [] { return Orthogonal(); }},
  };
  return *named;
}

}  // namespace

Regularizer::Regularizer(const std::string& name) {
  const auto found = NamedRegularizers().find(name);
  if (found == NamedRegularizers().end()) {
    Throw(ErrorCode::kInvalidArgument, "Unknown regularizer: '" + name + "'.");
  }
  *this = found->second();
}

namespace regularizers {

Regularizer L1(double l1) {
  l1 = Checked(l1, "l1");
  return Regularizer([l1](const Tensor& w) { return Absolute(w, l1); });
}

Regularizer L2(double l2) {
  l2 = Checked(l2, "l2");
  return Regularizer([l2](const Tensor& w) { return Squared(w, l2); });
}

Regularizer L1L2(double l1, double l2) {
  l1 = Checked(l1, "l1");
  l2 = Checked(l2, "l2");
  return Regularizer([l1, l2](const Tensor& w) {
    Tensor out = internal::Number(w.dtype(), 0);
    if (l1 != 0) out = out + Absolute(w, l1);
    if (l2 != 0) out = out + Squared(w, l2);
    return out;
  });
}

Regularizer Orthogonal(double factor, const std::string& mode) {
  factor = Checked(factor, "factor");
  if (mode != "rows" && mode != "columns") {
    Throw(ErrorCode::kInvalidArgument,
          "Invalid value for argument `mode`. Expected one of {\"rows\", "
          "\"columns\"}. Received: mode=" +
              mode);
  }
  const bool rows = mode == "rows";
  return Regularizer(
      [=](const Tensor& w) { return Alignment(w, factor, rows); });
}

}  // namespace regularizers
}  // namespace headrace::tf
