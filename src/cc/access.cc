#include "cc/access.h"

#include "op/emitter.h"
#include "op/registry.h"

namespace headrace::tf::internal {

const Value& Access::ValueOf(const Tensor& t) {
  if (!t) throw Error(ErrorCode::kInvalidArgument, "a null Tensor was used");
  return *reinterpret_cast<const Value*>(&t.rep_);
}

Tensor Access::Wrap(Value v) {
  Tensor t;
  new (&t.rep_) Value(std::move(v));
  return t;
}

ErrorCode CodeOf(const Status& s) {
  // The codes have the same numbers on both sides.
  return static_cast<ErrorCode>(static_cast<int>(s.code()));
}

void Check(const Status& s) {
  if (!s.ok()) throw Error(CodeOf(s), std::string(s.message()));
}

headrace::Shape Core(const TensorShape& s) {
  if (!s.known_rank) return headrace::Shape::UnknownRank();
  return Check(headrace::Shape::Make(s.dims, /*allow_unknown=*/true));
}

TensorShape Public(const headrace::Shape& s) {
  TensorShape out(std::vector<int64_t>(s.dims().begin(), s.dims().end()));
  out.known_rank = s.known_rank();
  return out;
}

ValueList CallOp(const char* op, const std::vector<Value>& inputs,
                 const AttrMap& attrs) {
  const OpDef* def = Check(LookUpOp(op));
  ValueList outputs;
  Check(Emit(*def, inputs, attrs, &outputs));
  return outputs;
}

Tensor CallOp1(const char* op, const std::vector<Value>& inputs,
               const AttrMap& attrs) {
  return Access::Wrap(CallOp(op, inputs, attrs)[0]);
}

std::vector<Value> ValuesOf(const std::vector<Tensor>& tensors) {
  std::vector<Value> values;
  for (const Tensor& t : tensors) values.push_back(Access::ValueOf(t));
  return values;
}

std::vector<Tensor> TensorsOf(absl::Span<const Value> values) {
  std::vector<Tensor> tensors;
  tensors.reserve(values.size());
  for (const Value& v : values) tensors.push_back(Access::Wrap(v));
  return tensors;
}

std::vector<Tensor> TensorsOf(ValueList values) {
  std::vector<Tensor> tensors;
  tensors.reserve(values.size());
  for (Value& v : values) tensors.push_back(Access::Wrap(std::move(v)));
  return tensors;
}

}  // namespace headrace::tf::internal
