// The optimizers' update ops, in four forms each: dense or sparse gradients,
// variables by handle (Resource*) or by reference (TensorFlow 1).
#include <array>

#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/thread_pool.h"
#include "ops/state/optimizer_update.h"
#include "ops/state/variable_access.h"

namespace headrace {
namespace {

// An update op: its inputs in upstream's order ("x!" is a variable that is
// changed, the gradient is "grad" or "delta", the rest are scalars), those of
// its sparse form (null: none), and its own attribute, if any.
struct ApplyRow {
  const char* name;
  UpdateRule rule;
  const char* dense;
  const char* sparse;
  const char* flag;
};

using R = UpdateRule;
constexpr ApplyRow kRows[] = {
    {"GradientDescent", R::kGradientDescent, "var! alpha delta", nullptr,
     nullptr},
    {"ProximalGradientDescent", R::kProximalGradientDescent,
     "var! alpha l1 l2 delta", "var! alpha l1 l2 grad indices", nullptr},
    {"Momentum", R::kMomentum, "var! accum! lr grad momentum",
     "var! accum! lr grad indices momentum", "use_nesterov: bool = false"},
    {"KerasMomentum", R::kKerasMomentum, "var! accum! lr grad momentum",
     "var! accum! lr grad indices momentum", "use_nesterov: bool = false"},
    {"Adam", R::kAdam,
     "var! m! v! beta1_power beta2_power lr beta1 beta2 epsilon grad", nullptr,
     "use_nesterov: bool = false"},
    {"AdamWithAmsgrad", R::kAdamAmsgrad,
     "var! m! v! vhat! beta1_power beta2_power lr beta1 beta2 epsilon grad",
     nullptr, nullptr},
    {"AdaMax", R::kAdaMax, "var! m! v! beta1_power lr beta1 beta2 epsilon grad",
     nullptr, nullptr},
    {"Adagrad", R::kAdagrad, "var! accum! lr grad",
     "var! accum! lr grad indices", "update_slots: bool = true"},
    {"AdagradV2", R::kAdagradV2, "var! accum! lr epsilon grad",
     "var! accum! lr epsilon grad indices", "update_slots: bool = true"},
    {"ProximalAdagrad", R::kProximalAdagrad, "var! accum! lr l1 l2 grad",
     "var! accum! lr l1 l2 grad indices", nullptr},
    {"AdagradDA", R::kAdagradDa,
     "var! gradient_accumulator! gradient_squared_accumulator! grad lr l1 l2 "
     "global_step",
     "var! gradient_accumulator! gradient_squared_accumulator! grad indices lr "
     "l1 l2 global_step",
     nullptr},
    {"Adadelta", R::kAdadelta, "var! accum! accum_update! lr rho epsilon grad",
     "var! accum! accum_update! lr rho epsilon grad indices", nullptr},
    {"RMSProp", R::kRmsProp, "var! ms! mom! lr rho momentum epsilon grad",
     "var! ms! mom! lr rho momentum epsilon grad indices", nullptr},
    {"CenteredRMSProp", R::kCenteredRmsProp,
     "var! mg! ms! mom! lr rho momentum epsilon grad",
     "var! mg! ms! mom! lr rho momentum epsilon grad indices", nullptr},
    {"AddSign", R::kAddSign, "var! m! lr alpha sign_decay beta grad", nullptr,
     nullptr},
    {"PowerSign", R::kPowerSign, "var! m! lr logbase sign_decay beta grad",
     nullptr, nullptr},
    {"Ftrl", R::kFtrl, "var! accum! linear! grad lr l1 l2 lr_power",
     "var! accum! linear! grad indices lr l1 l2 lr_power",
     "multiply_linear_by_lr: bool = false"},
    {"FtrlV2", R::kFtrl,
     "var! accum! linear! grad lr l1 l2 l2_shrinkage lr_power",
     "var! accum! linear! grad indices lr l1 l2 l2_shrinkage lr_power",
     "multiply_linear_by_lr: bool = false"},
};

StatusOr<double> ScalarInput(const KernelContext& c, int i) {
  const Tensor& t = c.input(i);
  if (t.rank() != 0) {
    return InvalidArgument(c.op().def().inputs[i].name,
                           " is not a scalar: ", t.shape());
  }
  // AdagradDA's global_step.
  if (t.dtype() == DType::kInt64) return double(t.scalar<int64_t>());
  double v = 0;
  DispatchDType(t.dtype(), FloatTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    v = static_cast<double>(t.scalar<T>());
  });
  return v;
}

// One update op, bound: where its inputs stand.
class Apply : public Kernel {
 public:
  Apply(const ResolvedOp& op, const ApplyRow& row)
      : rule_(row.rule), dtype_(op.type_attr("T")) {
    const auto& inputs = op.def().inputs;
    for (int i = 0; i < static_cast<int>(inputs.size()); ++i) {
      const std::string& name = inputs[i].name;
      // Upstream's inputs always begin with the variables, so counting them is
      // enough.
      if (inputs[i].is_ref || inputs[i].type == DType::kResource) {
        ++slots_;
      } else if (name == "grad" || name == "delta") {
        gradient_ = i;
      } else if (name == "indices") {
        indices_ = i;
      } else {
        // The first form of Ftrl has no shrinkage.
        // Both forms share one rule, which finds lr_power at a fixed place.
        if (name == "lr_power" && scalars_.size() == 3) scalars_.push_back(-1);
        scalars_.push_back(i);
      }
    }
    if (row.flag) {
      StringView flag = row.flag;
      flag_ = op.bool_attr(flag.substr(0, flag.find(':')));
    }
  }
  bool own_outputs() const override { return true; }

  Status Run(KernelContext& c) override {
    std::array<double, 8> scalars{};
    for (size_t i = 0; i < scalars_.size(); ++i) {
      if (scalars_[i] < 0) continue;
      HR_ASSIGN_OR_RETURN(scalars[i], ScalarInput(c, scalars_[i]));
    }
    // Rules take the op's attribute behind its scalars, as 0 or 1.
    scalars[scalars_.size()] = flag_;
    absl::InlinedVector<VariableInput, 4> variables(slots_);
    for (int i = 0; i < slots_; ++i) {
      HR_ASSIGN_OR_RETURN(variables[i], VariableOf(c, i));
    }
    // All slots are locked at once, so no other step sees some of them changed.
    HR_RETURN_IF_ERROR(
        UpdateVariables(variables, dtype_, [&](absl::Span<Tensor*> slots) {
          return Update(c, slots, scalars.data());
        }));
    // The forms of TensorFlow 1 hand the reference on.
    if (c.num_outputs() > 0) c.set_output(0, c.input(0));
    return OkStatus();
  }

 private:
  Status Update(KernelContext& c, absl::Span<Tensor*> slots,
                const double* scalars) {
    const Tensor& g = c.input(gradient_);
    const auto& inputs = c.op().def().inputs;
    for (int i = 1; i < slots_; ++i) {
      if (slots[i]->shape() != slots[0]->shape()) {
        return InvalidArgument("var and ", inputs[i].name,
                               " do not have the same shape", slots[0]->shape(),
                               " ", slots[i]->shape());
      }
    }
    if (indices_ >= 0) return UpdateRows(c, slots, scalars);
    if (g.shape() != slots[0]->shape()) {
      return InvalidArgument("var and ", inputs[gradient_].name,
                             " do not have the same shape", slots[0]->shape(),
                             " ", g.shape());
    }
    const int64_t size = DTypeSize(dtype_);
    // Bound by memory: a third of a nanosecond for each tensor that is read or
    // written.
    ParallelFor(g.num_elements(), 0.3 * (slots_ + 1),
                [&](int64_t begin, int64_t end) {
                  UpdateSpan(slots, begin * size, g, begin * size, scalars,
                             end - begin);
                });
    return OkStatus();
  }

  Status CheckRows(const Tensor& var, const Tensor& g, const Tensor& indices) {
    if (var.rank() < 1)
      return InvalidArgument("var must be at least 1 dimensional");
    if (indices.rank() != 1) {
      return InvalidArgument("indices must be one-dimensional");
    }
    if (g.rank() != var.rank()) {
      return InvalidArgument(
          "grad must have the same number of dimensions as var");
    }
    for (int d = 1; d < var.rank(); ++d) {
      if (var.dim(d) != g.dim(d)) {
        return InvalidArgument("var and grad must match in dimension ", d);
      }
    }
    if (g.dim(0) != indices.dim(0)) {
      return InvalidArgument(
          "grad must be the same size as indices in the first dimension.");
    }
    // All indices are checked before the first row changes: an error must not
    // leave half a step.
    for (int64_t i = 0; i < indices.dim(0); ++i) {
      int64_t at = indices.IntAt(i);
      if (at < 0 || at >= var.dim(0)) {
        return InvalidArgument("Index ", at, " at offset ", i,
                               " in indices is out of range");
      }
    }
    return OkStatus();
  }

  // Rows that come up twice are updated twice, in order.
  Status UpdateRows(KernelContext& c, absl::Span<Tensor*> slots,
                    const double* scalars) {
    const Tensor& var = *slots[0];
    const Tensor &g = c.input(gradient_), &indices = c.input(indices_);
    HR_RETURN_IF_ERROR(CheckRows(var, g, indices));
    const int64_t row = var.shape().Product(1, var.rank());
    const int64_t bytes = row * DTypeSize(dtype_);
    // One after another, as a row may come up twice.
    for (int64_t i = 0; i < indices.dim(0); ++i) {
      UpdateSpan(slots, indices.IntAt(i) * bytes, g, i * bytes, scalars, row);
    }
    return OkStatus();
  }

  // n elements of the slots from byte `at`, with gradients from byte `from`.
  void UpdateSpan(absl::Span<Tensor*> slots, int64_t at, const Tensor& g,
                  int64_t from, const double* scalars, int64_t n) {
    void* pointers[4] = {};
    for (int i = 0; i < slots_; ++i) {
      pointers[i] = static_cast<char*>(slots[i]->raw()) + at;
    }
    RunUpdate(rule_, dtype_, pointers, static_cast<const char*>(g.raw()) + from,
              scalars, n);
  }

  const UpdateRule rule_;
  const DType dtype_;
  int slots_ = 0;
  int gradient_ = -1;
  int indices_ = -1;
  absl::InlinedVector<int, 8> scalars_;  // inputs; -1: a zero
  bool flag_ = false;
};

StatusOr<std::unique_ptr<Kernel>> BindApply(const ResolvedOp& op) {
  StringView name = op.name();
  name.remove_prefix(name.find("Apply") + 5);
  bool known = DispatchDType(op.type_attr("T"), FloatTypes{}, [](auto) {});
  if (!known) return nullptr;
  for (const ApplyRow& row : kRows) {
    if (name == row.name) {
      return std::unique_ptr<Kernel>(std::make_unique<Apply>(op, row));
    }
  }
  return nullptr;
}

Status ApplyShape(ShapeContext& c) {
  if (c.num_outputs() > 0) c.set_output(0, c.input(0));
  return OkStatus();
}

void RegisterApply(const ApplyRow& row, bool resource, bool sparse) {
  std::string name = absl::StrCat(resource ? "Resource" : "",
                                  sparse ? "SparseApply" : "Apply", row.name);
  OpBuilder b(name.c_str());
  for (StringView input :
       absl::StrSplit(sparse ? row.sparse : row.dense, ' ')) {
    bool slot = absl::ConsumeSuffix(&input, "!");
    StringView type = slot                 ? (resource ? "resource" : "Ref(T)")
                      : input == "indices" ? "Tindices"
                      : input == "global_step" ? "int64"
                                               : "T";
    b.Input(absl::StrCat(input, ": ", type).c_str());
  }
  if (!resource) b.Output("out: Ref(T)");
  b.Attr("T: numbertype");
  if (sparse) b.Attr("Tindices: {int32, int64}");
  b.Attr("use_locking: bool = false");
  if (row.flag) b.Attr(row.flag);
  b.Doc(absl::StrCat("One step of ", row.name,
                     sparse ? " for some rows of" : " for",
                     " a variable and its slots, in one pass.")
            .c_str());
  if (resource) b.Stateful().Traits({OpTrait::kKeepsNoInput});
  b.Shape(ApplyShape).Cpu(BindApply).Register();
}

[[maybe_unused]] const bool registered = [] {
  for (const ApplyRow& row : kRows) {
    const StringView name = row.name;
    // The Keras form has no variant for references.
    const bool refs = name != "KerasMomentum" && name != "AdamWithAmsgrad";
    RegisterApply(row, true, false);
    if (row.sparse) RegisterApply(row, true, true);
    if (refs) RegisterApply(row, false, false);
    if (refs && row.sparse) RegisterApply(row, false, true);
  }
  return true;
}();

}  // namespace
}  // namespace headrace
