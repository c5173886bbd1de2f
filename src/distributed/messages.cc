#include "distributed/messages.h"

#include <climits>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/match.h"
#include "google/protobuf/io/zero_copy_stream_impl.h"

namespace headrace::distributed {
namespace {

// A stop is not felt to be late.
constexpr std::chrono::milliseconds kLooksForStop{20};
// Pieces of a message that is parsed whole: larger ones than an int counts are
// refused before.
constexpr size_t kLongestMessage = size_t{1} << 31;

}  // namespace

Status ReadMessage(const Bytes& bytes, google::protobuf::MessageLite* message) {
  using google::protobuf::io::ArrayInputStream;
  using google::protobuf::io::ConcatenatingInputStream;
  using google::protobuf::io::ZeroCopyInputStream;
  bool read = bytes.size() < kLongestMessage;
  if (read) {
    std::vector<std::unique_ptr<ArrayInputStream>> owned;
    std::vector<ZeroCopyInputStream*> streams;
    for (const Bytes::Piece& p : bytes.pieces()) {
      owned.push_back(
          std::make_unique<ArrayInputStream>(p.data, static_cast<int>(p.size)));
      streams.push_back(owned.back().get());
    }
    ConcatenatingInputStream all(streams.data(),
                                 static_cast<int>(streams.size()));
    read = message->ParseFromZeroCopyStream(&all);
  }
  if (read) return OkStatus();
  const std::string type = message->GetTypeName();
  return Internal("Unable to parse ",
                  absl::EndsWith(type, "Request") ? "request" : "message", ": ",
                  bytes.size(), " bytes are no ", type);
}

Bytes WriteMessage(const google::protobuf::MessageLite& message) {
  return Bytes(message.SerializeAsString());
}

StatusOr<Bytes> WriteIfShort(const google::protobuf::MessageLite& message) {
  const size_t bytes = message.ByteSizeLong();
  if (bytes > INT_MAX) {
    return ResourceExhausted("a ", message.GetTypeName(), " of ", bytes,
                             " bytes: a message has at most ", INT_MAX,
                             "; what tasks send each other may be larger, what "
                             "a session is fed or gives may not");
  }
  std::string text(bytes, '\0');
  message.SerializeWithCachedSizesToArray(
      reinterpret_cast<uint8_t*>(text.data()));
  return Bytes(std::move(text));
}

Status StatusOf(const Answer& answer) {
  if (answer.code == 0) return OkStatus();
  return Status(static_cast<absl::StatusCode>(answer.code), answer.message);
}

Answer AnswerOf(const Status& s, Bytes body) {
  Answer answer;
  answer.code = static_cast<int>(s.code());
  if (s.ok()) {
    answer.body = std::move(body);
  } else {
    answer.message = std::string(s.message());
  }
  return answer;
}

Answer AnswerWith(const Status& s, const google::protobuf::MessageLite& body) {
  if (!s.ok()) return AnswerOf(s);
  StatusOr<Bytes> bytes = WriteIfShort(body);
  return bytes.ok() ? AnswerOf(s, *std::move(bytes)) : AnswerOf(bytes.status());
}

Calls::~Calls() {
  {
    MutexLock lock(shared_->mutex);
    shared_->over = true;
    shared_->on_error = shared_->then = nullptr;
    while (shared_->reading > 0) shared_->changed.Wait(shared_->mutex);
  }
  for (const auto& call : Taken(*shared_)) call->Cancel();
}

std::vector<std::shared_ptr<ClientCall>> Calls::Taken(Shared& shared) {
  MutexLock lock(shared.mutex);
  return std::exchange(shared.calls, {});
}

void Calls::Start(Channel& channel, const std::string& path, Bytes request,
                  const CallOptions& options, Read read) {
  {
    MutexLock lock(shared_->mutex);
    if (!shared_->error.ok()) return;
    ++shared_->left;
  }
  auto call =
      channel.Start(path, std::move(request), options,
                    [shared = shared_, read = std::move(read)](
                        const Answer& answer) { End(*shared, answer, read); });
  bool late;
  {
    MutexLock lock(shared_->mutex);
    late = !shared_->error.ok();
    if (!late) shared_->calls.push_back(call);
  }
  if (late && call) call->Cancel();
}

void Calls::End(Shared& shared, const Answer& answer, const Read& read) {
  {
    MutexLock lock(shared.mutex);
    if (shared.over) return;
    ++shared.reading;
  }
  End(shared, read(answer), /*reads=*/true);
}

void Calls::End(Shared& shared, const Status& s, bool reads) {
  if (!s.ok()) Fail(shared, s);
  std::function<void(const Status&)> then;
  Status error;
  {
    MutexLock lock(shared.mutex);
    if (reads) --shared.reading;
    if (--shared.left == 0) {
      then.swap(shared.then);
      error = shared.error;
    }
  }
  // Behind the lock: who is woken within it waits for it once more.
  shared.changed.NotifyAll();
  if (then) then(error);
}

std::function<void(const Status&)> Calls::Other() {
  MutexLock lock(shared_->mutex);
  ++shared_->left;
  return
      [shared = shared_](const Status& s) { End(*shared, s, /*reads=*/false); };
}

void Calls::Then(std::function<void(const Status&)> f) {
  Status error;
  {
    MutexLock lock(shared_->mutex);
    if (shared_->left > 0) {
      shared_->then = std::move(f);
      return;
    }
    error = shared_->error;
  }
  f(error);
}

void Calls::Fail(Shared& shared, const Status& s) {
  std::function<void(const Status&)> tell;
  {
    MutexLock lock(shared.mutex);
    if (!shared.error.ok()) return;
    shared.error = s;
    tell = std::exchange(shared.on_error, nullptr);
  }
  if (tell) tell(s);
  for (const auto& call : Taken(shared)) {
    if (call) call->Cancel();
  }
}

void Calls::OnError(std::function<void(const Status&)> f) {
  Status now;
  {
    MutexLock lock(shared_->mutex);
    now = shared_->error;
    if (now.ok()) shared_->on_error = std::move(f);
  }
  if (!now.ok()) f(now);
}

Status Calls::Wait() {
  while (true) {
    {
      MutexLock lock(shared_->mutex);
      if (shared_->left > 0) {
        shared_->changed.WaitFor(shared_->mutex, kLooksForStop);
      }
      if (shared_->left == 0) return shared_->error;
    }
    if (Status s = CheckStop(); !s.ok()) Fail(s);
  }
}

void Calls::Start(Channel& channel, const std::string& path,
                  const google::protobuf::MessageLite& request,
                  const CallOptions& options, Read read) {
  StatusOr<Bytes> bytes = WriteIfShort(request);
  if (!bytes.ok()) return Fail(bytes.status());
  Start(channel, path, *std::move(bytes), options, std::move(read));
}

Status CallAndWait(Channel& channel, const std::string& path,
                   const google::protobuf::MessageLite& request,
                   google::protobuf::MessageLite* response,
                   const CallOptions& options) {
  Calls calls;
  calls.Start(channel, path, request, options,
              [response](const Answer& answer) {
                const Status s = StatusOf(answer);
                return s.ok() ? ReadMessage(answer.body, response) : s;
              });
  return calls.Wait();
}

}  // namespace headrace::distributed
