// Resources without a name, which live as long as their handles.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "op/op.h"
#include "op/resource.h"

namespace headrace {

// Output 0 is a handle that keeps `resource` (null: a handle of nothing).
// Output 1, where there is one, is upstream's deleter, which deletes nothing.
inline void SetAnonymous(KernelContext& c, std::shared_ptr<Resource> resource) {
  ResourceHandle handle;
  handle.resource = std::move(resource);
  handle.container = "localhost";
  c.set_output(0, Tensor::Scalar(std::move(handle)));
  if (c.num_outputs() > 1) c.set_output(1, Tensor::Scalar(Variant()));
}

// One that a graph of a dataset makes anew, by a call of an op, as a handle is
// nothing outside of this process.
class RemadeResource : public Resource {
 public:
  virtual const char* maker() const = 0;
  virtual std::vector<Tensor> maker_inputs() const { return {}; }
};

// The kernel of the ops that upstream deletes such resources with.
inline Status LeaveToHandles(KernelContext& c) { return OkStatus(); }

}  // namespace headrace
