// Resources by name, and the commonest one: a variable.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "base/status.h"
#include "tensor/tensor.h"
#include "tensor/variant.h"

namespace headrace {

// A tensor that ops may change; kernels that update
// in place copy first when somebody else reads the buffer (copy on write), so
// a value once read never changes.
class Variable : public Resource {
 public:
  Variable(DType dtype, Shape shape)
      : dtype_(dtype), shape_(std::move(shape)) {}
  std::string DebugString() const override;
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }  // as declared

  // The value; FailedPrecondition while uninitialised.
  StatusOr<Tensor> Read(StringView name) const;
  bool initialized() const;
  // Replaces the value (its buffer is shared).
  void Assign(Tensor t);
  // Calls fn(Tensor& value) with the lock held and the buffer exclusive.
  template <typename F>
  Status Update(StringView name, F&& fn) {
    MutexLock lock(mutex_);
    HR_RETURN_IF_ERROR(MakeExclusive(name));
    return fn(value_);
  }

 private:
  Status MakeExclusive(StringView name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const DType dtype_;
  const Shape shape_;
  mutable Mutex mutex_;
  Tensor value_ ABSL_GUARDED_BY(mutex_);  // no buffer: uninitialised
};

// Container -> name -> resource. Thread-safe.
class ResourceManager {
 public:
  // NotFound when absent; InvalidArgument when of another type.
  StatusOr<std::shared_ptr<Resource>> LookUp(const std::string& container,
                                             const std::string& name) const;
  Status Create(const std::string& container, const std::string& name,
                std::shared_ptr<Resource> r);  // AlreadyExists
  // Existing or created by `make`, as one step.
  StatusOr<std::shared_ptr<Resource>> LookUpOrCreate(
      const std::string& container, const std::string& name,
      const std::function<StatusOr<std::shared_ptr<Resource>>()>& make);
  Status Delete(const std::string& container, const std::string& name);
  void ClearContainer(const std::string& container);
  void Clear();

 private:
  mutable Mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::shared_ptr<Resource>>
      resources_ ABSL_GUARDED_BY(mutex_);
};

// The process-wide manager, used by eager.
ResourceManager& DefaultResources();

// The T behind input i of kind resource: InvalidArgument when it is not one,
// NotFound/FailedPrecondition when it does not exist (any more).
StatusOr<std::shared_ptr<Resource>> ResourceOf(const Tensor& handle,
                                               ResourceManager* manager);
template <typename T>
StatusOr<std::shared_ptr<T>> ResourceAs(const Tensor& handle,
                                        ResourceManager* manager) {
  HR_ASSIGN_OR_RETURN(auto r, ResourceOf(handle, manager));
  auto t = std::dynamic_pointer_cast<T>(r);
  if (!t) {
    return InvalidArgument("Trying to access resource of the wrong type: ",
                           r->DebugString());
  }
  return t;
}

}  // namespace headrace
