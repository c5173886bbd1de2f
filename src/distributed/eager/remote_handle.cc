#include "distributed/eager/remote_handle.h"

#include "absl/strings/str_cat.h"
#include "base/hash_map.h"
#include "tensor/dtype_proto.h"

namespace headrace::distributed {
namespace {

// Of the tensors that tasks have, too: which one has each, by its memory.
struct KnownTensors {
  struct Entry {
    DType dtype;
    Shape shape;
    RemoteHandlePtr handle;
  };
  Mutex mutex;
  HashMap<const void*, Entry> tensors ABSL_GUARDED_BY(mutex);
};
KnownTensors& TheKnownTensors() {
  static KnownTensors* const known = new KnownTensors;
  return *known;
}

void ForgetTensor(void* owner) {
  const std::unique_ptr<Tensor> tensor(static_cast<Tensor*>(owner));
  KnownTensors::Entry last;  // ends behind the lock
  KnownTensors& known = TheKnownTensors();
  MutexLock lock(known.mutex);
  const auto it = known.tensors.find(tensor->raw());
  if (it == known.tensors.end()) return;
  last = std::move(it->second);
  known.tensors.erase(it);
}

class RemoteResource : public Resource, public NameHere {
 public:
  using NameHere::NameHere;
  std::string DebugString() const override {
    return absl::StrCat("a resource of ", handle().device());
  }
};

class RemoteVariant : public VariantValue, public NameHere {
 public:
  using NameHere::NameHere;
  StringView type_name() const override { return "headrace::RemoteVariant"; }
  std::string DebugString() const override {
    return absl::StrCat("a variant of ", handle().device());
  }
};

}  // namespace

RemoteHandle::~RemoteHandle() {
  if (task_->gone) return;
  MutexLock lock(task_->mutex);
  task_->dropped.emplace_back(op_, output_);
}

void RemoteHandle::Write(tensorflow::eager::RemoteTensorHandle* out) const {
  out->set_op_id(op_);
  out->set_output_num(output_);
  out->set_device(device_->name());
  out->set_op_device(device_->name());
  out->set_dtype(TypeToProto(dtype_));
}

RemoteHandlePtr FindHandle(const Tensor& t) {
  if (!t.has_buffer()) return nullptr;
  KnownTensors& known = TheKnownTensors();
  MutexLock lock(known.mutex);
  const auto it = known.tensors.find(t.raw());
  if (it == known.tensors.end() || it->second.dtype != t.dtype() ||
      it->second.shape != t.shape()) {
    return nullptr;
  }
  return it->second.handle;
}

Tensor Remembered(Tensor t, RemoteHandlePtr handle) {
  if (!t.has_buffer() || t.num_elements() == 0) return t;
  auto owner = std::make_unique<Tensor>(std::move(t));
  void* const data = owner->raw();
  {
    KnownTensors& known = TheKnownTensors();
    MutexLock lock(known.mutex);
    // (What it held ends behind the lock, as `handle`.)
    auto& entry = known.tensors[data];
    entry.dtype = owner->dtype();
    entry.shape = owner->shape();
    entry.handle.swap(handle);
  }
  const size_t bytes = owner->bytes();
  const DType dtype = owner->dtype();
  const Shape shape = owner->shape();
  return Tensor::Wrap(dtype, shape, data, bytes, owner.release(), ForgetTensor);
}

Tensor NameOf(DType dtype, RemoteHandlePtr handle,
              std::shared_ptr<RemotePlace> place,
              std::shared_ptr<const HandleData> data) {
  if (dtype == DType::kVariant) {
    return Tensor::Scalar<Variant>(
        Variant(std::make_shared<RemoteVariant>(handle, place)));
  }
  ResourceHandle made;
  made.device = handle->device();
  made.resource =
      std::make_shared<RemoteResource>(std::move(handle), std::move(place));
  made.data = std::move(data);
  return Tensor::Scalar<ResourceHandle>(std::move(made));
}

std::string RemoteDeviceOf(const Tensor& t) {
  if (!RemotePlace::Any()) return "";
  if (const RemoteName* name = RemoteNameOf(t)) return name->place()->device();
  const RemoteHandlePtr handle = FindHandle(t);
  return handle ? handle->device() : "";
}

}  // namespace headrace::distributed
