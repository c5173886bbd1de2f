#include "eager/tape.h"

#include "op/backward.h"

namespace headrace {
namespace {

// Bytes. Values at least this large are dropped when a gradient only needs
// their shape; for smaller ones a description costs as much as it saves.
constexpr size_t kWorthDropping = 4096;

Value DescriptionOf(const Value& v) {
  if (v.is_symbolic() || !IsPlain(v.dtype()) ||
      v.tensor().bytes() < kWorthDropping) {
    return v;
  }
  return Value(Tensor(v.dtype(), v.shape()));
}

[[gnu::hot]] void KeepValues(absl::Span<const Value> values, uint32_t skipped,
                             ValueList* kept,
                             absl::InlinedVector<uint64_t, 4>* ids) {
  for (size_t i = 0; i < values.size(); ++i) {
    // A mask of 32 bits: inputs behind them are always kept.
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

[[gnu::hot]] bool Tape::Reaches(absl::Span<const Value> inputs) const {
  if (reached_.empty()) return false;
  for (const Value& v : inputs) {
    if (reached_.contains(v.id()) && IsDifferentiable(v.dtype())) return true;
  }
  return false;
}

[[gnu::hot]] void Tape::Keep(Entry entry, absl::Span<const Value> inputs,
                             absl::Span<const Value> outputs) {
  uint32_t skip_in = 0, skip_out = 0;
  // A custom gradient does not say which values it reads: all are kept.
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

[[gnu::hot]] void Tape::Record(const ResolvedOpPtr& op,
                               absl::Span<const Value> inputs,
                               absl::Span<const Value> outputs) {
  if (op->def().gradient_kind == GradientKind::kNotDifferentiable ||
      // What no watched value leads to is never asked for: most ops of a
      // program without gradients are passed over here.
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
class Tape::BackwardPass : public Backward<uint64_t> {
 public:
  explicit BackwardPass(const std::vector<Entry>& entries)
      : entries_(entries) {}

  // Marks what lies between the sources that the tape reached and the end. The
  // others, constants to it, get what is theirs as targets only.
  void MarkFrom(absl::Span<const Value> sources,
                const HashSet<uint64_t>& reached) {
    for (const Value& v : sources) {
      if (reached.contains(v.id())) needed_.insert(v.id());
      Seek(v.id());
    }
    // Entries lie in the order of recording, so one pass finds all that the
    // sources lead to.
    for (const Entry& e : entries_) {
      for (uint64_t id : e.input_ids) {
        if (!needed_.contains(id)) continue;
        needed_.insert(e.output_ids.begin(), e.output_ids.end());
        break;
      }
    }
  }

  // Where the walk begins; what leads to no source is passed over.
  void Begin(uint64_t target, Gradient g) {
    if (needed_.contains(target) || sought(target)) {
      Arrive(target, std::move(g));
    }
  }

  Status Back() {
    for (size_t i = entries_.size(); i-- > 0;) {
      HR_RETURN_IF_ERROR(BackThrough(entries_[i]));
    }
    return OkStatus();
  }

 private:
  Status BackThrough(const Entry& e) {
    const auto wants = [&](size_t i) {
      return needed_.contains(e.input_ids[i]) &&
             IsDifferentiable(e.inputs[i].dtype());
    };
    return Through(e.output_ids, e.input_ids, wants,
                   [&](std::vector<bool> wanted, const Gradients& gradients,
                       std::vector<Gradient>* results) -> Status {
                     if (!e.op) return e.backward(gradients, results);
                     GradientContext g(e.op, e.inputs, e.outputs, gradients);
                     g.set_wanted(std::move(wanted));
                     HR_RETURN_IF_ERROR(CallGradient(g));
                     *results = std::move(g.results());
                     return OkStatus();
                   });
  }

  const std::vector<Entry>& entries_;
  HashSet<uint64_t> needed_;
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
  BackwardPass walk(entries);
  walk.MarkFrom(sources, reached_);
  if (!persistent_) Reset();
  OpScope s;
  for (size_t i = 0; i < targets.size(); ++i) {
    Gradient g;
    if (i < output_gradients.size() && output_gradients[i]) {
      g.dense = output_gradients[i];
    } else {
      g.dense = OnesFor(s, targets[i]);
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
