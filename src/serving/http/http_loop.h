// A thread with its connections. A private header of the room.
#pragma once

#include <event2/event.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/hash_map.h"
#include "serving/http/connection.h"
#include "serving/http/http_server.h"
#include "serving/http/mailbox.h"

namespace headrace::serving {

// Shared by the loops of a server and who waits for them.
struct HttpCounts {
  std::atomic<int> open{0};     // connections
  std::atomic<int> waiting{0};  // of them those that are not lingering
  std::atomic<int> leaving{0};  // of them those that loops were asked to close
  Mutex mutex;                  // of waits alone: what they look at is atomic
  CondVar none_waits;           // for a look at `waiting`
};

class HttpLoop {
 public:
  static StatusOr<std::unique_ptr<HttpLoop>> Start(const HttpOptions& options,
                                                   const HttpHandler& handler,
                                                   HttpCounts* counts);
  // Stops it.
  ~HttpLoop();
  HttpLoop(const HttpLoop&) = delete;
  HttpLoop& operator=(const HttpLoop&) = delete;

  // In any thread:
  Mailbox& mailbox() { return *mailbox_; }
  // A socket that does not block, counted already by `counts`; takes it.
  void Add(int socket);
  // Closes the connection that has been silent longest, if one is.
  void EvictOne();
  // Closes its connections and waits for its thread.
  void Stop();
  // Without those that are going to be evicted.
  int connections() const { return connections_count_ - leaving_; }

  // In its thread:
  void Answer(uint64_t connection, HttpResponse response);
  void OnClose(uint64_t connection, std::function<void()> gone);

  // For its connections:
  event_base* base() const { return base_.get(); }
  const HttpOptions& options() const { return options_; }
  const HttpHandler& handler() const { return handler_; }
  HttpResponder ResponderOf(uint64_t connection) {
    return HttpResponder(mailbox_, connection);
  }
  bool draining() const { return draining_; }
  // The connection whose request the handler has on the stack; 0: none.
  uint64_t dispatching() const { return dispatching_; }
  void set_dispatching(uint64_t connection) { dispatching_ = connection; }
  // "Tue, 24 Nov 2026 00:00:00 GMT"
  const std::string& date();
  char* scratch() { return scratch_.data(); }
  size_t scratch_bytes() const { return scratch_.size(); }
  // Of connections whose request has not come, or not all of it.
  DeadlineList& waiting() { return waiting_; }
  DeadlineList& writing() { return writing_; }
  DeadlineList& lingering() { return lingering_; }
  // No answer is owed to it any more.
  void LeavesOff();
  // It is closed: deleted when nothing of it is on the stack.
  void Bury(uint64_t connection);
  void DeleteBuried() { buried_.clear(); }

 private:
  HttpLoop(const HttpOptions& options, const HttpHandler& handler,
           HttpCounts* counts);
  Status Prepare();
  void Run();
  void OnMail();
  void ReadMail();
  void Adopt(int socket);
  void Evict(int count);
  void CloseIdle();
  void Abandon();
  void CloseAll();
  void Tick();

  struct FreeBase {
    void operator()(event_base* b) const { event_base_free(b); }
  };
  struct FreeEvent {
    void operator()(event* e) const { event_free(e); }
  };
  const HttpOptions options_;
  const HttpHandler handler_;
  HttpCounts* const counts_;
  std::shared_ptr<Mailbox> mailbox_;
  std::unique_ptr<event_base, FreeBase> base_;
  std::unique_ptr<event, FreeEvent> mail_, tick_;
  DeadlineList waiting_, writing_, lingering_;
  HashMap<uint64_t, std::unique_ptr<Connection>> connections_;
  std::vector<std::unique_ptr<Connection>> buried_;
  std::atomic<int> connections_count_{0}, leaving_{0};
  uint64_t next_id_ = 1, dispatching_ = 0;
  bool draining_ = false, stopping_ = false;
  std::string date_;
  int64_t date_second_ = 0;
  std::vector<char> scratch_;
  std::thread thread_;
};

}  // namespace headrace::serving
