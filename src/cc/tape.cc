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
};

GradientTape::GradientTape(bool persistent, bool watch_variables)
    : state_(std::make_unique<State>(persistent, watch_variables)) {
  state_->tape.Start();
}
GradientTape::~GradientTape() = default;

void GradientTape::watch(const Tensor& t) {
  state_->tape.Watch(Access::ValueOf(t));
}

std::vector<Tensor> GradientTape::gradient(const Tensor& target,
                                           const std::vector<Source>& sources) {
  if (!state_->tape.persistent()) state_->tape.Stop();
  std::vector<Value> values;
  for (const Source& s : sources) values.push_back(Access::ValueOf(s.tensor()));
  std::vector<Gradient> found =
      Check(state_->tape.Gradients({Access::ValueOf(target)}, values, {}));
  std::vector<Tensor> out;
  OpScope scope;
  for (const Gradient& g : found) {
    Value dense = Densify(scope, g);
    Check(scope.status());
    out.push_back(dense ? Access::Wrap(std::move(dense)) : Tensor());
  }
  return out;
}

std::vector<Tensor> GradientTape::gradient(
    const Tensor& target, const std::vector<Variable>& sources) {
  return gradient(target, std::vector<Source>(sources.begin(), sources.end()));
}

Tensor GradientTape::gradient(const Tensor& target, const Source& source) {
  return gradient(target, std::vector<Source>{source})[0];
}

}  // namespace headrace::tf
