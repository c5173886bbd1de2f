// The update rules, as tf.keras.optimizers has them.
#include "cc/compose.h"
#include "headrace/fit/optimizer.h"

namespace headrace::tf {

using internal::Op;

namespace {

using Groups = std::vector<std::vector<std::string>>;

struct Rows {
  Tensor values, indices;
};
// Slices with equal indices added.
Rows SummedRows(const Gradient& g) {
  // Rules with squares must see the sum of a row's gradients, once: the square
  // of a sum is not the sum of squares.
  const std::vector<Tensor> unique = internal::OpAll("Unique", {g.indices()});
  const Tensor count = Op("StridedSlice",
                          {internal::ShapeOf(unique[0]), internal::Ints({0}),
                           internal::Ints({1}), internal::Ints({1})},
                          {{"shrink_axis_mask", 1}});
  return {Op("UnsortedSegmentSum", {g.values(), unique[1], count}), unique[0]};
}

}  // namespace

SGD::SGD(LearningRate learning_rate, double momentum, bool nesterov,
         OptimizerOptions options)
    : Optimizer("SGD", std::move(learning_rate), {}, options),
      momentum_(momentum),
      nesterov_(nesterov) {
  // Written so that a NaN is refused, too.
  if (!(momentum >= 0 && momentum <= 1)) {
    internal::Throw(ErrorCode::kInvalidArgument,
                    "`momentum` must be between [0, 1].");
  }
}

Groups SGD::SlotGroups() const {
  // Keras' lists have the momentum even where it is 0.
  if (momentum_ == 0 && !writes_lists()) return {};
  return {{"momentum"}};
}

Optimizer::Coefficients SGD::Prepare(DType dtype) const {
  return {{"lr", Rate(dtype)},
          {"momentum", internal::Number(dtype, momentum_)}};
}

void SGD::Update(const Tensor& g, const Variable& v, const Coefficients& k) {
  if (momentum_ == 0) {
    internal::OpAll("ResourceApplyGradientDescent",
                    {v.handle(), k.at("lr"), g});
    return;
  }
  internal::OpAll("ResourceApplyKerasMomentum",
                  {v.handle(), slot(v, "momentum").handle(), k.at("lr"), g,
                   k.at("momentum")},
                  {{"use_nesterov", nesterov_}});
}

void SGD::UpdateSlices(const Gradient& g, const Variable& v,
                       const Coefficients& k) {
  if (momentum_ != 0) {
    Optimizer::UpdateSlices(g, v, k);
    return;
  }
  // Plain descent is linear, so rows that come twice need not be summed first.
  internal::OpAll("ResourceScatterAdd",
                  {v.handle(), g.indices(), -k.at("lr") * g.values()},
                  {{"dtype", internal::Core(v.dtype())}});
}

Adam::Adam(std::string name, LearningRate learning_rate, double beta_1,
           double beta_2, double epsilon, bool amsgrad,
           OptimizerOptions options)
    : Optimizer(std::move(name), std::move(learning_rate),
                {{"beta_1", beta_1}, {"beta_2", beta_2}}, options),
      epsilon_(epsilon),
      amsgrad_(amsgrad) {}

Adam::Adam(LearningRate learning_rate, double beta_1, double beta_2,
           double epsilon, bool amsgrad, OptimizerOptions options)
    : Adam("Adam", std::move(learning_rate), beta_1, beta_2, epsilon, amsgrad,
           options) {}

Groups Adam::SlotGroups() const {
  return amsgrad_ ? Groups{{"m", "v"}, {"vhat"}} : Groups{{"m", "v"}};
}

Optimizer::Coefficients Adam::Prepare(DType dtype) const {
  // The count is moved on after the step, so the step's own number is one more.
  const Tensor step = internal::Cast(iterations().value() + 1, dtype);
  const Tensor beta_1 = Number("beta_1", dtype);
  const Tensor beta_2 = Number("beta_2", dtype);
  return {{"lr", Rate(dtype)},
          {"beta1", beta_1},
          {"beta2", beta_2},
          {"beta1_power", Op("Pow", {beta_1, step})},
          {"beta2_power", Op("Pow", {beta_2, step})},
          {"epsilon", internal::Number(dtype, epsilon_)}};
}

void Adam::Update(const Tensor& g, const Variable& v, const Coefficients& k) {
  std::vector<Tensor> inputs = {v.handle(), slot(v, "m").handle(),
                                slot(v, "v").handle()};
  if (amsgrad_) inputs.push_back(slot(v, "vhat").handle());
  for (const char* name :
       {"beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon"}) {
    inputs.push_back(k.at(name));
  }
  inputs.push_back(g);
  internal::OpAll(
      amsgrad_ ? "ResourceApplyAdamWithAmsgrad" : "ResourceApplyAdam", inputs);
}

namespace {

OptimizerOptions WithDecay(OptimizerOptions options, double weight_decay) {
  options.weight_decay = weight_decay;
  return options;
}

}  // namespace

AdamW::AdamW(LearningRate learning_rate, double weight_decay, double beta_1,
             double beta_2, double epsilon, bool amsgrad,
             OptimizerOptions options)
    : Adam("AdamW", std::move(learning_rate), beta_1, beta_2, epsilon, amsgrad,
           WithDecay(options, weight_decay)) {}

RMSprop::RMSprop(LearningRate learning_rate, double rho, double momentum,
                 double epsilon, bool centered, OptimizerOptions options)
    : Optimizer("RMSprop", std::move(learning_rate),
                {{"rho", rho}, {"momentum", momentum}}, options),
      has_momentum_(momentum != 0),
      epsilon_(epsilon),
      centered_(centered) {}

Groups RMSprop::SlotGroups() const {
  Groups groups = {{"rms"}};
  if (has_momentum_) groups.push_back({"momentum"});
  if (centered_) groups.push_back({"mg"});
  return groups;
}

Optimizer::Coefficients RMSprop::Prepare(DType dtype) const {
  return {{"lr", Rate(dtype)},
          {"rho", Number("rho", dtype)},
          {"momentum", Number("momentum", dtype)},
          {"epsilon", internal::Number(dtype, epsilon_)}};
}

void RMSprop::Update(const Tensor& g, const Variable& v,
                     const Coefficients& k) {
  const Tensor &rho = k.at("rho"), &epsilon = k.at("epsilon");
  const Variable rms = slot(v, "rms");
  if (has_momentum_) {
    std::vector<Tensor> inputs = {v.handle()};
    if (centered_) inputs.push_back(slot(v, "mg").handle());
    for (const Tensor& t : {rms.handle(), slot(v, "momentum").handle(),
                            k.at("lr"), rho, k.at("momentum"), epsilon, g}) {
      inputs.push_back(t);
    }
    internal::OpAll(
        centered_ ? "ResourceApplyCenteredRMSProp" : "ResourceApplyRMSProp",
        inputs);
    return;
  }
  // Without momentum Keras puts the learning rate outside of the accumulator;
  // no op does so.
  Tensor mean = rho * rms.value() + (1.0 - rho) * Op("Square", {g});
  rms.assign(mean);
  if (centered_) {
    const Variable slot_mg = slot(v, "mg");
    const Tensor mg = rho * slot_mg.value() + (1.0 - rho) * g;
    slot_mg.assign(mg);
    mean = mean - Op("Square", {mg});
  }
  v.assign_sub(k.at("lr") * (g * Op("Rsqrt", {mean + epsilon})));
}

Adagrad::Adagrad(LearningRate learning_rate, double initial_accumulator_value,
                 double epsilon, OptimizerOptions options)
    : Optimizer("Adagrad", std::move(learning_rate), {}, options),
      initial_(initial_accumulator_value),
      epsilon_(epsilon) {}

Groups Adagrad::SlotGroups() const { return {{"accumulator"}}; }
double Adagrad::InitialSlot(const std::string& name) const { return initial_; }

Optimizer::Coefficients Adagrad::Prepare(DType dtype) const {
  return {{"lr", Rate(dtype)}, {"epsilon", internal::Number(dtype, epsilon_)}};
}

void Adagrad::Update(const Tensor& g, const Variable& v,
                     const Coefficients& k) {
  internal::OpAll("ResourceApplyAdagradV2",
                  {v.handle(), slot(v, "accumulator").handle(), k.at("lr"),
                   k.at("epsilon"), g});
}

void Adagrad::UpdateSlices(const Gradient& g, const Variable& v,
                           const Coefficients& k) {
  const Rows rows = SummedRows(g);
  internal::OpAll("ResourceSparseApplyAdagradV2",
                  {v.handle(), slot(v, "accumulator").handle(), k.at("lr"),
                   k.at("epsilon"), rows.values, rows.indices});
}

Ftrl::Ftrl(LearningRate learning_rate, FtrlOptions ftrl,
           OptimizerOptions options)
    : Optimizer(
          "Ftrl", std::move(learning_rate),
          {{"learning_rate_power", ftrl.learning_rate_power},
           {"l1_regularization_strength", ftrl.l1_regularization_strength},
           {"l2_regularization_strength", ftrl.l2_regularization_strength},
           {"beta", ftrl.beta}},
          options),
      ftrl_(ftrl) {
  if (ftrl.initial_accumulator_value < 0) {
    internal::Throw(
        ErrorCode::kInvalidArgument,
        absl::StrCat("`initial_accumulator_value` needs to be positive or "
                     "zero. Received: initial_accumulator_value=",
                     ftrl.initial_accumulator_value, "."));
  }
}

Groups Ftrl::SlotGroups() const { return {{"accumulator", "linear"}}; }
double Ftrl::InitialSlot(const std::string& name) const {
  return name == "accumulator" ? ftrl_.initial_accumulator_value : 0;
}

Optimizer::Coefficients Ftrl::Prepare(DType dtype) const {
  const Tensor rate = Rate(dtype);
  const Tensor beta = Number("beta", dtype);
  return {
      {"lr", rate},
      {"l1", Number("l1_regularization_strength", dtype)},
      // Keras folds beta into the l2 penalty, as the op has no beta.
      {"l2", Number("l2_regularization_strength", dtype) + beta / (2.0 * rate)},
      {"l2_shrinkage",
       internal::Number(dtype, ftrl_.l2_shrinkage_regularization_strength)},
      {"lr_power", Number("learning_rate_power", dtype)}};
}

void Ftrl::Update(const Tensor& g, const Variable& v, const Coefficients& k) {
  internal::OpAll("ResourceApplyFtrlV2",
                  {v.handle(), slot(v, "accumulator").handle(),
                   slot(v, "linear").handle(), g, k.at("lr"), k.at("l1"),
                   k.at("l2"), k.at("l2_shrinkage"), k.at("lr_power")});
}

Adadelta::Adadelta(LearningRate learning_rate, double rho, double epsilon,
                   OptimizerOptions options)
    : Optimizer("Adadelta", std::move(learning_rate), {{"rho", rho}}, options),
      epsilon_(epsilon) {}

Groups Adadelta::SlotGroups() const { return {{"accum_grad", "accum_var"}}; }

Optimizer::Coefficients Adadelta::Prepare(DType dtype) const {
  return {{"lr", Rate(dtype)},
          {"rho", Number("rho", dtype)},
          {"epsilon", internal::Number(dtype, epsilon_)}};
}

void Adadelta::Update(const Tensor& g, const Variable& v,
                      const Coefficients& k) {
  internal::OpAll("ResourceApplyAdadelta",
                  {v.handle(), slot(v, "accum_grad").handle(),
                   slot(v, "accum_var").handle(), k.at("lr"), k.at("rho"),
                   k.at("epsilon"), g});
}

Adamax::Adamax(LearningRate learning_rate, double beta_1, double beta_2,
               double epsilon, OptimizerOptions options)
    : Optimizer("Adamax", std::move(learning_rate),
                {{"beta_1", beta_1}, {"beta_2", beta_2}}, options),
      epsilon_(epsilon) {}

Groups Adamax::SlotGroups() const { return {{"m", "v"}}; }

Optimizer::Coefficients Adamax::Prepare(DType dtype) const {
  const Tensor step = internal::Cast(iterations().value() + 1, dtype);
  const Tensor beta_1 = Number("beta_1", dtype);
  return {{"lr", Rate(dtype)},
          {"beta1", beta_1},
          {"beta2", Number("beta_2", dtype)},
          {"beta1_power", Op("Pow", {beta_1, step})},
          {"epsilon", internal::Number(dtype, epsilon_)}};
}

void Adamax::Update(const Tensor& g, const Variable& v, const Coefficients& k) {
  std::vector<Tensor> inputs = {v.handle(), slot(v, "m").handle(),
                                slot(v, "v").handle()};
  for (const char* name : {"beta1_power", "lr", "beta1", "beta2", "epsilon"}) {
    inputs.push_back(k.at(name));
  }
  inputs.push_back(g);
  internal::OpAll("ResourceApplyAdaMax", inputs);
}

Nadam::Nadam(LearningRate learning_rate, double beta_1, double beta_2,
             double epsilon, OptimizerOptions options)
    : Optimizer("Nadam", std::move(learning_rate),
                {{"beta_1", beta_1}, {"beta_2", beta_2}}, options),
      epsilon_(epsilon) {}

Groups Nadam::SlotGroups() const { return {{"m", "v"}}; }

void Nadam::MakeVariables(DType dtype) {
  if (product_) return;
  internal::Outside outside;
  product_ = Track("_u_product", Variable(internal::Number(dtype, 1),
                                          "_u_product", /*trainable=*/false));
}

Optimizer::Coefficients Nadam::Prepare(DType dtype) const {
  const Tensor step = internal::Cast(iterations().value() + 1, dtype);
  const Tensor beta_1 = Number("beta_1", dtype);
  const Tensor beta_2 = Number("beta_2", dtype);
  const auto momentum_at = [&](const Tensor& at) {
    // Dozat's schedule of the momentum (2016): beta_1 * (1 - 0.5 * 0.96^t).
    const Tensor power = Op("Pow", {internal::Number(dtype, 0.96), 1.0 * at});
    return beta_1 * (1.0 - 0.5 * power);
  };
  const Tensor now = momentum_at(step), following = momentum_at(step + 1.0);
  // The product of all momenta until now stands in for beta_1^t, as they differ
  // from step to step.
  const Tensor product = internal::Cast(product_, dtype) * now;
  return {{"lr", Rate(dtype)},
          {"beta1", beta_1},
          {"beta2", beta_2},
          {"gradient_scale", (1.0 - now) / (1.0 - product)},
          {"m_scale", following / (1.0 - product * following)},
          {"v_scale", 1.0 / (1.0 - Op("Pow", {beta_2, step}))},
          {"epsilon", internal::Number(dtype, epsilon_)},
          {"product", product}};
}

void Nadam::Update(const Tensor& g, const Variable& v, const Coefficients& k) {
  const Tensor &beta_1 = k.at("beta1"), &beta_2 = k.at("beta2");
  const Variable slot_m = slot(v, "m"), slot_v = slot(v, "v");
  const Tensor m = beta_1 * slot_m.value() + (1.0 - beta_1) * g;
  const Tensor squares =
      beta_2 * slot_v.value() + (1.0 - beta_2) * Op("Square", {g});
  slot_m.assign(m);
  slot_v.assign(squares);
  const Tensor mean = m * k.at("m_scale") + g * k.at("gradient_scale");
  v.assign_sub(k.at("lr") * mean /
               (Op("Sqrt", {squares * k.at("v_scale")}) + k.at("epsilon")));
}

void Nadam::Finish(const Coefficients& known) {
  product_.assign(internal::Cast(known.at("product"), product_.dtype()));
}

}  // namespace headrace::tf
