// Multinomial, StatelessMultinomial: classes drawn by their logits.
#include <algorithm>
#include <cmath>

#include "op/shared_refusal.h"
#include "op/vectorize.h"
#include "ops/random/generator.h"

namespace headrace {
namespace {

// Sums of exp(logit - most) over the classes; infinite and NaN logits are
// classes that never come up.
template <typename T>
double Cumulate(const T* logits, int64_t classes, std::vector<double>* sums) {
  double most = -HUGE_VAL;
  for (int64_t j = 0; j < classes; ++j) {
    const double x = static_cast<double>(logits[j]);
    // The largest logit is subtracted so that exp cannot overflow.
    if (std::isfinite(x)) most = std::max(most, x);
  }
  double total = 0;
  for (int64_t j = 0; j < classes; ++j) {
    const double x = static_cast<double>(logits[j]);
    if (std::isfinite(x)) total += std::exp(x - most);
    (*sums)[j] = total;
  }
  return total;
}

template <typename T>
void DrawClasses(const Tensor& logits, const Philox& generator, Tensor& out) {
  const int64_t rows = logits.dim(0), classes = logits.dim(1);
  const int64_t samples = out.dim(1);
  std::vector<double> sums(classes);
  PhiloxWords words(generator);
  for (int64_t r = 0; r < rows; ++r) {
    const double total =
        Cumulate(logits.data<T>() + r * classes, classes, &sums);
    for (int64_t k = 0; k < samples; ++k) {
      const double at = words.NextDouble() * total;
      // The first sum above the number drawn; classes that never come up add
      // nothing and are passed over.
      int64_t found =
          std::upper_bound(sums.begin(), sums.end(), at) - sums.begin();
      // Rounding may bring `at` up to the total.
      found = std::min(found, classes - 1);
      if (out.dtype() == DType::kInt64) {
        out.data<int64_t>()[r * samples + k] = found;
      } else {
        out.data<int32_t>()[r * samples + k] = static_cast<int32_t>(found);
      }
    }
  }
}

Status CheckMultinomial(const KernelContext& c) {
  const Tensor& logits = c.input(0);
  const int32_t samples = c.input(1).scalar<int32_t>();
  if (samples < 0) {
    return InvalidArgument("num_samples should be non-negative, got ", samples);
  }
  if (logits.dim(0) > 0 && logits.dim(1) <= 0) {
    return InvalidArgument("num_classes should be positive, got ",
                           logits.dim(1));
  }
  return OkStatus();
}

Status DrawClasses(KernelContext& c, const Philox& generator) {
  HR_RETURN_IF_ERROR(
      c.Allocate(0, Shape{c.input(0).dim(0), c.input(1).scalar<int32_t>()}));
  if (c.output(0).num_elements() == 0) return OkStatus();
  DispatchDType(c.input(0).dtype(), RealTypes{}, [&](auto tag) {
    DrawClasses<typename decltype(tag)::type>(c.input(0), generator,
                                              c.output(0));
  });
  return OkStatus();
}

Status MultinomialShape(ShapeContext& c) {
  if (c.input(0).known_rank() && c.input(0).rank() != 2) {
    return InvalidArgument("logits should be a matrix, got shape ", c.input(0));
  }
  if (c.input(1).known_rank() && c.input(1).rank() != 0) {
    return InvalidArgument("num_samples should be a scalar, got shape ",
                           c.input(1));
  }
  bool known = false;
  int64_t samples = Shape::kUnknown;
  HR_RETURN_IF_ERROR(c.IntValue(1, &known, &samples));
  if (c.in_graph() && known && samples < 0) {
    return c.Refuse(
        NegativeSize(1, samples),
        InvalidArgument("num_samples should be nonnegative, got ", samples));
  }
  Shape s{c.input(0).known_rank() ? c.input(0)[0] : Shape::kUnknown,
          // Eager calls refuse a negative count in the kernel.
          known && samples >= 0 ? samples : Shape::kUnknown};
  c.set_output(0, std::move(s));
  return OkStatus();
}

class Multinomial : public Kernel {
 public:
  explicit Multinomial(const ResolvedOp& op) : generator_(op) {}
  bool own_outputs() const override { return true; }
  Status Run(KernelContext& c) override {
    HR_RETURN_IF_ERROR(CheckMultinomial(c));
    // Upstream sets aside two words a sample, rounded up to whole groups.
    const int64_t samples = (c.input(1).scalar<int32_t>() + int64_t{3}) / 4 * 4;
    HR_ASSIGN_OR_RETURN(
        const Philox generator,
        generator_.ReserveOutputs(c.input(0).dim(0) * samples * 2));
    return DrawClasses(c, generator);
  }

 private:
  SeededGenerator generator_;
};

Status VectorizeMultinomial(VectorizeContext& c) {
  HR_RETURN_IF_ERROR(c.WantShared(1));
  Value logits = c.Stacked(0);
  ValueList y = c.Again({c.Fold(logits), c.input(1)});
  HR_RETURN_IF_ERROR(c.status());
  return c.Set(c.Unfold(y[0], logits));
}

HR_OP(Multinomial)
    .Input("logits: T")
    .Input("num_samples: int32")
    .Output("output: output_dtype")
    .Attr("seed: int = 0")
    .Attr("seed2: int = 0")
    .Attr("T: realnumbertype")
    .Attr("output_dtype: {int32, int64} = DT_INT64")
    .Doc("Classes drawn for each row of logits.")
    .Traits({OpTrait::kNoEffect})
    .Stateful()
    .Shape(MultinomialShape)
    .NoGradient()
    .Traits({OpTrait::kOnePerRow})
    .Vectorize(VectorizeMultinomial)
    .Cpu(Bind<Multinomial>);

Status StatelessDraw(KernelContext& c) {
  HR_RETURN_IF_ERROR(CheckMultinomial(c));
  HR_ASSIGN_OR_RETURN(Philox generator, StatelessGenerator(c.input(2)));
  return DrawClasses(c, generator);
}

Status StatelessMultinomialShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckSeedShape(c.input(2)));
  return MultinomialShape(c);
}

HR_OP(StatelessMultinomial)
    .Input("logits: T")
    .Input("num_samples: int32")
    .Input("seed: Tseed")
    .Output("output: output_dtype")
    .Attr("T: realnumbertype")
    .Attr("Tseed: {int32, int64} = DT_INT64")
    .Attr("output_dtype: {int32, int64} = DT_INT64")
    .Doc("Classes of a seed, drawn for each row of logits.")
    .Shape(StatelessMultinomialShape)
    .NoGradient()
    .Vectorize(VectorizeInLoop)
    .Cpu(ComputeOwn<StatelessDraw>);

}  // namespace
}  // namespace headrace
