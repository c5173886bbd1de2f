// Protos and errors as calls carry them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/cancellation.h"
#include "base/hash_map.h"
#include "base/mutex.h"
#include "base/status.h"
#include "distributed/transport.h"
#include "google/protobuf/message_lite.h"

namespace headrace::distributed {

inline constexpr char kMasterService[] = "/tensorflow.MasterService/";
inline constexpr char kWorkerService[] = "/tensorflow.WorkerService/";

// Internal where the bytes are no such message, in gRPC's words for requests.
Status ReadMessage(const Bytes& bytes, google::protobuf::MessageLite* message);
Bytes WriteMessage(const google::protobuf::MessageLite& message);
// The same; ResourceExhausted where the message is longer than 2 GB, as none
// may be.
StatusOr<Bytes> WriteIfShort(const google::protobuf::MessageLite& message);

Status StatusOf(const Answer& answer);
// `body` counts where `s` is OK.
Answer AnswerOf(const Status& s, Bytes body = {});
// The message counts where `s` is OK, and is not too long.
Answer AnswerWith(const Status& s, const google::protobuf::MessageLite& body);

// Calls under way at the same time, and their ends.
class Calls {
 public:
  Calls() : shared_(std::make_shared<Shared>()) {}
  // Cancels what is under way.
  ~Calls();
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  // `read` is called with the answer, which may be an error, on a thread of the
  // transport, while this lives.
  using Read = std::function<Status(const Answer&)>;
  void Start(Channel& channel, const std::string& path, Bytes request,
             const CallOptions& options, Read read = StatusOf);
  // A request that is too long is the first error.
  void Start(Channel& channel, const std::string& path,
             const google::protobuf::MessageLite& request,
             const CallOptions& options, Read read = StatusOf);
  // Calls `f` at the first error, on whichever thread, perhaps at once.
  void OnError(std::function<void(const Status&)> f);
  // The first error, which is not waited for: it cancels the other calls.
  void Fail(const Status& s) { Fail(*shared_, s); }
  // Counts what is no call as one, until what this returns is called, once,
  // with how it ended.
  std::function<void(const Status&)> Other();
  // Waits for all to end, as CheckStop allows; the first error.
  Status Wait();
  // In its place: calls `f` when all have ended, on the thread of the last,
  // perhaps at once; `f` may let this go. No more calls may begin but while
  // others are under way.
  void Then(std::function<void(const Status&)> f);

 private:
  struct Shared {
    Mutex mutex;
    CondVar changed;
    int left ABSL_GUARDED_BY(mutex) = 0;
    bool over ABSL_GUARDED_BY(mutex) = false;  // nobody reads answers any more
    int reading ABSL_GUARDED_BY(mutex) = 0;
    Status error ABSL_GUARDED_BY(mutex);
    std::function<void(const Status&)> on_error ABSL_GUARDED_BY(mutex);
    std::function<void(const Status&)> then ABSL_GUARDED_BY(mutex);
    std::vector<std::shared_ptr<ClientCall>> calls ABSL_GUARDED_BY(mutex);
  };
  static void Fail(Shared& shared, const Status& s);
  static void End(Shared& shared, const Answer& answer, const Read& read);
  // One has ended; `reads` as long as its answer was read until now.
  static void End(Shared& shared, const Status& s, bool reads);
  static std::vector<std::shared_ptr<ClientCall>> Taken(Shared& shared);

  const std::shared_ptr<Shared> shared_;
};

// One call, waited for.
Status CallAndWait(Channel& channel, const std::string& path,
                   const google::protobuf::MessageLite& request,
                   google::protobuf::MessageLite* response,
                   const CallOptions& options);

}  // namespace headrace::distributed
