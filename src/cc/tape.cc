#include "headrace/tape.h"

#include "cc/access.h"
#include "eager/tape.h"

namespace headrace::tf {

using internal::Access;
using internal::Check;

struct GradientTape::State {
  State(bool persistent, bool watch_variables)
      : tape(persistent, watch_variables) {}
  Tape tape;
  bool used_up = false;  // not persistent, and asked for gradients
};

GradientTape::GradientTape(bool persistent, bool watch_variables)
    : state_(std::make_unique<State>(persistent, watch_variables)) {
  state_->tape.Start();
}
GradientTape::~GradientTape() = default;

void GradientTape::watch(const Tensor& t) {
  state_->tape.Watch(Access::ValueOf(t));
}

Tensor Gradient::dense() const {
  if (!is_slices()) return dense_;
  const auto value_of = [](const Tensor& t) {
    return t ? Access::ValueOf(t) : Value();
  };
  OpScope scope;
  Value dense = Densify(scope, {Value(), value_of(values_), value_of(indices_),
                                value_of(dense_shape_)});
  Check(scope.status());
  return Access::Wrap(std::move(dense));
}

Gradients GradientTape::gradient(const Tensor& target,
                                 const std::vector<Source>& sources) {
  if (state_->used_up) {
    Check(FailedPrecondition(
        "A non-persistent GradientTape can only be used to compute one set of "
        "gradients (or jacobians)"));
  }
  if (!state_->tape.persistent()) {
    state_->used_up = true;
    // The gradients' own ops must not be recorded.
    state_->tape.Stop();
  }
  std::vector<Value> values;
  for (const Source& s : sources) values.push_back(Access::ValueOf(s.tensor()));
  const std::vector<headrace::Gradient> found =
      Check(state_->tape.Gradients({Access::ValueOf(target)}, values, {}));
  const auto tensor = [](const Value& v) {
    return v ? Access::Wrap(v) : Tensor();
  };
  Gradients out;
  for (const headrace::Gradient& g : found) {
    if (g.is_slices()) {
      out.push_back(
          {tensor(g.values), tensor(g.indices), tensor(g.dense_shape)});
    } else {
      out.push_back(tensor(g.dense));
    }
  }
  return out;
}

Gradients GradientTape::gradient(const Tensor& target,
                                 const std::vector<Variable>& sources) {
  return gradient(target, std::vector<Source>(sources.begin(), sources.end()));
}

Tensor GradientTape::gradient(const Tensor& target, const Source& source) {
  return gradient(target, std::vector<Source>{source})[0].dense();
}

}  // namespace headrace::tf
