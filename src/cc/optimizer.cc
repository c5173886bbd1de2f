#include "headrace/optimizer.h"

#include "cc/access.h"
#include "op/emitter.h"

namespace headrace::tf {

using internal::Access;
using internal::Check;
using internal::Core;

namespace {

Value Number(DType dtype, double v) {
  return Value(Check(headrace::ScalarOf(Core(dtype), v)));
}

Tensor Zeros(const Variable& like) {
  headrace::Tensor t =
      Check(headrace::Tensor::Allocate(Core(like.dtype()), Core(like.shape())));
  FillZero(t);
  return Access::Wrap(Value(std::move(t)));
}

const Value& Handle(const Variable& v) { return Access::ValueOf(v.handle()); }

void CheckCounts(size_t gradients, size_t variables) {
  if (gradients != variables) {
    throw Error(ErrorCode::kInvalidArgument,
                absl::StrCat("an optimizer was given ", gradients,
                             " gradients for ", variables, " variables"));
  }
}

}  // namespace

const std::vector<Variable>& Optimizer::Slots(
    const std::string& name, const std::vector<Variable>& variables) {
  const auto known = slots_.find(name);
  if (known != slots_.end()) {
    CheckCounts(known->second.size(), variables.size());
    return known->second;
  }
  Module& list = Child(name);
  std::vector<Variable> slots;
  for (size_t i = 0; i < variables.size(); ++i) {
    slots.push_back(list.Track(
        std::to_string(i),
        Variable(Zeros(variables[i]), variables[i].name() + "/" + name,
                 /*trainable=*/false)));
  }
  return slots_.emplace(name, std::move(slots)).first->second;
}

SGD::SGD(float learning_rate, float momentum, bool nesterov)
    : learning_rate_(learning_rate), momentum_(momentum), nesterov_(nesterov) {}

void SGD::Apply(const std::vector<Tensor>& gradients,
                const std::vector<Variable>& variables) {
  CheckCounts(gradients.size(), variables.size());
  for (size_t i = 0; i < variables.size(); ++i) {
    if (!gradients[i]) continue;
    const Variable& v = variables[i];
    Value rate = Number(v.dtype(), learning_rate_);
    const Value& g = Access::ValueOf(gradients[i]);
    if (momentum_ == 0) {
      internal::CallOp("ResourceApplyGradientDescent", {Handle(v), rate, g});
      continue;
    }
    const Variable& a = Slots("momentum", variables)[i];
    internal::CallOp(
        "ResourceApplyMomentum",
        {Handle(v), Handle(a), rate, g, Number(v.dtype(), momentum_)},
        {{"use_nesterov", nesterov_}});
  }
}

Adam::Adam(float learning_rate, float beta_1, float beta_2, float epsilon)
    : learning_rate_(learning_rate),
      beta_1_(beta_1),
      beta_2_(beta_2),
      epsilon_(epsilon),
      step_(Track("step", Variable(Tensor(int64_t{0}), "step", false))) {}

void Adam::MakeSlots(const std::vector<Variable>& variables) {
  Slots("m", variables);
  Slots("v", variables);
}

void Adam::Apply(const std::vector<Tensor>& gradients,
                 const std::vector<Variable>& variables) {
  CheckCounts(gradients.size(), variables.size());
  const std::vector<Variable>& m = Slots("m", variables);
  const std::vector<Variable>& v = Slots("v", variables);
  step_.assign_add(Tensor(int64_t{1}));
  Value step = Access::ValueOf(step_.value());
  for (size_t i = 0; i < variables.size(); ++i) {
    if (!gradients[i]) continue;
    DType d = variables[i].dtype();
    Value t = internal::CallOp("Cast", {step}, {{"DstT", Core(d)}})[0];
    auto power = [&](float beta) {
      return internal::CallOp("Pow", {Number(d, beta), t})[0];
    };
    internal::CallOp("ResourceApplyAdam",
                     {Handle(variables[i]), Handle(m[i]), Handle(v[i]),
                      power(beta_1_), power(beta_2_), Number(d, learning_rate_),
                      Number(d, beta_1_), Number(d, beta_2_),
                      Number(d, epsilon_), Access::ValueOf(gradients[i])});
  }
}

}  // namespace headrace::tf
