// An op of eager code that is being described, or has been.
#pragma once

#include <string>
#include <vector>

#include "c/eager/context.h"
#include "graph/function.h"
#include "op/attr.h"

// Used by one thread at a time. Mistakes in attributes are kept until it runs.
struct TFE_Op {
  TFE_Context* context;
  std::string name;            // as it was asked for
  const headrace::OpDef* def;  // of calls, where `function` is not null
  headrace::FunctionPtr function;
  std::string device;
  headrace::AttrMap attrs;
  struct Input {
    bool is_list;
    int count;
  };
  std::vector<Input> inputs;
  std::vector<headrace::Tensor> tensors;
  std::vector<headrace::capi::EagerDevicePtr> devices;  // of `tensors`
  headrace::Status status;

  void Fail(headrace::Status s) {
    if (status.ok()) status = std::move(s);
  }
};

namespace headrace::capi {

StatusOr<TFE_Op*> NewEagerOp(TFE_Context* context, const char* name);
// The kind of an attribute of the op or function.
StatusOr<AttrKind> KindOfAttr(const OpDef& def, const char* name);
TF_AttrType AttrTypeOfKind(AttrKind kind, unsigned char* is_list);
// The op with what its inputs say, ready to run.
StatusOr<ResolvedOpPtr> ResolveEagerOp(TFE_Op* op);

}  // namespace headrace::capi
