// One call of a gRPC server of bytes, between its completion queue and its
// method.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server_builder.h>

#include <atomic>
#include <list>
#include <set>

#include "base/mutex.h"
#include "rpc/event_queue.h"
#include "rpc/server.h"

namespace headrace {

class ServedCall;
class CallState;

inline constexpr char kServerStops[] = "server is shutting down";

// What all calls of a server share.
struct RpcShared {
  RpcMethods methods;
  decltype(RpcOptions::authorize) authorize;
  size_t longest_text = 0;
  grpc::AsyncGenericService service;
  std::atomic<bool> stopping{false};
  std::atomic<int64_t> refused{0};
  std::atomic<bool> expired{false};  // the time for calls to finish
  Mutex mutex;
  // Streams that wait for their client, to be ended when the server stops.
  std::set<grpc::ServerContext*> chats ABSL_GUARDED_BY(mutex);
  // Calls, those that are waited for among them. A queue may not be shut down
  // before the last is gone: what a call asks of it then ends the process.
  std::list<ServedCall*> calls ABSL_GUARDED_BY(mutex);
  CondVar call_gone;
  bool ended ABSL_GUARDED_BY(mutex) = false;  // all that ran

  void WaitForCalls();
  // Stops the calls that are there at the deadline.
  void StopLate(std::chrono::system_clock::time_point deadline);
  // Ends those whose methods do not.
  void Abandon();
};

// From before it comes until it is finished. Its events come on threads of its
// queue: that its client is gone while another one is looked at, all others one
// behind the other.
class ServedCall {
 public:
  ServedCall(RpcShared& shared, grpc::ServerCompletionQueue* queue);
  ~ServedCall();

  // From the thread that stops the server, when their time has passed.
  void Expire();
  void Abandon();

  // For its state, which holds its lock and sees that neither comes while the
  // other is under way, nor anything after an end.
  void Write(const grpc::ByteBuffer& part);
  void ReadNext();  // of a conversation; on the queue's thread
  void End(RpcEnd end);
  grpc::GenericServerContext& context() { return context_; }

 private:
  template <void (ServedCall::*f)(bool)>
  QueueEvent Event() {
    return {this,
            [](void* of, bool ok) { (static_cast<ServedCall*>(of)->*f)(ok); }};
  }

  void Come(bool ok);
  void Read() { stream_.Read(&request_, &read_event_); }
  void HasRead(bool ok);
  void Chat(bool ok);
  void Converse(bool ok);
  void MakeState();
  void Watch();
  void Rung(bool) { Watch(); }
  void HasWritten(bool ok);
  void Finish(const Status& s, const std::string& details = "");
  void Finished(bool) { Release(); }
  void Gone(bool);
  // Both ends of a call are told: that it is finished and that it is gone. So
  // is what a conversation reads.
  void Release() {
    if (--ends_ == 0) delete this;
  }

  RpcShared& shared_;
  grpc::ServerCompletionQueue* const queue_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_{&context_};
  grpc::Alarm alarm_;
  grpc::ByteBuffer request_, response_;
  const RpcMethod* method_ = nullptr;
  std::list<ServedCall*>::iterator place_;
  std::shared_ptr<CallState> state_;
  std::shared_ptr<RpcCall> handle_;  // of a conversation, between its messages
  std::atomic<bool> runs_{false};    // state_ is there
  int64_t seen_ = -1;
  std::atomic<bool> gone_{false};
  std::atomic<int> ends_{2};
  QueueEvent come_event_ = Event<&ServedCall::Come>();
  QueueEvent read_event_ = Event<&ServedCall::HasRead>();
  QueueEvent written_event_ = Event<&ServedCall::HasWritten>();
  QueueEvent alarm_event_ = Event<&ServedCall::Rung>();
  QueueEvent finished_event_ = Event<&ServedCall::Finished>();
  QueueEvent gone_event_ = Event<&ServedCall::Gone>();
};

}  // namespace headrace
