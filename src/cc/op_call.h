// What the generated op functions are made of.
#pragma once

#include <string>
#include <vector>

#include "cc/access.h"
#include "op/resolved_op.h"

namespace headrace::tf::internal {

// One call being put together; throws tf::Error when something is wrong.
class OpCall {
 public:
  explicit OpCall(const char* op);
  void Input(const Tensor& t) { inputs_.push_back(Access::ValueOf(t)); }
  void Input(const std::vector<Tensor>& list);
  void Attr(const char* name, int64_t v) { attrs_.Set(name, v); }
  void Attr(const char* name, float v) { attrs_.Set(name, v); }
  void Attr(const char* name, bool v) { attrs_.Set(name, v); }
  void Attr(const char* name, const std::string& v) { attrs_.Set(name, v); }
  void Attr(const char* name, DType v) { attrs_.Set(name, Core(v)); }
  void Attr(const char* name, const TensorShape& v) {
    attrs_.Set(name, Core(v));
  }
  void Attr(const char* name, const Tensor& v);
  void Attr(const char* name, const std::vector<int64_t>& v) {
    attrs_.Set(name, v);
  }
  void Attr(const char* name, const std::vector<float>& v) {
    attrs_.Set(name, v);
  }
  void Attr(const char* name, const std::vector<bool>& v) {
    attrs_.Set(name, v);
  }
  void Attr(const char* name, const std::vector<std::string>& v) {
    attrs_.Set(name, v);
  }
  void Attr(const char* name, const std::vector<DType>& v);
  void Attr(const char* name, const std::vector<TensorShape>& v);
  // The dtypes of a list of tensors.
  void TypesAttr(const char* name, const std::vector<Tensor>& list);
  void Run();
  // The tensor(s) that the i-th output of the definition names.
  Tensor One(int i) const;
  std::vector<Tensor> List(int i) const;

 private:
  const OpDef* def_;
  std::vector<Value> inputs_;
  AttrMap attrs_;
  ResolvedOpPtr op_;
  ValueList outputs_;
};

}  // namespace headrace::tf::internal
