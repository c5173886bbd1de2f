#include "cc/op_call.h"

#include "op/emitter.h"
#include "op/registry.h"

namespace headrace::tf::internal {

OpCall::OpCall(const char* op) : def_(Check(LookUpOp(op))) {}

void OpCall::Input(const std::vector<Tensor>& list) {
  for (const Tensor& t : list) Input(t);
}

void OpCall::Attr(const char* name, const Tensor& v) {
  const Value& value = Access::ValueOf(v);
  // Attributes are fixed when the graph is made, and the tensor has no value
  // then.
  if (value.is_symbolic()) {
    throw Error(ErrorCode::kInvalidArgument,
                absl::StrCat(def_->name, ": attr '", name,
                             "' cannot be a tensor of a traced function"));
  }
  attrs_.Set(name, value.tensor());
}

void OpCall::Attr(const char* name, const std::vector<DType>& v) {
  std::vector<headrace::DType> types;
  for (DType d : v) types.push_back(Core(d));
  attrs_.Set(name, std::move(types));
}

void OpCall::Attr(const char* name, const std::vector<TensorShape>& v) {
  std::vector<headrace::Shape> shapes;
  for (const TensorShape& s : v) shapes.push_back(Core(s));
  attrs_.Set(name, std::move(shapes));
}

void OpCall::TypesAttr(const char* name, const std::vector<Tensor>& list) {
  std::vector<DType> types;
  for (const Tensor& t : list) types.push_back(t.dtype());
  Attr(name, types);
}

void OpCall::Run() {
  absl::InlinedVector<headrace::DType, 8> types;
  for (const Value& v : inputs_) types.push_back(v.dtype());
  op_ = Check(ResolveOp(*def_, types, attrs_));
  Check(Emit(op_, inputs_, &outputs_));
}

Tensor OpCall::One(int i) const {
  // An output of the definition may stand for several tensors.
  return Access::Wrap(outputs_[op_->output_range(i).begin]);
}

std::vector<Tensor> OpCall::List(int i) const {
  ArgRange r = op_->output_range(i);
  std::vector<Tensor> list;
  for (int k = r.begin; k < r.end; ++k) {
    list.push_back(Access::Wrap(outputs_[k]));
  }
  return list;
}

}  // namespace headrace::tf::internal
