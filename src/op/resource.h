// Resources by name, and the commonest one: a variable.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <typeindex>
#include <typeinfo>
#include <utility>
#include <vector>

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

// The error of a handle that stands for another kind than its user needs;
// `what` is the resource, or its name where that is all the handle says.
Status WrongKind(StringView what);

// Container -> name -> resources, one of each kind: a queue and a variable may
// have one name. A kind is a class: the one that the users of the resource ask
// for by LookUp and ResourceAs, so a base where they take any class of it.
// Thread-safe.
class ResourceManager {
 public:
  // NotFound when absent.
  template <typename T>
  StatusOr<std::shared_ptr<T>> LookUp(const std::string& container,
                                      const std::string& name) const {
    HR_ASSIGN_OR_RETURN(auto r, Find(container, name, &typeid(T)));
    return std::static_pointer_cast<T>(r);
  }
  // Of the kind that is given, or of any when it is null.
  StatusOr<std::shared_ptr<Resource>> Find(const std::string& container,
                                           const std::string& name,
                                           const std::type_info* kind) const;
  template <typename T>
  Status Create(const std::string& container, const std::string& name,
                std::shared_ptr<T> r) {  // AlreadyExists
    return Add(container, name, typeid(T), std::move(r));
  }
  // Existing or created by `make`, as one step.
  template <typename T>
  StatusOr<std::shared_ptr<T>> LookUpOrCreate(
      const std::string& container, const std::string& name,
      const std::function<StatusOr<std::shared_ptr<T>>()>& make) {
    HR_ASSIGN_OR_RETURN(
        auto r, FindOrMake(container, name, typeid(T),
                           [&]() -> StatusOr<std::shared_ptr<Resource>> {
                             return make();
                           }));
    return std::static_pointer_cast<T>(r);
  }
  // That of a kind, or all of the name when it is null.
  Status Delete(const std::string& container, const std::string& name,
                const std::type_info* kind);
  void ClearContainer(const std::string& container);
  void Clear();

 private:
  using Kinds = std::vector<std::pair<std::type_index,  // few, mostly one
                                      std::shared_ptr<Resource>>>;

  Status Add(const std::string& container, const std::string& name,
             const std::type_info& kind, std::shared_ptr<Resource> r);
  StatusOr<std::shared_ptr<Resource>> FindOrMake(
      const std::string& container, const std::string& name,
      const std::type_info& kind,
      const std::function<StatusOr<std::shared_ptr<Resource>>()>& make);

  mutable Mutex mutex_;
  std::map<std::pair<std::string, std::string>, Kinds> resources_
      ABSL_GUARDED_BY(mutex_);
};

// The process-wide manager, used by eager.
ResourceManager& DefaultResources();

// What a tensor of kind resource says: InvalidArgument when it is not one,
// FailedPrecondition when it has a name and there is nothing to look it up in.
StatusOr<const ResourceHandle*> HandleOf(const Tensor& handle,
                                         const ResourceManager* manager);
// What is behind it; NotFound when it does not exist (any more).
StatusOr<std::shared_ptr<Resource>> ResourceOf(const Tensor& handle,
                                               ResourceManager* manager);
// The same of a kind; InvalidArgument for a handle of another one.
template <typename T>
StatusOr<std::shared_ptr<T>> ResourceAs(const Tensor& handle,
                                        ResourceManager* manager) {
  HR_ASSIGN_OR_RETURN(const ResourceHandle* h, HandleOf(handle, manager));
  if (h->resource) {
    auto t = std::dynamic_pointer_cast<T>(h->resource);
    if (!t) return WrongKind(h->resource->DebugString());
    return t;
  }
  if (h->kind != nullptr && *h->kind != typeid(T)) return WrongKind(h->name);
  return manager->LookUp<T>(h->container, h->name);
}

}  // namespace headrace
