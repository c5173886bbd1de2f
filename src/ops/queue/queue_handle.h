// Handles of queues and readers, which steps and threads share.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "op/op.h"
#include "op/resource.h"

namespace headrace {

// Sets output 0 to the handle of the resource that the attributes `container`
// and `shared_name` name, or of a new one without a name, and returns it.
// `make` is given what messages call it.
template <typename T, typename Make>
StatusOr<std::shared_ptr<T>> MakeHandle(KernelContext& c, Make&& make) {
  static std::atomic<int64_t> unnamed{0};
  ResourceHandle handle;
  handle.name = c.op().string_attr("shared_name");
  handle.container = c.op().string_attr("container");
  if (handle.container.empty()) handle.container = "localhost";
  std::shared_ptr<T> resource;
  if (handle.name.empty()) {
    HR_ASSIGN_OR_RETURN(resource, make(absl::StrCat(unnamed++)));
    handle.resource = resource;
  } else {
    HR_ASSIGN_OR_RETURN(resource,
                        c.services().resources->template LookUpOrCreate<T>(
                            handle.container, handle.name,
                            [&]() -> StatusOr<std::shared_ptr<T>> {
                              return make(handle.name);
                            }));
    handle.kind = &typeid(T);
  }
  c.set_output(0, Tensor::Scalar<ResourceHandle>(std::move(handle)));
  return resource;
}

}  // namespace headrace
