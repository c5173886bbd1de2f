#include "op/resource.h"

#include <algorithm>
#include <functional>
#include <iterator>

namespace headrace {

std::string Variable::DebugString() const {
  return absl::StrCat("Variable ", DTypeName(dtype_), shape_.ToString());
}

StatusOr<Tensor> Variable::Read(StringView name) const {
  MutexLock lock(mutex_);
  if (!value_.has_buffer()) {
    return FailedPrecondition(
        "Could not find variable ", name,
        ". This could mean that the variable has been deleted. In TF1, it can "
        "also mean the variable is uninitialized.");
  }
  return value_;
}

bool Variable::initialized() const {
  MutexLock lock(mutex_);
  return value_.has_buffer();
}

void Variable::Assign(Tensor t) {
  MutexLock lock(mutex_);
  // The old value ends behind the lock: it may be Python's, whose end runs
  // Python, and who holds the GIL may be waiting for the lock.
  std::swap(value_, t);
}

Status Variable::MakeExclusive(StringView name) {
  if (!value_.has_buffer()) {
    return FailedPrecondition(
        "Could not find variable ", name,
        ". This could mean that the variable has been deleted. In TF1, it can "
        "also mean the variable is uninitialized.");
  }
  // Copy on write: whoever read the variable keeps what was read.
  if (value_.exclusive()) return OkStatus();
  HR_ASSIGN_OR_RETURN(value_, value_.Clone());
  return OkStatus();
}

Status WrongKind(StringView what) {
  return InvalidArgument("Trying to access resource of the wrong type: ", what);
}

StatusOr<std::shared_ptr<Resource>> ResourceManager::Find(
    const std::string& container, const std::string& name,
    const std::type_info* kind) const {
  MutexLock lock(mutex_);
  auto it = resources_.find({container, name});
  if (it != resources_.end()) {
    for (const auto& [its, resource] : it->second) {
      if (kind == nullptr || its == *kind) return resource;
    }
  }
  it = resources_.lower_bound({container, ""});
  if (it == resources_.end() || it->first.first != container) {
    return NotFound("Container ", container,
                    " does not exist. (Could not find resource: ", container,
                    "/", name, ")");
  }
  return NotFound("Resource ", container, "/", name, " does not exist.");
}

Status ResourceManager::Add(const std::string& container,
                            const std::string& name, const std::type_info& kind,
                            std::shared_ptr<Resource> r) {
  MutexLock lock(mutex_);
  Kinds& kinds = resources_[{container, name}];
  for (const auto& [its, resource] : kinds) {
    if (its != kind) continue;
    return AlreadyExists("Resource ", container, "/", name, " already exists");
  }
  kinds.emplace_back(kind, std::move(r));
  return OkStatus();
}

StatusOr<std::shared_ptr<Resource>> ResourceManager::FindOrMake(
    const std::string& container, const std::string& name,
    const std::type_info& kind,
    const std::function<StatusOr<std::shared_ptr<Resource>>()>& make) {
  MutexLock lock(mutex_);
  if (auto it = resources_.find({container, name}); it != resources_.end()) {
    for (const auto& [its, resource] : it->second) {
      if (its == kind) return resource;
    }
  }
  // Under the lock, so that `make` runs once; it must not come back for a
  // resource of this manager.
  HR_ASSIGN_OR_RETURN(auto made, make());
  resources_[{container, name}].emplace_back(kind, made);
  return made;
}

Status ResourceManager::Delete(const std::string& container,
                               const std::string& name,
                               const std::type_info* kind) {
  Kinds last;  // destroyed after the lock
  MutexLock lock(mutex_);
  auto it = resources_.find({container, name});
  if (it != resources_.end()) {
    Kinds& kinds = it->second;
    const auto others = std::stable_partition(
        kinds.begin(), kinds.end(),
        [&](const auto& k) { return kind != nullptr && k.first != *kind; });
    last.assign(std::move_iterator(others), std::move_iterator(kinds.end()));
    kinds.erase(others, kinds.end());
    if (kinds.empty()) resources_.erase(it);
  }
  if (last.empty()) {
    return NotFound("Resource ", container, "/", name, " does not exist.");
  }
  return OkStatus();
}

void ResourceManager::ClearContainer(const std::string& container) {
  MutexLock lock(mutex_);
  std::erase_if(resources_,
                [&](const auto& e) { return e.first.first == container; });
}

void ResourceManager::Clear() {
  MutexLock lock(mutex_);
  resources_.clear();
}

ResourceManager& DefaultResources() {
  static ResourceManager* manager = new ResourceManager;
  return *manager;
}

StatusOr<const ResourceHandle*> HandleOf(const Tensor& handle,
                                         const ResourceManager* manager) {
  if (handle.dtype() != DType::kResource || handle.num_elements() != 1) {
    return InvalidArgument("expected a resource handle, got ",
                           handle.Describe());
  }
  const ResourceHandle& h = handle.scalar<ResourceHandle>();
  if (!h.resource && manager == nullptr) {
    return FailedPrecondition("no resources in this run: ", h.name);
  }
  return &h;
}

StatusOr<std::shared_ptr<Resource>> ResourceOf(const Tensor& handle,
                                               ResourceManager* manager) {
  HR_ASSIGN_OR_RETURN(const ResourceHandle* h, HandleOf(handle, manager));
  // Handles of anonymous resources carry them; names are looked up only where
  // graphs and checkpoints say them.
  if (h->resource) return h->resource;
  return manager->Find(h->container, h->name, h->kind);
}

}  // namespace headrace
