#include "eager/tape.h"

namespace headrace {
namespace {

// Values at least this large are dropped when a gradient only needs their
// shape; smaller ones are cheaper to keep.
constexpr size_t kWorthDropping = 4096;

Value DescriptionOf(const Value& v) {
  if (v.is_symbolic() || !IsPlain(v.dtype()) ||
      v.tensor().bytes() < kWorthDropping) {
    return v;
  }
  return Value(Tensor(v.dtype(), v.shape()));
}

void KeepValues(absl::Span<const Value> values, uint32_t skipped,
                ValueList* kept, absl::InlinedVector<uint64_t, 4>* ids) {
  for (size_t i = 0; i < values.size(); ++i) {
    bool skip = i < 32 && (skipped >> i & 1);
    kept->push_back(skip ? DescriptionOf(values[i]) : values[i]);
    ids->push_back(values[i].id());
  }
}

}  // namespace

Tape::~Tape() { Stop(); }

void Tape::Start() {
  if (recording_) return;
  PushRecorder(this);
  recording_ = true;
}

void Tape::Stop() {
  if (!recording_) return;
  RemoveRecorder(this);
  recording_ = false;
}

void Tape::Watch(const Value& v) {
  if (reached_.insert(v.id()).second) watched_.push_back(v);
}

void Tape::Reset() {
  entries_.clear();
  reached_.clear();
  variables_.clear();
  watched_.clear();
}

void Tape::KeepVariables() {
  std::vector<Value> variables = std::move(variables_);
  Reset();
  variables_ = std::move(variables);
}

void Tape::VariableAccessed(const Value& handle) {
  if (!watch_variables_ || reached_.contains(handle.id())) return;
  Watch(handle);
  variables_.push_back(handle);
}

bool Tape::Reaches(absl::Span<const Value> inputs) const {
  if (reached_.empty()) return false;
  for (const Value& v : inputs) {
    if (reached_.contains(v.id()) && IsDifferentiable(v.dtype())) return true;
  }
  return false;
}

void Tape::Keep(Entry entry, absl::Span<const Value> inputs,
                absl::Span<const Value> outputs) {
  uint32_t skip_in = 0, skip_out = 0;
  if (entry.op) {
    skip_in = entry.op->def().gradient_skips_inputs;
    skip_out = entry.op->def().gradient_skips_outputs;
  }
  KeepValues(inputs, skip_in, &entry.inputs, &entry.input_ids);
  KeepValues(outputs, skip_out, &entry.outputs, &entry.output_ids);
  for (const Value& v : outputs) {
    if (IsDifferentiable(v.dtype())) reached_.insert(v.id());
  }
  entries_.push_back(std::move(entry));
}

void Tape::Record(const ResolvedOpPtr& op, absl::Span<const Value> inputs,
                  absl::Span<const Value> outputs) {
  if (op->def().gradient_kind == GradientKind::kNotDifferentiable ||
      outputs.empty() || !Reaches(inputs)) {
    return;
  }
  Entry entry;
  entry.op = op;
  Keep(std::move(entry), inputs, outputs);
}

void Tape::RecordCustom(StringView name, absl::Span<const Value> inputs,
                        absl::Span<const Value> outputs,
                        const BackwardFn& backward) {
  if (!Reaches(inputs)) return;
  Entry entry;
  entry.backward = backward;
  Keep(std::move(entry), inputs, outputs);
}

// One walk back over a tape's entries.
class Tape::Walk {
 public:
  explicit Walk(const std::vector<Entry>& entries) : entries_(entries) {}

  // Marks what lies between the sources that the tape reached and the end. The
  // others, constants to it, get what is theirs as targets only.
  void MarkFrom(absl::Span<const Value> sources,
                const absl::flat_hash_set<uint64_t>& reached) {
    for (const Value& v : sources) {
      if (reached.contains(v.id())) needed_.insert(v.id());
      sources_.insert(v.id());
    }
    for (const Entry& e : entries_) {
      for (uint64_t id : e.input_ids) {
        if (!needed_.contains(id)) continue;
        needed_.insert(e.output_ids.begin(), e.output_ids.end());
        break;
      }
    }
  }

  void Begin(uint64_t target, Gradient g) {
    if (needed_.contains(target) || sources_.contains(target)) {
      arrived_[target].push_back(std::move(g));
    }
  }

  Status Back() {
    for (size_t i = entries_.size(); i-- > 0;) {
      HR_RETURN_IF_ERROR(BackThrough(entries_[i]));
    }
    return OkStatus();
  }

  // The sum of what arrived at `id`.
  Gradient Take(uint64_t id) {
    auto it = arrived_.find(id);
    if (it == arrived_.end()) return {};
    Gradient g = it->second.size() == 1 ? std::move(it->second[0])
                                        : SumGradients(scope_, it->second);
    if (sources_.contains(id)) {
      it->second = {g};
    } else {
      arrived_.erase(it);
    }
    return g;
  }
  const Status& status() const { return scope_.status(); }

 private:
  void Add(uint64_t id, Gradient g) {
    if (g && needed_.contains(id)) arrived_[id].push_back(std::move(g));
  }

  Status BackThrough(const Entry& e) {
    bool any = false, wanted = false;
    for (uint64_t id : e.output_ids) any = any || arrived_.contains(id);
    if (!any) return OkStatus();
    std::vector<bool> wants(e.inputs.size());
    for (size_t i = 0; i < e.inputs.size(); ++i) {
      wants[i] = needed_.contains(e.input_ids[i]) &&
                 IsDifferentiable(e.inputs[i].dtype());
      wanted = wanted || wants[i];
    }
    if (!wanted) return OkStatus();
    absl::InlinedVector<Gradient, 2> grads;
    for (uint64_t id : e.output_ids) grads.push_back(Take(id));
    HR_RETURN_IF_ERROR(scope_.status());
    if (e.op) {
      GradientContext g(e.op, e.inputs, e.outputs, grads);
      g.set_wanted(std::move(wants));
      HR_RETURN_IF_ERROR(CallGradient(g));
      for (int i = 0; i < g.num_inputs(); ++i) {
        if (g.wants(i)) Add(e.input_ids[i], std::move(g.results()[i]));
      }
      return OkStatus();
    }
    std::vector<Gradient> results;
    HR_RETURN_IF_ERROR(e.backward(grads, &results));
    if (results.size() != e.input_ids.size()) {
      return Internal("a backward function gave ", results.size(),
                      " gradients for ", e.input_ids.size(), " inputs");
    }
    for (size_t i = 0; i < results.size(); ++i) {
      if (wants[i]) Add(e.input_ids[i], std::move(results[i]));
    }
    return OkStatus();
  }

  const std::vector<Entry>& entries_;
  OpScope scope_;
  absl::flat_hash_set<uint64_t> needed_, sources_;
  absl::flat_hash_map<uint64_t, absl::InlinedVector<Gradient, 1>> arrived_;
};

StatusOr<std::vector<Gradient>> Tape::Gradients(
    absl::Span<const Value> targets, absl::Span<const Value> sources,
    absl::Span<const Value> output_gradients) {
  // A snapshot: a persistent tape that still records must not see its own
  // gradients while walking.
  std::vector<Entry> kept;
  if (!persistent_) {
    kept = std::move(entries_);
  } else if (recording_) {
    kept = entries_;
  }
  const std::vector<Entry>& entries =
      persistent_ && !recording_ ? entries_ : kept;
  Walk walk(entries);
  walk.MarkFrom(sources, reached_);
  if (!persistent_) Reset();
  OpScope s;
  for (size_t i = 0; i < targets.size(); ++i) {
    Gradient g;
    if (i < output_gradients.size() && output_gradients[i]) {
      g.dense = output_gradients[i];
    } else if (targets[i].shape().fully_known() &&
               IsPlain(targets[i].dtype())) {
      g.dense =
          s("Fill", {s.ShapeOf(targets[i]), s.Scalar(targets[i].dtype(), 1)});
    } else {
      g.dense = s("OnesLike", {targets[i]});
    }
    HR_RETURN_IF_ERROR(s.status());
    walk.Begin(targets[i].id(), std::move(g));
  }
  HR_RETURN_IF_ERROR(walk.Back());
  std::vector<Gradient> results;
  for (const Value& v : sources) results.push_back(walk.Take(v.id()));
  HR_RETURN_IF_ERROR(walk.status());
  return results;
}

}  // namespace headrace
