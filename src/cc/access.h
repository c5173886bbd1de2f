// Between the public handles and the core's values.
#pragma once

#include <new>
#include <vector>

#include "absl/types/span.h"
#include "base/status.h"
#include "headrace/variable.h"
#include "op/attr.h"
#include "op/value.h"

namespace headrace::tf {
class Optimizer;
}

namespace headrace::tf::internal {

class Workers;

struct Access {
  static_assert(sizeof(Value) == sizeof(void*));
  // The value behind the handle; throws for a null handle.
  static const Value& ValueOf(const Tensor& t);
  static Tensor Wrap(Value v);
  // The variable behind a handle that was made elsewhere.
  static Variable VariableOf(const Value& handle, std::string name,
                             bool trainable);
  // An argument of a function that is traced: known by its handle alone.
  static Variable ArgumentOf(Tensor handle, DType dtype, TensorShape shape,
                             bool trainable);
  // What checkpoints see of it, one object for its whole life.
  static std::shared_ptr<Trackable> NodeOf(const Variable& v);
  static std::shared_ptr<Trackable> NodeOf(const Module& m);
  // A variable of the module's that checkpoints do not know by it.
  static void Keep(Module& m, const std::string& name, Variable v);
  // Whose gradients the optimizer sums; null: this process' alone.
  static const std::shared_ptr<Workers>& WorkersOf(const Optimizer& o);
};

// Throws tf::Error unless ok.
void Check(const Status& s);
template <typename T>
T Check(StatusOr<T> s) {
  Check(s.status());
  return *std::move(s);
}
ErrorCode CodeOf(const Status& s);

inline headrace::DType Core(DType d) { return static_cast<headrace::DType>(d); }
inline DType Public(headrace::DType d) { return static_cast<DType>(d); }
// Throws for negative sizes other than -1 and for sizes that overflow.
headrace::Shape Core(const TensorShape& s);
TensorShape Public(const headrace::Shape& s);

// Emits an op of the current emitter; throws. One-output form below.
ValueList CallOp(const char* op, const std::vector<Value>& inputs,
                 const AttrMap& attrs = {});
Tensor CallOp1(const char* op, const std::vector<Value>& inputs,
               const AttrMap& attrs = {});
std::vector<Value> ValuesOf(const std::vector<Tensor>& tensors);
std::vector<Tensor> TensorsOf(absl::Span<const Value> values);
std::vector<Tensor> TensorsOf(ValueList values);

}  // namespace headrace::tf::internal
