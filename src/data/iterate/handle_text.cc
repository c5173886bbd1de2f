#include "data/iterate/handle_text.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"

namespace headrace {
namespace {

// The handle as text: in this process, a place in a table that keeps it.
class HandleTable {
 public:
  static HandleTable& Get() {
    static auto* table = new HandleTable;
    return *table;
  }
  std::string Keep(const ResourceHandle& handle) {
    MutexLock lock(mutex_);
    for (size_t i = 0; i < handles_.size(); ++i) {
      // Names may come again after an iterator ended, so the object counts too.
      if (handles_[i].name == handle.name &&
          handles_[i].container == handle.container &&
          handles_[i].resource.lock() == handle.resource) {
        return Name(i);
      }
    }
    handles_.push_back({handle.container, handle.name, handle.resource});
    return Name(handles_.size() - 1);
  }
  StatusOr<ResourceHandle> Find(const std::string& text) {
    MutexLock lock(mutex_);
    for (size_t i = 0; i < handles_.size(); ++i) {
      if (Name(i) != text) continue;
      ResourceHandle handle;
      handle.container = handles_[i].container;
      handle.name = handles_[i].name;
      // The table holds no iterator alive; one that went gives a handle without
      // a resource.
      handle.resource = handles_[i].resource.lock();
      return handle;
    }
    return InvalidArgument(
        "Could not parse string_handle as a valid "
        "ResourceHandle");
  }

 private:
  struct NamedHandle {
    std::string container, name;
    std::weak_ptr<Resource> resource;
  };
  static std::string Name(size_t i) {
    return absl::StrCat("headrace::iterator_handle/", i);
  }
  Mutex mutex_;
  std::vector<NamedHandle> handles_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::string TextOfHandle(const ResourceHandle& handle) {
  return HandleTable::Get().Keep(handle);
}

StatusOr<ResourceHandle> HandleOfText(const std::string& text) {
  return HandleTable::Get().Find(text);
}

}  // namespace headrace
