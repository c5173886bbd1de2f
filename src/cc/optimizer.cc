// What optimizers share: numbers, slots, limits of gradients.
#include "headrace/fit/optimizer.h"

#include <algorithm>

#include "cc/compose.h"
#include "cc/replicas.h"
#include "cc/servers.h"
#include "cc/workers.h"
#include "train/whole_node.h"

namespace headrace::tf {

using internal::Access;
using internal::Check;
using internal::Op;
using internal::Throw;

namespace {

Variable NewNumber(const Tensor& value, const std::string& name) {
  return Variable(value, name, /*trainable=*/false);
}

const void* KeyOf(const Variable& v) { return Access::NodeOf(v).get(); }

}  // namespace

const std::shared_ptr<internal::Workers>& internal::Access::WorkersOf(
    const Optimizer& o) {
  return o.workers_;
}

Tensor LearningRate::operator()(const Tensor& step) const {
  return schedule_ ? internal::Cast(schedule_(step), DType::kFloat32)
                   : internal::Number(DType::kFloat32, rate_);
}

Optimizer::Optimizer(std::string name, LearningRate rate,
                     std::map<std::string, double> numbers,
                     OptimizerOptions options)
    : name_(std::move(name)),
      rate_(std::move(rate)),
      options_(options),
      all_(std::make_shared<Module>()),
      workers_(internal::CurrentWorkers()) {
  // Other workers are told of these numbers when slots are made, as Python's
  // are.
  const internal::WorkersScope alone(nullptr);
  iterations_ = NewNumber(Tensor(int64_t{0}), "iteration");
  if (!rate_.schedule() && rate_.rate() < 0) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("Invalid learning rate: ", rate_.rate()));
  }
  if (options.clipnorm && options.global_clipnorm) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("At most one of `clipnorm` and `global_clipnorm` can be "
                       "set. Received: clipnorm=",
                       *options.clipnorm,
                       ", global_clipnorm=", *options.global_clipnorm, "."));
  }
  Track("iter", iterations_);
  AddName("_iterations", iterations_);
  Own("_variables", all_);
  all_->Track(std::to_string(tracked_++), iterations_);
  // Checkpoints of TensorFlow 2's optimizers hold a decay, which is 0 unless
  // asked for.
  numbers["decay"] = 0;
  // A schedule has no variable to be assigned to.
  if (!rate_.schedule()) numbers["learning_rate"] = rate_.rate();
  for (const auto& [key, value] : numbers) {
    const std::string label = key == "learning_rate" ? key : name_ + "/" + key;
    const Variable v =
        Track(key, NewNumber(internal::Number(DType::kFloat32, value), label));
    // Of these numbers lists have the rate alone.
    Access::NodeOf(v)->set_optional();
    if (key == "learning_rate") AddName("_learning_rate", v);
    numbers_.emplace(key, v);
  }
  if (writes_lists()) WriteLists();
}

// The names of the layout that is not written stay for what is restored.
void Optimizer::WriteLists() {
  const TrackablePtr& node = Access::NodeOf(*this);
  node->UnsaveSlots();
  node->Unsave("iter");
  for (const auto& [name, unused] : numbers_) node->Unsave(name);
  if (!rate_.schedule()) return;
  const std::string name = "current_learning_rate";
  current_rate_ = NewNumber(internal::Number(DType::kFloat32, 0), name);
  AddName("_" + name, current_rate_);
  Access::NodeOf(current_rate_)->set_optional();
}

const Variable& Optimizer::learning_rate() const {
  const auto found = numbers_.find("learning_rate");
  if (found == numbers_.end()) {
    Throw(ErrorCode::kFailedPrecondition,
          "the learning rate is a schedule and cannot be assigned to");
  }
  return found->second;
}

Tensor Optimizer::Number(const std::string& name, DType dtype) const {
  return internal::Cast(numbers_.at(name).value(), dtype);
}

Tensor Optimizer::Rate(DType dtype) const {
  return internal::Cast(rate_.schedule() ? rate_(iterations_.value())
                                         : numbers_.at("learning_rate").value(),
                        dtype);
}

Optimizer::Coefficients Optimizer::Prepare(DType dtype) const {
  return {{"lr", Rate(dtype)}};
}

Variable Optimizer::slot(const Variable& variable,
                         const std::string& name) const {
  const auto slots = slots_.find(KeyOf(variable));
  if (slots == slots_.end()) return Variable();
  const auto found = slots->second.by_name.find(name);
  return found == slots->second.by_name.end() ? Variable() : found->second;
}

void Optimizer::AddSlot(const Variable& variable, const std::string& name) {
  // Variables are made outside of a function that is being traced: they outlive
  // it.
  internal::Outside outside;
  const internal::BesideScope beside(variable);
  const Variable slot = NewNumber(
      internal::Full(variable.dtype(), variable.shape(), InitialSlot(name)),
      name_ + "/" + name + "/" + variable.name());
  slots_[KeyOf(variable)].by_name.emplace(name, slot);
  const TrackablePtr own = Access::NodeOf(*this);
  Check(own->AttachSlot(Access::NodeOf(variable), name, Access::NodeOf(slot)));
  const auto whole = Access::NodeOf(variable)->whole();
  if (whole == nullptr) {
    all_->Track(std::to_string(tracked_++), slot);
    return;
  }
  // Lists have one slot of a variable in parts, as those of a variable that is
  // not divided.
  Access::Keep(*all_, name, slot);
  if (const TrackablePtr of_whole = own->SlotOf(whole, name)) {
    Check(Access::NodeOf(*all_)->Attach(std::to_string(tracked_++), of_whole));
  }
}

bool Optimizer::IsBuilt(const std::vector<Variable>& variables) const {
  for (const Variable& v : variables) {
    if (!slots_.contains(KeyOf(v))) return false;
  }
  return true;
}

void Optimizer::Build(const std::vector<Variable>& variables) {
  const internal::WorkersScope scope(workers_);
  if (workers_ != nullptr && !told_) {
    told_ = true;
    workers_->Tell(iterations_);
    const auto rate = numbers_.find("learning_rate");
    if (rate != numbers_.end()) workers_->Tell(rate->second);
  }
  std::vector<Variable> fresh;
  for (const Variable& v : variables) {
    if (slots_.emplace(KeyOf(v), Slots{v, {}}).second) fresh.push_back(v);
  }
  if (!fresh.empty()) MakeVariables(fresh[0].dtype());
  // Group by group over all variables, as Keras makes them: the order is that
  // of the lists in checkpoints.
  for (const auto& group : SlotGroups()) {
    for (const Variable& v : fresh) {
      for (const std::string& name : group) AddSlot(v, name);
    }
  }
}

// Of slices the values are limited, as upstream does.
Gradients Optimizer::Limited(Gradients gradients) const {
  if (!options_.clipvalue && !options_.clipnorm && !options_.global_clipnorm) {
    return gradients;
  }
  std::vector<Tensor> parts;
  for (const Gradient& g : gradients) {
    parts.push_back(g.is_slices() ? g.values() : g.dense());
  }
  if (options_.clipvalue) {
    const double limit = *options_.clipvalue;
    for (Tensor& g : parts) g = internal::ClipByValue(g, -limit, limit);
  } else if (options_.clipnorm) {
    for (Tensor& g : parts) g = internal::ClipByNorm(g, *options_.clipnorm);
  } else {
    parts = internal::ClipByGlobalNorm(parts, *options_.global_clipnorm);
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    Gradient& g = gradients[i];
    g = g.is_slices() ? Gradient(parts[i], g.indices(), g.dense_shape())
                      : Gradient(parts[i]);
  }
  return gradients;
}

void Optimizer::ExcludeFromWeightDecay(const std::vector<Variable>& variables) {
  without_decay_.insert(without_decay_.end(), variables.begin(),
                        variables.end());
}

bool Optimizer::Decays(const Variable& variable) const {
  if (!options_.weight_decay || *options_.weight_decay == 0) return false;
  return std::find(without_decay_.begin(), without_decay_.end(), variable) ==
         without_decay_.end();
}

void Optimizer::UpdateSlices(const Gradient& slices, const Variable& variable,
                             const Coefficients& known) {
  // For rules whose op has no sparse form.
  Update(slices.dense(), variable, known);
}

void Optimizer::Apply(const Gradients& gradients,
                      const std::vector<Variable>& variables) {
  if (gradients.size() != variables.size()) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("an optimizer was given ", gradients.size(),
                       " gradients for ", variables.size(), " variables"));
  }
  if (internal::LeftToTheEnd(*this, workers_, gradients, variables)) return;
  Gradients kept;
  std::vector<Variable> changed;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i]) continue;
    kept.push_back(gradients[i]);
    changed.push_back(variables[i]);
  }
  if (kept.empty()) {
    Throw(ErrorCode::kInvalidArgument,
          "No gradients provided for any variable.");
  }
  if (workers_ != nullptr) kept = workers_->SumAll(kept);
  // Slots are made for what has a gradient: variables that never train have
  // none.
  if (!IsBuilt(changed)) Build(changed);
  kept = Limited(std::move(kept));
  std::map<DType, Coefficients> shared;
  for (size_t i = 0; i < kept.size(); ++i) {
    const Variable& v = changed[i];
    const DType dtype = v.dtype();
    auto known = shared.find(dtype);
    if (known == shared.end()) {
      known = shared.emplace(dtype, Prepare(dtype)).first;
    }
    // Decay before the update, with the rate of this step, as Keras has it;
    // both see the value from before.
    if (Decays(v)) {
      const Tensor step = internal::Number(dtype, *options_.weight_decay) *
                          known->second.at("lr");
      v.assign_sub(v.value() * step);
    }
    if (kept[i].is_slices()) {
      UpdateSlices(kept[i], v, known->second);
    } else {
      Update(kept[i].dense(), v, known->second);
    }
    // After the update: a constraint holds for the new value.
    if (v.constraint()) v.assign(v.constraint()(v.value()));
  }
  // Once a step, behind all updates: what the updates read must not change
  // between them.
  Finish(shared.at(changed[0].dtype()));
  if (current_rate_) current_rate_.assign(Rate(DType::kFloat32));
  // Last, so that the schedule and the bias correction of this step see its
  // number.
  iterations_.assign_add(Tensor(int64_t{1}));
}

}  // namespace headrace::tf
