// MutexV2, MutexLock, ConsumeMutexLock: one step at a time in a part of a
// program.
#include "base/mutex.h"

#include "op/op.h"
#include "op/resource.h"
#include "op/waiting.h"
#include "ops/queue/await_change.h"
#include "ops/queue/queue_handle.h"

namespace headrace {
namespace {

// Held by at most one HeldMutex. Thread-safe.
class StepMutex : public Resource {
 public:
  std::string DebugString() const override { return "Mutex"; }
  Status Lock() {
    MutexLock lock(mutex_);
    while (held_) HR_RETURN_IF_ERROR(AwaitChange(mutex_, changed_));
    held_ = true;
    return OkStatus();
  }
  void Unlock() {
    MutexLock lock(mutex_);
    held_ = false;
    changed_.NotifyAll();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
};

// The mutex is free again when the last tensor that holds this is gone.
class HeldMutex : public VariantValue {
 public:
  explicit HeldMutex(std::shared_ptr<StepMutex> mutex)
      : mutex_(std::move(mutex)) {}
  ~HeldMutex() override { mutex_->Unlock(); }
  StringView type_name() const override {
    return "(anonymous)::Mutex::LockReleaser";
  }

 private:
  const std::shared_ptr<StepMutex> mutex_;
};

Status MakeMutex(KernelContext& c) {
  const auto make =
      [](const std::string&) -> StatusOr<std::shared_ptr<StepMutex>> {
    return std::make_shared<StepMutex>();
  };
  return MakeHandle<StepMutex>(c, make).status();
}

HR_OP(MutexV2)
    .Output("resource: resource")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .Doc("A mutex, by name or a new one.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeMutex>);

Status LockMutex(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(
      auto mutex, ResourceAs<StepMutex>(c.input(0), c.services().resources));
  HR_RETURN_IF_ERROR(mutex->Lock());
  c.set_output(0, Tensor::Scalar(Variant(std::make_shared<HeldMutex>(mutex))));
  return OkStatus();
}

HR_OP(MutexLock)
    .Input("mutex: resource")
    .Output("mutex_lock: variant")
    .Doc("Waits for a mutex, which is held as long as its result is.")
    .Traits({kMayWait, kMayBeTried})
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<LockMutex>);

Status ConsumeLock(KernelContext& c) {
  const Variant& held = c.input(0).scalar<Variant>();
  if (held.get<HeldMutex>() != nullptr) return OkStatus();
  return InvalidArgument("Expected input to be a mutex lock, but got ",
                         held.DebugString());
}

Status OneLock(ShapeContext& c) { return CheckRank(c.input(0), 0); }

HR_OP(ConsumeMutexLock)
    .Input("mutex_lock: variant")
    .Doc("Holds a mutex until here.")
    .Stateful()
    .Shape(OneLock)
    .Cpu(Compute<ConsumeLock>);

}  // namespace
}  // namespace headrace
