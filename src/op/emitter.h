// The one door for asking an op.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "op/attr.h"
#include "op/op_def.h"
#include "op/resolved_op.h"
#include "op/value.h"

namespace headrace {

// Runs or records ops. Eager runs them, a graph builder records them.
class Emitter {
 public:
  virtual ~Emitter() = default;
  // Asks `op` of the inputs. Fills *outputs. Errors carry the op's name.
  virtual Status Emit(const ResolvedOpPtr& op, absl::Span<const Value> inputs,
                      ValueList* outputs) = 0;
  // Makes a value that other emitters made usable here: an eager tensor or an
  // outer graph's value becomes a capture or constant. Identity by default.
  virtual StatusOr<Value> Import(const Value& v) { return v; }
  // What `v` is, where that is known already (a concrete tensor, a graph's
  // constant); else null. Valid while v lives.
  virtual const Tensor* KnownValue(const Value& v) const {
    return v.is_symbolic() ? nullptr : &v.tensor();
  }
  // The name that the next emitted op gets where names matter; eager has none.
  virtual void SetNextName(StringView name) {}
  // True when values of this emitter are concrete.
  virtual bool is_eager() const = 0;
};

// The emitter of this thread: the innermost EmitterScope's, else eager.
Emitter* CurrentEmitter();
// Sets the process-wide emitter used outside all scopes (eager's, at start).
void SetDefaultEmitter(Emitter* e);
Emitter* DefaultEmitter();

// Makes `e` this thread's emitter while it lives.
class EmitterScope {
 public:
  explicit EmitterScope(Emitter* e);
  ~EmitterScope();
  EmitterScope(const EmitterScope&) = delete;

 private:
  Emitter* previous_;
};

struct Gradient;  // op/gradient.h

// The gradients of inputs from those of outputs, for calls that are not one
// registered op (tf.custom_gradient, calls of traced functions). Emits.
using BackwardFn =
    std::function<Status(absl::Span<const Gradient> output_gradients,
                         std::vector<Gradient>* input_gradients)>;

// Sees every op that was emitted on this thread; tapes are recorders. Inputs
// are the values the caller named, before any emitter imported them.
class Recorder {
 public:
  virtual ~Recorder() = default;
  virtual void Record(const ResolvedOpPtr& op, absl::Span<const Value> inputs,
                      absl::Span<const Value> outputs) = 0;
  virtual void RecordCustom(StringView name, absl::Span<const Value> inputs,
                            absl::Span<const Value> outputs,
                            const BackwardFn& backward) = 0;
  // A trainable variable is about to be read.
  virtual void VariableAccessed(const Value& handle) = 0;
};
// This thread's recorders, innermost last. Empty almost always: asking costs a
// load. A recorder that emits ops while it is told stops the recording itself
// (StopRecording): else it would be told of these, too.
bool HasRecorders();
void PushRecorder(Recorder* r);
void RemoveRecorder(Recorder* r);
// No recorder is told while it lives (tf.GradientTape.stop_recording).
class StopRecording {
 public:
  StopRecording();
  ~StopRecording();

 private:
  std::vector<Recorder*> saved_;
};
void TellRecorders(const ResolvedOpPtr& op, absl::Span<const Value> inputs,
                   absl::Span<const Value> outputs);
void TellCustom(StringView name, absl::Span<const Value> inputs,
                absl::Span<const Value> outputs, const BackwardFn& backward);
void TellVariableAccessed(const Value& handle);

// Emits through this thread's emitter and tells the recorders.
Status Emit(const ResolvedOpPtr& op, absl::Span<const Value> inputs,
            ValueList* outputs);
// The same for an op with attributes yet to be completed.
Status Emit(const OpDef& op, absl::Span<const Value> inputs,
            const AttrMap& attrs, ValueList* outputs);

// A stretch of emitting with one sticky status, for gradients and composites:
//   OpScope s; Value y = s("Mul", {x, s("Neg", {x})}); return s.status();
// After an error every call returns a null Value and does nothing.
class OpScope {
 public:
  // The first output.
  Value operator()(StringView op, absl::Span<const Value> inputs,
                   const AttrMap& attrs = {});
  Value operator()(StringView op, std::initializer_list<Value> inputs,
                   const AttrMap& attrs = {}) {
    return (*this)(op, absl::MakeConstSpan(inputs.begin(), inputs.size()),
                   attrs);
  }
  // All outputs.
  ValueList All(StringView op, absl::Span<const Value> inputs,
                const AttrMap& attrs = {});
  ValueList All(StringView op, std::initializer_list<Value> inputs,
                const AttrMap& attrs = {}) {
    return All(op, absl::MakeConstSpan(inputs.begin(), inputs.size()), attrs);
  }
  // A constant.
  Value Const(Tensor t);
  Value Int32(int32_t v) { return Const(Tensor::Scalar<int32_t>(v)); }
  Value Int32s(absl::Span<const int32_t> v) {
    return Const(Tensor::Vector<int32_t>(v));
  }
  // `v` as a scalar of `dtype`.
  Value Scalar(DType dtype, double v);
  // The value of `v` where it is known now, else null.
  const Tensor* Known(const Value& v) const {
    return v ? CurrentEmitter()->KnownValue(v) : nullptr;
  }
  // int32 shape of `x`: a constant where it is fully known, else a Shape op.
  Value ShapeOf(const Value& x, DType out = DType::kInt32);

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  void Fail(Status s) {
    if (status_.ok()) status_ = std::move(s);
  }

 private:
  Status status_;
};

// `v` as a scalar tensor of any numeric dtype (rounded as a cast does).
StatusOr<Tensor> ScalarOf(DType dtype, double v);

}  // namespace headrace
