#include "rpc/served_call.h"

#include <thread>

#include "base/guard.h"
#include "rpc/call_state.h"

namespace headrace {
namespace {

using SystemClock = std::chrono::system_clock;

constexpr std::chrono::milliseconds kWatchEvery{100};
// How soon a thread that waits for calls sees that they have ended.
constexpr std::chrono::milliseconds kLook{100};

grpc::Status Told(const Status& s, size_t longest_text,
                  const std::string& details) {
  std::string text(s.message());
  if (text.size() > longest_text) {
    text.resize(longest_text);
    text += "...TRUNCATED";
  }
  return grpc::Status(static_cast<grpc::StatusCode>(s.code()), text, details);
}

// The client's deadline by our clock, which nobody sets.
RpcCall::Clock::time_point DeadlineOf(const grpc::ServerContext& context) {
  using Clock = RpcCall::Clock;
  const SystemClock::time_point at = context.deadline();
  constexpr auto kFar = std::chrono::hours(24 * 365);
  const auto left = at - SystemClock::now();
  if (left > kFar) return Clock::time_point::max();
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(left);
}

}  // namespace

void RpcShared::WaitForCalls() {
  MutexLock lock(mutex);
  while (!calls.empty()) call_gone.Wait(mutex);
}

void RpcShared::StopLate(SystemClock::time_point deadline) {
  MutexLock lock(mutex);
  while (!ended) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        deadline - SystemClock::now());
    if (left.count() <= 0) break;
    call_gone.WaitFor(mutex, std::min(left, kLook));
  }
  expired = true;
  for (ServedCall* call : calls) call->Expire();
}

void RpcShared::Abandon() {
  MutexLock lock(mutex);
  for (ServedCall* call : calls) call->Abandon();
}

ServedCall::ServedCall(RpcShared& shared, grpc::ServerCompletionQueue* queue)
    : shared_(shared), queue_(queue) {
  {
    MutexLock lock(shared_.mutex);
    place_ = shared_.calls.insert(shared_.calls.end(), this);
  }
  context_.AsyncNotifyWhenDone(&gone_event_);
  shared_.service.RequestCall(&context_, &stream_, queue_, queue_,
                              &come_event_);
}

ServedCall::~ServedCall() {
  MutexLock lock(shared_.mutex);
  shared_.chats.erase(&context_);
  shared_.calls.erase(place_);
  if (shared_.calls.empty()) shared_.call_gone.NotifyAll();
}

void ServedCall::Come(bool ok) {
  if (!ok) {  // the server stops; nothing else will be told of this one
    delete this;
    return;
  }
  new ServedCall(shared_, queue_);
  auto found = shared_.methods.find(StringView(context_.method()));
  if (found == shared_.methods.end()) {
    return Finish(Unimplemented("there is no method ", context_.method()));
  }
  method_ = &found->second;
  if (shared_.stopping) {
    ++shared_.refused;
    return Finish(Unavailable(kServerStops));
  }
  if (shared_.authorize) {
    const Status s =
        shared_.authorize(context_.method(), context_.client_metadata());
    if (!s.ok()) return Finish(s);
  }
  if (method_->chat || method_->converse) {
    MutexLock lock(shared_.mutex);
    shared_.chats.insert(&context_);
  }
  if (method_->converse) return ReadNext();
  Read();
}

void ServedCall::HasRead(bool ok) {
  if (method_->chat) return Chat(ok);
  if (method_->converse) {
    Converse(ok);
    return Release();
  }
  if (!ok) return Finish(Internal("the call has no request"));
  if (method_->watch) return Watch();
  MakeState();
  // This may be deleted as soon as the method has ended the call.
  const std::shared_ptr<CallState> state = state_;
  grpc::ByteBuffer request;
  request.Swap(&request_);
  // Kept, so that what is thrown is told before it is let go.
  const std::shared_ptr<RpcCall> handle = HandleOf(state);
  const Status s = Guarded("a request", [&, method = method_] {
    method->serve(handle, &request);
    return OkStatus();
  });
  if (!s.ok()) state->Finish({s});
}

void ServedCall::MakeState() {
  state_ =
      std::make_shared<CallState>(this, shared_.expired, DeadlineOf(context_));
  runs_ = true;
  if (gone_ || shared_.expired) state_->Cancel();
}

void ServedCall::Converse(bool ok) {
  if (!state_) {
    MakeState();
    handle_ = HandleOf(state_);
  }
  // As above.
  const std::shared_ptr<CallState> state = state_;
  const std::shared_ptr<RpcCall> handle = handle_;
  grpc::ByteBuffer message;
  message.Swap(&request_);
  const Status s = Guarded("a request", [&, method = method_] {
    method->converse(handle, ok ? &message : nullptr);
    return OkStatus();
  });
  if (!s.ok()) state->Finish({s});
}

void ServedCall::ReadNext() {
  if (!method_->converse) return;
  ++ends_;
  Read();
}

void ServedCall::Chat(bool ok) {
  if (!ok) return Finish(OkStatus());
  StatusOr<grpc::ByteBuffer> answer;
  const Status s = Guarded("a request", [&] {
    answer = method_->chat(&request_);
    return answer.status();
  });
  if (!s.ok()) return Finish(s);
  Write(*answer);
}

void ServedCall::Watch() {
  if (gone_) return Finish(Cancelled("the client went away"));
  StatusOr<std::optional<grpc::ByteBuffer>> news;
  const Status s = Guarded("a request", [&] {
    grpc::ByteBuffer request = request_;
    news = method_->watch(&request, &seen_);
    return news.status();
  });
  if (!s.ok()) return Finish(s);
  if (news->has_value()) return Write(**news);
  if (shared_.stopping) return Finish(Unavailable(kServerStops));
  alarm_.Set(queue_, SystemClock::now() + kWatchEvery, &alarm_event_);
}

void ServedCall::HasWritten(bool ok) {
  // This may be deleted as soon as the state has ended the call.
  if (const std::shared_ptr<CallState> state = state_)
    return state->Written(ok);
  if (!ok) return Finish(Cancelled("the client went away"));
  if (method_->chat) return Read();
  Watch();
}

void ServedCall::Write(const grpc::ByteBuffer& part) {
  response_ = part;
  stream_.Write(response_, &written_event_);
}

void ServedCall::End(RpcEnd end) {
  for (const auto& [key, value] : end.metadata) {
    context_.AddTrailingMetadata(key, value);
  }
  if (!end.status.ok()) return Finish(end.status, end.details);
  response_ = std::move(end.body);
  stream_.WriteAndFinish(response_, {}, grpc::Status::OK, &finished_event_);
}

void ServedCall::Finish(const Status& s, const std::string& details) {
  stream_.Finish(Told(s, shared_.longest_text, details), &finished_event_);
}

void ServedCall::Gone(bool) {
  gone_ = true;
  // Also told of calls that ended well.
  if (runs_ && context_.IsCancelled()) state_->Cancel();
  Release();
}

void ServedCall::Expire() {
  if (runs_) state_->Cancel();
}
void ServedCall::Abandon() {
  if (runs_) state_->Finish({Unavailable(kServerStops)});
}

}  // namespace headrace
