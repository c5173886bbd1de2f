#include "op/remote_place.h"

#include "base/mutex.h"
#include "base/threads.h"

namespace headrace {
namespace {

struct PlaceOfThread {
  std::shared_ptr<RemotePlace> place;
};

struct Connected {
  Mutex mutex;
  std::shared_ptr<RemoteTasks> tasks ABSL_GUARDED_BY(mutex);
};
Connected& TheConnected() {
  static Connected* const connected = new Connected;
  return *connected;
}

}  // namespace

std::shared_ptr<RemoteTasks> ConnectedTasks() {
  MutexLock lock(TheConnected().mutex);
  return TheConnected().tasks;
}

void SetConnectedTasks(std::shared_ptr<RemoteTasks> tasks) {
  MutexLock lock(TheConnected().mutex);
  TheConnected().tasks.swap(tasks);
}

RemotePlace* ThisPlace() {
  if (!RemotePlace::Any()) return nullptr;
  return OwnObject<PlaceOfThread>().place.get();
}

void SetThisPlace(std::shared_ptr<RemotePlace> place) {
  OwnObject<PlaceOfThread>().place = std::move(place);
}

const RemoteName* RemoteNameOf(const Tensor& t) {
  if (!t.has_buffer() || t.num_elements() != 1) return nullptr;
  if (t.dtype() == DType::kResource) {
    return dynamic_cast<const RemoteName*>(
        t.data<ResourceHandle>()->resource.get());
  }
  if (t.dtype() == DType::kVariant) {
    return dynamic_cast<const RemoteName*>(t.data<Variant>()->value().get());
  }
  return nullptr;
}

std::shared_ptr<RemotePlace> PlaceFor(absl::Span<const Tensor* const> inputs,
                                      std::shared_ptr<RemotePlace> otherwise) {
  bool here = false;
  for (const Tensor* t : inputs) {
    if (const RemoteName* name = RemoteNameOf(*t)) return name->place();
    here |= t->dtype() == DType::kResource || t->dtype() == DType::kVariant;
  }
  return here ? nullptr : std::move(otherwise);
}

std::shared_ptr<RemotePlace> PlaceFor(absl::Span<const Tensor* const> inputs) {
  if (!RemotePlace::Any()) return nullptr;
  return PlaceFor(inputs, OwnObject<PlaceOfThread>().place);
}

}  // namespace headrace
