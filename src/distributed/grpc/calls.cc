#include "distributed/grpc/calls.h"

#include <grpc/support/time.h>

#include <algorithm>
#include <optional>

#include "base/mutex.h"
#include "distributed/grpc/buffers.h"

namespace headrace::distributed {
namespace {

// Both count the machine's monotonic clock, which nobody sets.
gpr_timespec TimeOf(Clock::time_point at) {
  if (at == Clock::time_point::max())
    return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  const auto since = std::chrono::duration_cast<std::chrono::nanoseconds>(
      at.time_since_epoch());
  return gpr_time_from_nanos(std::max<int64_t>(0, since.count()),
                             GPR_CLOCK_MONOTONIC);
}

// What all calls have.
class GrpcCall : public ClientCall {
 public:
  GrpcCall(Called called, const CallOptions& options,
           std::shared_ptr<EventQueue> queue, std::function<void(Answer)> done)
      : called_(std::move(called)),
        queue_(std::move(queue)),
        done_(std::move(done)) {
    context_.set_wait_for_ready(options.wait_for_ready);
    context_.set_deadline(TimeOf(options.deadline));
    for (const auto& [key, value] : options.metadata) {
      context_.AddMetadata(key, value);
    }
  }
  void Cancel() override { context_.TryCancel(); }

 protected:
  Answer AnswerOf(const grpc::Status& status) const {
    Answer answer;
    answer.code = status.error_code();
    answer.message = status.error_message();
    answer.details = status.error_details();
    answer.metadata = FromTexts(context_.GetServerTrailingMetadata());
    // What gRPC itself says of a call does not say which.
    if (answer.code == 14 || answer.code == 4) {
      const std::chrono::duration<double> waited = Clock::now() - began_;
      answer.message += " (" + called_.path + " at " + called_.address +
                        ", after " + std::to_string(waited.count()) + " s)";
    }
    return answer;
  }

  const Called called_;
  const Clock::time_point began_ = Clock::now();
  const std::shared_ptr<EventQueue> queue_;
  std::function<void(Answer)> done_;
  grpc::ClientContext context_;
};

class UnaryCall : public GrpcCall {
 public:
  using GrpcCall::GrpcCall;

  static std::shared_ptr<ClientCall> Start(std::shared_ptr<UnaryCall> call,
                                           grpc::GenericStub& stub,
                                           const grpc::ByteBuffer& request) {
    call->self_ = call;
    call->reader_ = stub.PrepareUnaryCall(&call->context_, call->called_.path,
                                          request, call->queue_->get());
    call->reader_->StartCall();
    call->reader_->Finish(&call->body_, &call->status_, &call->ended_);
    return call;
  }

 private:
  void Ended() {
    const std::shared_ptr<UnaryCall> self = std::move(self_);
    Answer answer = AnswerOf(status_);
    if (answer.ok()) answer.body = FromBuffer(body_);
    body_.Clear();
    std::exchange(done_, nullptr)(std::move(answer));
  }

  std::shared_ptr<UnaryCall> self_;  // until it ends
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader_;
  grpc::ByteBuffer body_;
  grpc::Status status_;
  QueueEvent ended_{
      this, [](void* of, bool) { static_cast<UnaryCall*>(of)->Ended(); }};
};

// Parts and an answer are messages of one stream, of which the answer is the
// last: each is known for a part when the next has come.
class StreamCall : public GrpcCall {
 public:
  StreamCall(Called called, const CallOptions& options,
             std::shared_ptr<EventQueue> queue,
             std::function<void(Answer)> done)
      : GrpcCall(std::move(called), options, std::move(queue), std::move(done)),
        on_part_(options.on_part),
        parts_alone_(options.parts_alone) {}

  static std::shared_ptr<ClientCall> Start(std::shared_ptr<StreamCall> call,
                                           grpc::GenericStub& stub,
                                           const grpc::ByteBuffer& request) {
    call->self_ = call;
    // The head of the call travels with the request.
    call->context_.set_initial_metadata_corked(true);
    call->stream_ = stub.PrepareCall(&call->context_, call->called_.path,
                                     call->queue_->get());
    call->stream_->StartCall(nullptr);
    // Both before any event is looked at.
    const MutexLock lock(call->mutex_);
    call->stream_->WriteLast(request, {}, &call->written_);
    call->stream_->ReadInitialMetadata(&call->begun_);
    return call;
  }

 private:
  using Self = std::shared_ptr<StreamCall>;

  void Begun() {
    const MutexLock lock(mutex_);
    reads_ = true;
    stream_->Read(&incoming_, &read_);
    // Told when the call has ended, whatever is read.
    stream_->Finish(&status_, &finished_);
  }
  void Written() {
    {
      const MutexLock lock(mutex_);
      is_written_ = true;
    }
    Advance();
  }
  void Finished() {
    {
      const MutexLock lock(mutex_);
      is_finished_ = true;
    }
    Advance();
  }
  // `self`: another thread may end the call, and let go of self_, as soon as
  // nothing is being read.
  void Read(const Self& self, bool ok) {
    std::optional<grpc::ByteBuffer> part;
    {
      const MutexLock lock(mutex_);
      reads_ = false;
      if (ok) {
        if (parts_alone_) {
          part = std::move(incoming_);
          // The empty message is the answer.
          if (part->Length() == 0) part.reset();
        } else {
          part = std::exchange(held_, std::move(incoming_));
        }
        incoming_ = grpc::ByteBuffer();
        if (!part) return ReadNext();
        is_handed_out_ = true;
      } else {
        is_read_ = true;
      }
    }
    if (!part) return Advance();
    on_part_(FromBuffer(*part), [self] { self->Next(); });
  }
  void Next() {
    {
      const MutexLock lock(mutex_);
      if (!std::exchange(is_handed_out_, false) || !done_) return;
      if (!is_finished_ || status_.ok()) return ReadNext();
    }
    Advance();
  }
  void ReadNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    reads_ = true;
    stream_->Read(&incoming_, &read_);
  }

  // Ends the call where all that it waits for is there.
  void Advance() {
    std::function<void(Answer)> done;
    std::optional<grpc::ByteBuffer> last;
    bool is_handed_out;
    {
      const MutexLock lock(mutex_);
      if (!is_written_ || !is_finished_ || reads_ || !done_) return;
      if (status_.ok() && !is_read_) return;
      done = std::exchange(done_, nullptr);
      last = std::exchange(held_, std::nullopt);
      is_handed_out = is_handed_out_;
    }
    const Self self = std::move(self_);
    Answer answer = AnswerOf(status_);
    if (!answer.ok()) {
      // Then the last was a part, too; nobody is waited for any more.
      if (last && !is_handed_out) on_part_(FromBuffer(*last), [] {});
    } else if (last) {
      answer.body = FromBuffer(*last);
    } else if (!parts_alone_) {
      answer = {13, called_.path + " at " + called_.address +
                        " ended without an answer"};
    }
    done(std::move(answer));
  }

  template <void (StreamCall::*f)()>
  QueueEvent Event() {
    return {this, [](void* of, bool) {
              // Kept while it handles what may be its last.
              const Self self = static_cast<StreamCall*>(of)->self_;
              (self.get()->*f)();
            }};
  }

  const decltype(CallOptions::on_part) on_part_;
  const bool parts_alone_;
  Self self_;  // until it ends
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  grpc::ByteBuffer incoming_;
  grpc::Status status_;
  Mutex mutex_;
  std::optional<grpc::ByteBuffer> held_ ABSL_GUARDED_BY(mutex_);
  bool is_written_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_finished_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_read_ ABSL_GUARDED_BY(mutex_) = false;  // to the end
  bool reads_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_handed_out_ ABSL_GUARDED_BY(mutex_) = false;  // a part
  QueueEvent begun_ = Event<&StreamCall::Begun>();
  QueueEvent written_ = Event<&StreamCall::Written>();
  QueueEvent finished_ = Event<&StreamCall::Finished>();
  QueueEvent read_{this, [](void* of, bool ok) {
                     const Self self = static_cast<StreamCall*>(of)->self_;
                     self->Read(self, ok);
                   }};
};

class NoCall : public ClientCall {
 public:
  void Cancel() override {}
};

}  // namespace

std::shared_ptr<ClientCall> StartCall(grpc::GenericStub& stub, Called called,
                                      const Bytes& request,
                                      const CallOptions& options,
                                      std::shared_ptr<EventQueue> queue,
                                      std::function<void(Answer)> done) {
  const grpc::ByteBuffer buffer = ToBuffer(request);
  if (options.on_part) {
    return StreamCall::Start(
        std::make_shared<StreamCall>(std::move(called), options,
                                     std::move(queue), std::move(done)),
        stub, buffer);
  }
  return UnaryCall::Start(
      std::make_shared<UnaryCall>(std::move(called), options, std::move(queue),
                                  std::move(done)),
      stub, buffer);
}

std::shared_ptr<ClientCall> EndedCall() { return std::make_shared<NoCall>(); }

}  // namespace headrace::distributed
