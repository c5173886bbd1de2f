#include "runtime/prepared_weights.h"

#include <algorithm>

#include "base/hash_map.h"

namespace headrace {
namespace {

// Weights that change are prepared ever later: each change doubles the runs
// that the same weights must come in before they are prepared, up to this many.
// Beyond it weights that settle at last would wait too long.
constexpr int kMostReluctant = 256;
// Elements: packing smaller weights saves less than looking them up costs.
constexpr int64_t kSmallest = 4096;

// Whether it reads a variable behind a handle, not a reference.
bool ReadsVariable(const ResolvedOp& op) {
  return op.def().Is(OpRole::kReadVariable) && !IsRef(op.input_types()[0]);
}

bool CallsFunctions(const ResolvedOp& op) {
  return std::any_of(op.attrs().begin(), op.attrs().end(), [](const auto& a) {
    return a.second.kind() == AttrKind::kFunc;
  });
}

// True when some call changes a variable itself.
bool WritesVariables(const Program& p) {
  for (const Call& call : p.calls) {
    if (!call.effect || ReadsVariable(*call.op) || CallsFunctions(*call.op)) {
      continue;
    }
    for (ValueId v : call.inputs) {
      const DType d = p.values[v].dtype;
      if (d == DType::kResource || IsRef(d)) return true;
    }
  }
  return false;
}

}  // namespace

StatusOr<std::shared_ptr<const void>> PreparedWeights::Get(
    const ProductKernel& product, const KernelContext& c, bool repeated) {
  using Made = std::shared_ptr<const void>;
  if (source_ == Source::kInput && !repeated) return Made();
  const Tensor& w = c.input(product.weights());
  // Memory that is not counted (the arena's) may hold other weights at the same
  // address in the next run.
  if (!w.counted() || w.num_elements() < kSmallest) return Made();
  MutexLock lock(mutex_);
  if (held_.has_buffer()) {
    // The same buffer means the same values: we hold it, so whoever writes must
    // copy.
    if (held_.raw() == w.raw() && held_.SharesBufferWith(w) &&
        held_.shape() == w.shape() && product.Fits(c, made_.get())) {
      return made_;
    }
    held_ = Tensor();
    made_ = nullptr;
    wanted_ = std::min(wanted_ * 2, kMostReluctant);
  }
  seen_ = w.raw() == last_ ? seen_ + 1 : 0;
  last_ = w.raw();
  if (source_ != Source::kConstant && seen_ < wanted_) return Made();
  HR_ASSIGN_OR_RETURN(made_, product.Prepare(c));
  if (made_) held_ = w;
  return made_;
}

void PreparedWeights::EndRepeated() {
  if (source_ != Source::kInput) return;
  MutexLock lock(mutex_);
  held_ = Tensor();
  made_ = nullptr;
  last_ = nullptr;
  seen_ = 0;
}

StatusOr<std::shared_ptr<const void>> RunWeights::Get(
    const ProductKernel& product, const KernelContext& c) {
  MutexLock lock(mutex_);
  if (!made_) {
    HR_ASSIGN_OR_RETURN(made_, product.Prepare(c));
  }
  return made_;
}

void RunWeights::Clear() {
  MutexLock lock(mutex_);
  made_ = nullptr;
}

std::vector<int> SharedWeights(
    const Program& p, absl::Span<const PreparedWeights::Source> sources) {
  std::vector<int> number(p.calls.size(), -1);
  HashMap<ValueId, std::vector<int>> readers;
  for (size_t i = 0; i < p.calls.size(); ++i) {
    const auto* product =
        dynamic_cast<const ProductKernel*>(p.calls[i].kernel.get());
    if (product && product->prepares() &&
        sources[i] == PreparedWeights::Source::kNone) {
      readers[p.calls[i].inputs[product->weights()]].push_back(
          static_cast<int>(i));
    }
  }
  const auto preparer = [&](int call) -> const ProductKernel& {
    return dynamic_cast<const ProductKernel&>(*p.calls[call].kernel).preparer();
  };
  int count = 0;
  for (const auto& [weights, calls] : readers) {
    // Those that prepare what the first does: others do by themselves.
    for (int call : calls) {
      if (call == calls[0] || !preparer(call).PreparesAs(preparer(calls[0]))) {
        continue;
      }
      if (number[calls[0]] < 0) number[calls[0]] = count++;
      number[call] = number[calls[0]];
    }
  }
  return number;
}

std::vector<PreparedWeights::Source> ValueSources(const Program& p) {
  using Source = PreparedWeights::Source;
  std::vector<Source> of_value(p.values.size(), Source::kNone);
  for (ValueId v : p.feeds) of_value[v] = Source::kInput;
  for (size_t v = 0; v < p.values.size(); ++v) {
    if (p.values[v].constant.has_buffer()) of_value[v] = Source::kConstant;
  }
  const bool writes = WritesVariables(p);
  for (const Call& call : p.calls) {
    if (ReadsVariable(*call.op)) {
      of_value[call.outputs[0]] = writes ? Source::kNone : Source::kVariable;
    } else if (call.op->def().Is(OpRole::kPopBack)) {
      // A loop's gradient takes what the loop read in every turn from a list.
      of_value[call.outputs[1]] = Source::kInput;
    }
  }
  return of_value;
}

std::vector<bool> SteadyValues(const Program& p) {
  const std::vector<PreparedWeights::Source> sources = ValueSources(p);
  std::vector<bool> steady(p.values.size());
  for (size_t v = 0; v < steady.size(); ++v) {
    steady[v] = sources[v] == PreparedWeights::Source::kConstant ||
                sources[v] == PreparedWeights::Source::kVariable;
  }
  for (const Call& call : p.calls) {
    if (call.effect || call.op->def().is_stateful || CallsFunctions(*call.op) ||
        !std::all_of(call.inputs.begin(), call.inputs.end(),
                     [&](ValueId v) { return steady[v]; })) {
      continue;
    }
    for (ValueId v : call.outputs) steady[v] = true;
  }
  return steady;
}

std::vector<PreparedWeights::Source> WeightSources(const Program& p) {
  using Source = PreparedWeights::Source;
  const std::vector<Source> of_value = ValueSources(p);
  std::vector<Source> sources(p.calls.size(), Source::kNone);
  for (size_t i = 0; i < p.calls.size(); ++i) {
    const Call& call = p.calls[i];
    const auto* product = dynamic_cast<const ProductKernel*>(call.kernel.get());
    if (product && product->prepares())
      sources[i] = of_value[call.inputs[product->weights()]];
  }
  return sources;
}

}  // namespace headrace
