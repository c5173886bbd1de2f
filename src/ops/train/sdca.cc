// SdcaOptimizer, SdcaOptimizerV2, SdcaShrinkL1, SdcaFprint: linear models by
// stochastic dual coordinate ascent (Shalev-Shwartz and Zhang).
#include <algorithm>
#include <atomic>
#include <numeric>

#include "op/op.h"
#include "op/op_like.h"
#include "ops/random/generator.h"
#include "ops/state/variable_access.h"
#include "ops/string/hash.h"
#include "ops/train/sdca_loss.h"
#include "ops/train/sdca_model.h"

namespace headrace {
namespace {

constexpr int kStateWidth = 4;  // dual variable, primal loss, dual loss, weight

// One pass over the examples. (num_inner_iterations is not read, as upstream.)
class SdcaKernel : public Kernel {
 public:
  explicit SdcaKernel(const ResolvedOp& op)
      : loss_(SdcaLossOf(op.string_attr("loss_type"))),
        penalty_{op.float_attr("l1"), op.float_attr("l2")},
        partitions_(static_cast<double>(op.int_attr("num_loss_partitions"))),
        adaptive_(op.bool_attr(op.attrs().Find("adaptive") ? "adaptive"
                                                           : "adaptative")) {}

  Status Run(KernelContext& c) override {
    HR_ASSIGN_OR_RETURN(SdcaModel model, SdcaModel::Make(c));
    const size_t n = model.examples().size();
    std::vector<double> labels(n);
    for (size_t i = 0; i < n; ++i) {
      HR_ASSIGN_OR_RETURN(labels[i], loss_.Label(model.examples()[i].label));
    }
    const Tensor& given = c.input(c.num_inputs() - 1);
    std::copy_n(given.data<float>(), n * kStateWidth, c.out<float>(0));
    // Another order at each run, the same in each program.
    PhiloxWords words(Philox(runs_.fetch_add(1), 0));
    std::vector<size_t> order(n);
    std::iota(order.begin(), order.end(), size_t{0});
    if (adaptive_) {
      order = Urgent(model, labels, given, words);
    } else {
      for (size_t i = n; i > 1; --i) {
        std::swap(order[i - 1],
                  order[words.NextBelow(static_cast<uint32_t>(i))]);
      }
    }
    for (const size_t i : order) {
      HR_RETURN_IF_ERROR(c.CheckCancelled());
      Step(model, i, labels[i], c.out<float>(0) + i * kStateWidth);
    }
    return OkStatus();
  }

 private:
  void Step(SdcaModel& model, size_t i, double label, float* state) const {
    const SdcaExample& e = model.examples()[i];
    const double dual = state[0];
    const SdcaStep s{label,
                     e.weight,
                     dual,
                     model.Predict(e, penalty_, partitions_),
                     e.squared_norm / penalty_.l2,
                     partitions_};
    const double best = loss_.BestDual(s);
    model.Learn(e, (best - dual) * e.weight / penalty_.l2);
    state[0] = static_cast<float>(best);
    // The loss of the weights as they came.
    state[1] = static_cast<float>(
        loss_.Primal(model.Predict(e, penalty_, 0), label, e.weight));
    state[2] = static_cast<float>(loss_.Dual(dual, label, e.weight));
    state[3] = e.weight;
  }

  // Examples drawn with the probabilities of how far their dual variables are
  // from the best ones, some of them more than once.
  std::vector<size_t> Urgent(const SdcaModel& model,
                             const std::vector<double>& labels,
                             const Tensor& given, PhiloxWords& words) const {
    const size_t n = labels.size();
    std::vector<double> sums(n);
    double sum = 0;
    for (size_t i = 0; i < n; ++i) {
      const SdcaExample& e = model.examples()[i];
      const double off =
          given.data<float>()[i * kStateWidth] +
          loss_.Derivative(model.Predict(e, penalty_, partitions_), labels[i]);
      const double urgency =
          e.weight *
          std::sqrt(e.squared_norm + penalty_.l2 * loss_.Smoothness()) *
          std::abs(off);
      if (urgency > 0) sum += urgency;
      sums[i] = sum;
    }
    std::vector<size_t> order;
    std::vector<int> picked(n, 0);
    // One that was picked k times is picked again with a tenth to the power of
    // k of its probability.
    for (size_t tries = 0; sum > 0 && order.size() < n && tries < 2 * n;
         ++tries) {
      const size_t i = std::min<size_t>(
          std::upper_bound(sums.begin(), sums.end(), words.NextDouble() * sum) -
              sums.begin(),
          n - 1);
      if (words.NextDouble() > std::pow(0.1, picked[i])) continue;
      ++picked[i];
      order.push_back(i);
    }
    for (size_t i = 0; i < n && order.size() < n; ++i) {
      if (picked[i] == 0) order.push_back(i);
    }
    return order;
  }

  const SdcaLoss& loss_;
  const SdcaPenalty penalty_;
  const double partitions_;
  const bool adaptive_;
  std::atomic<uint64_t> runs_{0};
};

// The state's shape is checked by the kernel; the others are like the weights.
Status SdcaShapes(ShapeContext& c) {
  const ResolvedOp& op = c.op();
  const Shape& state = c.input(c.num_inputs() - 1);
  c.set_output(
      0, state.fully_known() ? state : Shape{Shape::kUnknown, kStateWidth});
  const StringView weights[] = {"sparse_weights", "dense_weights"};
  for (int k = 0; k < 2; ++k) {
    const ArgRange in = op.input_range(weights[k]);
    for (int i = 0; i < in.size(); ++i) {
      c.set_output(op.output_range(k + 1).begin + i, c.input(in.begin + i));
    }
  }
  return OkStatus();
}

HR_OP(SdcaOptimizerV2)
    .Input("sparse_example_indices: num_sparse_features * int64")
    .Input("sparse_feature_indices: num_sparse_features * int64")
    .Input("sparse_feature_values: num_sparse_features_with_values * float")
    .Input("dense_features: num_dense_features * float")
    .Input("example_weights: float")
    .Input("example_labels: float")
    .Input("sparse_indices: num_sparse_features * int64")
    .Input("sparse_weights: num_sparse_features * float")
    .Input("dense_weights: num_dense_features * float")
    .Input("example_state_data: float")
    .Output("out_example_state_data: float")
    .Output("out_delta_sparse_weights: num_sparse_features * float")
    .Output("out_delta_dense_weights: num_dense_features * float")
    .Attr(
        "loss_type: {'logistic_loss', 'squared_loss', 'hinge_loss', "
        "'smooth_hinge_loss', 'poisson_loss'}")
    .Attr("adaptive: bool = false")
    .Attr("num_sparse_features: int >= 0")
    .Attr("num_sparse_features_with_values: int >= 0")
    .Attr("num_dense_features: int >= 0")
    .Attr("l1: float")
    .Attr("l2: float")
    .Attr("num_loss_partitions: int >= 1")
    .Attr("num_inner_iterations: int >= 1")
    .Doc(
        "A pass of stochastic dual coordinate ascent over examples: their new "
        "dual variables and losses, and what is to be added to the weights.")
    .Shape(SdcaShapes)
    .Cpu(Bind<SdcaKernel>);

[[maybe_unused]] const bool kFirstSdca =
    RegisterLike("SdcaOptimizer", "SdcaOptimizerV2", [](OpDef& def) {
      for (AttrDef& a : def.attrs) {
        if (a.name == "adaptive") a.name = "adaptative";
      }
    });

Status ShrinkWeights(KernelContext& c) {
  const SdcaPenalty penalty{c.op().float_attr("l1"), c.op().float_attr("l2")};
  for (int i = 0; i < c.num_inputs(); ++i) {
    HR_ASSIGN_OR_RETURN(VariableInput v, VariableOf(c, i));
    HR_RETURN_IF_ERROR(
        UpdateVariables({v}, DType::kFloat, [&](absl::Span<Tensor*> values) {
          float* w = values[0]->data<float>();
          std::transform(w, w + values[0]->num_elements(), w, [&](float x) {
            return static_cast<float>(penalty.Shrink(x));
          });
          return OkStatus();
        }));
  }
  return OkStatus();
}

HR_OP(SdcaShrinkL1)
    .Input("weights: Ref(num_features * float)")
    .Attr("num_features: int >= 0")
    .Attr("l1: float")
    .Attr("l2: float")
    .Doc("Moves weights towards zero by l1 / l2, and not beyond.")
    .Shape(NoOutputs)
    .Cpu(Compute<ShrinkWeights>);

Status FingerprintKeys(KernelContext& c) {
  int64_t* out = c.out<int64_t>(0);
  for (const std::string& text : c.input(0).span<std::string>()) {
    const auto [low, high] = Fingerprint128(text);
    *out++ = static_cast<int64_t>(low);
    *out++ = static_cast<int64_t>(high);
  }
  return OkStatus();
}

Status FingerprintShape(ShapeContext& c) {
  const Shape& in = c.input(0);
  if (in.known_rank() && in.rank() != 1) {
    return c.Refuse(RankIsNot(1, in.rank()),
                    InvalidArgument("Input must be a vector, got shape ", in));
  }
  c.set_output(0, Shape{in.known_rank() ? in[0] : Shape::kUnknown, 2});
  return OkStatus();
}

HR_OP(SdcaFprint)
    .Input("input: string")
    .Output("output: int64")
    .Doc("Fingerprints of 128 bits of strings, their low and high words.")
    .Shape(FingerprintShape)
    .NoGradient()
    .Cpu(Compute<FingerprintKeys>);

}  // namespace
}  // namespace headrace
