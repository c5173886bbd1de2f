#include "rpc/call_state.h"

#include "rpc/served_call.h"

namespace headrace {
namespace {

class CallHandle : public RpcCall {
 public:
  explicit CallHandle(std::shared_ptr<CallState> state)
      : state_(std::move(state)) {}
  ~CallHandle() override {
    state_->Finish({Cancelled("the call was let go without an answer")});
  }
  Clock::time_point deadline() const override { return state_->deadline(); }
  const Metadata& metadata() override { return state_->metadata(); }
  const std::string& peer() override { return state_->peer(); }
  void OnCancel(std::function<void()> f) override {
    state_->OnCancel(std::move(f));
  }
  void Send(const grpc::ByteBuffer& part,
            std::function<void(bool)> sent) override {
    state_->Send(part, std::move(sent));
  }
  void Finish(RpcEnd end) override { state_->Finish(std::move(end)); }

 private:
  const std::shared_ptr<CallState> state_;
};

}  // namespace

std::shared_ptr<RpcCall> HandleOf(std::shared_ptr<CallState> state) {
  return std::make_shared<CallHandle>(std::move(state));
}

void CallState::Learn() {
  if (learned_ || call_ == nullptr) return;
  learned_ = true;
  peer_ = call_->context().peer();
  for (const auto& [key, value] : call_->context().client_metadata()) {
    metadata_.emplace(std::string(key.data(), key.size()),
                      std::string(value.data(), value.size()));
  }
}

const RpcCall::Metadata& CallState::metadata() {
  const MutexLock lock(mutex_);
  Learn();
  return metadata_;
}

const std::string& CallState::peer() {
  const MutexLock lock(mutex_);
  Learn();
  return peer_;
}

void CallState::OnCancel(std::function<void()> f) {
  std::function<void()> before;
  {
    const MutexLock lock(mutex_);
    if (!cancelled_) {
      before = std::move(on_cancel_);
      if (call_ != nullptr && !end_) on_cancel_ = std::move(f);
      return;
    }
  }
  f();
}

void CallState::Send(const grpc::ByteBuffer& part,
                     std::function<void(bool)> sent) {
  {
    const MutexLock lock(mutex_);
    if (call_ != nullptr && !cancelled_ && !writes_ && !end_) {
      writes_ = true;
      sent_ = std::move(sent);
      return call_->Write(part);
    }
  }
  sent(false);
}

void CallState::Finish(RpcEnd end) {
  std::function<void()> unused;
  const MutexLock lock(mutex_);
  if (call_ == nullptr || end_) return;
  unused = std::move(on_cancel_);
  on_cancel_ = nullptr;
  if (absl::IsCancelled(end.status) && expired_) {
    end.status = Unavailable(kServerStops);
  }
  if (writes_) {
    end_ = std::move(end);
    return;
  }
  std::exchange(call_, nullptr)->End(std::move(end));
}

void CallState::Cancel() {
  std::function<void()> f;
  {
    const MutexLock lock(mutex_);
    if (cancelled_) return;
    cancelled_ = true;
    f = std::move(on_cancel_);
    on_cancel_ = nullptr;
  }
  if (f) f();
}

void CallState::Written(bool ok) {
  std::function<void(bool)> sent;
  {
    const MutexLock lock(mutex_);
    writes_ = false;
    sent = std::move(sent_);
    sent_ = nullptr;
    if (end_ && call_ != nullptr) {
      std::exchange(call_, nullptr)->End(*std::move(end_));
    } else if (ok && call_ != nullptr) {
      call_->ReadNext();
    }
  }
  sent(ok);
}

}  // namespace headrace
