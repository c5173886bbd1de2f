// The tape: remembers emitted ops and walks them back for gradients.
#pragma once

#include <memory>
#include <vector>

#include "base/hash_map.h"
#include "op/emitter.h"
#include "op/gradient.h"

namespace headrace {

// Records the ops that follow from watched values, whichever emitter ran them
// (so the same tape works while tracing). Nested tapes see one another's
// gradients, to any order. Used by one thread at a time; records what its
// thread emits between PushRecorder and RemoveRecorder.
class Tape : public Recorder {
 public:
  // `watch_variables`: trainable variables are watched when read.
  Tape(bool persistent, bool watch_variables)
      : persistent_(persistent), watch_variables_(watch_variables) {}
  ~Tape() override;

  // Start and stop recording on this thread; both may be called repeatedly.
  void Start();
  void Stop();
  bool recording() const { return recording_; }
  bool persistent() const { return persistent_; }

  // Gradients will be wanted for `v` (a tensor or a variable's handle).
  void Watch(const Value& v);
  bool IsWatched(const Value& v) const { return reached_.contains(v.id()); }
  // Handles of variables watched so far, in order.
  const std::vector<Value>& watched_variables() const { return variables_; }
  // Forgets everything.
  void Reset();
  // Forgets all but which variables were watched; nothing can be asked then.
  void KeepVariables();

  // d(sum of targets . output_gradients) / d(source), one a source, null where
  // nothing flows. `output_gradients` is empty (ones) or one a target, null
  // entries meaning ones. Forgets the record unless persistent. NotFound when
  // an op on the way has no gradient.
  StatusOr<std::vector<Gradient>> Gradients(
      absl::Span<const Value> targets, absl::Span<const Value> sources,
      absl::Span<const Value> output_gradients);

  void Record(const ResolvedOpPtr& op, absl::Span<const Value> inputs,
              absl::Span<const Value> outputs) override;
  void RecordCustom(StringView name, absl::Span<const Value> inputs,
                    absl::Span<const Value> outputs,
                    const BackwardFn& backward) override;
  void VariableAccessed(const Value& handle) override;

 private:
  struct Entry {
    ResolvedOpPtr op;     // null when custom
    BackwardFn backward;  // custom
    ValueList inputs, outputs;
    absl::InlinedVector<uint64_t, 4> input_ids, output_ids;
  };
  class BackwardPass;

  bool Reaches(absl::Span<const Value> inputs) const;
  void Keep(Entry entry, absl::Span<const Value> inputs,
            absl::Span<const Value> outputs);

  const bool persistent_;
  const bool watch_variables_;
  bool recording_ = false;
  std::vector<Entry> entries_;
  HashSet<uint64_t> reached_;  // ids that depend on watched values
  std::vector<Value> variables_;
  std::vector<Value> watched_;  // kept alive, so that ids stay meaningful
};

}  // namespace headrace
