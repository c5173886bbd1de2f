// A user's kernel as the engine runs it.
#include "c/custom/call.h"
#include "c/custom/kernel_registry.h"
#include "c/status.h"

// Given to an asynchronous kernel; the call waits for it.
struct TF_AsyncOpKernelDoneCallback {
  headrace::Mutex mutex;
  headrace::CondVar changed;
  bool done ABSL_GUARDED_BY(mutex) = false;

  void Run() {
    headrace::MutexLock lock(mutex);
    done = true;
    changed.NotifyAll();
  }
  void Wait() {
    headrace::MutexLock lock(mutex);
    while (!done) changed.Wait(mutex);
  }
};

namespace headrace::capi {
namespace {

class KernelOfUser : public Kernel {
 public:
  explicit KernelOfUser(const UsersKernel& user) : user_(user) {}
  ~KernelOfUser() override {
    if (user_.destroy && made_) user_.destroy(state_);
  }

  Status Make(const ResolvedOp& op) {
    made_ = true;  // what create_func leaves behind is delete_func's
    if (user_.create == nullptr) return OkStatus();
    TF_OpKernelConstruction construction{op, OkStatus()};
    state_ = user_.create(&construction);
    return construction.failure;
  }

  Status Run(KernelContext& c) override {
    TF_OpKernelContext call(c);
    if (user_.compute != nullptr) {
      user_.compute(state_, &call);
    } else {
      TF_AsyncOpKernelDoneCallback done;
      user_.compute_async(state_, &call, &done);
      done.Wait();
    }
    return call.Finish();
  }

  // They are known when the kernel is done.
  bool own_outputs() const override { return true; }

 private:
  const UsersKernel& user_;  // kept for ever
  void* state_ = nullptr;
  bool made_ = false;
};

}  // namespace

StatusOr<std::unique_ptr<Kernel>> MakeUsersKernel(const UsersKernel& kernel,
                                                  const ResolvedOp& op) {
  auto made = std::make_unique<KernelOfUser>(kernel);
  HR_RETURN_IF_ERROR(Guarded(absl::StrCat("the kernel of op ", op.name()),
                             [&] { return made->Make(op); }));
  return std::unique_ptr<Kernel>(std::move(made));
}

}  // namespace headrace::capi

void TF_RunAsyncOpKernelDoneCallback(TF_AsyncOpKernelDoneCallback* done) {
  if (done) done->Run();
}
