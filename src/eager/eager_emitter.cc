#include "eager/eager_emitter.h"

#include <algorithm>

#include "absl/container/fixed_array.h"
#include "base/timeline.h"
#include "op/function_caller.h"
#include "op/kernel.h"
#include "op/registry.h"
#include "op/remote_place.h"
#include "op/resource.h"
#include "op/run_once.h"

namespace headrace {
namespace {

const RunServices& EagerServices() {
  // Never destroyed: ops may run while the process ends.
  static const RunServices* services = [] {
    auto* s = new RunServices;
    s->resources = &DefaultResources();
    return s;
  }();
  return *services;
}

[[gnu::cold]] Status WithOpName(const Status& s, const ResolvedOp& op) {
  return Status(s.code(), absl::StrCat(s.message(), " [Op:", op.name(), "]"));
}

[[gnu::hot]] Status Run(const ResolvedOp& op,
                        absl::Span<const Tensor* const> inputs,
                        absl::Span<Tensor> outputs) {
  HR_ASSIGN_OR_RETURN(Kernel * kernel, op.EagerKernel());
  absl::FixedArray<Tensor*, 8> in(inputs.size()), out(outputs.size());
  bool has_variant = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    in[i] = const_cast<Tensor*>(inputs[i]);
    has_variant |= inputs[i]->dtype() == DType::kVariant;
  }
  for (size_t i = 0; i < outputs.size(); ++i) out[i] = &outputs[i];
  RunServices services = EagerServices();
  // Asked each time: the caller is set by a room above, which may be loaded
  // later.
  services.functions = DefaultFunctionCaller();
  const auto run = [&] {
    return RunOnce(op, *kernel, absl::MakeConstSpan(in),
                   absl::MakeConstSpan(out), services);
  };
  if (!has_variant) [[likely]]
    return run();
  // The caller keeps its inputs: a second owner tells kernels that they may
  // not change a variant's value in place.
  std::vector<Tensor> pinned;
  for (const Tensor* t : inputs) pinned.push_back(*t);
  return run();
}

// What makes a variant, such as a dataset, does so here unless it is made of
// what lies there: what uses it is mostly here.
bool RunsThere(const ResolvedOp& op, absl::Span<const Tensor* const> inputs) {
  const auto types = op.output_types();
  if (std::find(types.begin(), types.end(), DType::kVariant) == types.end()) {
    return true;
  }
  return std::any_of(inputs.begin(), inputs.end(), [](const Tensor* t) {
    return RemoteNameOf(*t) != nullptr;
  });
}

class Eager : public Emitter {
 public:
  [[gnu::hot]] Status Emit(const ResolvedOpPtr& op,
                           absl::Span<const Value> inputs,
                           ValueList* outputs) override {
    absl::FixedArray<const Tensor*, 8> tensors(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].is_symbolic()) [[unlikely]] {
        return InvalidArgument(
            op->name(), ": input ", i,
            " belongs to a graph and has no value outside it");
      }
      tensors[i] = &inputs[i].tensor();
    }
    absl::InlinedVector<Tensor, 2> results(op->num_outputs());
    HR_RETURN_IF_ERROR(RunEagerly(*op, tensors, absl::MakeSpan(results)));
    outputs->clear();
    for (Tensor& t : results) outputs->emplace_back(std::move(t));
    return OkStatus();
  }
  bool is_eager() const override { return true; }
};

const bool registered = [] {
  SetDefaultEmitter(EagerEmitter());
  return true;
}();

}  // namespace

Emitter* EagerEmitter() {
  static Emitter* eager = new Eager;
  return eager;
}

[[gnu::hot]] Status RunEagerly(const ResolvedOp& op,
                               absl::Span<const Tensor* const> inputs,
                               absl::Span<Tensor> outputs) {
  const timeline::Span span(timeline::Event::Kind::kOp, op.name());
  if (RemotePlace::Any()) [[unlikely]] {
    auto place = PlaceFor(inputs);
    if (place && !RunsThere(op, inputs)) place = nullptr;
    if (const auto tasks = ConnectedTasks()) {
      HR_ASSIGN_OR_RETURN(const bool ran,
                          tasks->Run(op, place, inputs, outputs));
      if (ran) return OkStatus();
    }
    if (place) return place->Run(op, inputs, outputs);
  }
  Status s = Run(op, inputs, outputs);
  return s.ok() ? s : WithOpName(s, op);
}

StatusOr<std::vector<Tensor>> RunOp(StringView name,
                                    absl::Span<const Tensor> inputs,
                                    const AttrMap& attrs) {
  HR_ASSIGN_OR_RETURN(const OpDef* def, LookUpOp(name));
  std::vector<DType> types;
  std::vector<const Tensor*> pointers;
  for (const Tensor& t : inputs) {
    types.push_back(t.dtype());
    pointers.push_back(&t);
  }
  HR_ASSIGN_OR_RETURN(ResolvedOpPtr op, ResolveOp(*def, types, attrs));
  std::vector<Tensor> outputs(op->num_outputs());
  HR_RETURN_IF_ERROR(RunEagerly(*op, pointers, absl::MakeSpan(outputs)));
  return outputs;
}

}  // namespace headrace
