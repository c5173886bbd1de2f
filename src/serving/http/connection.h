// One client of a loop. A private header of the room.
#pragma once

#include <event2/event.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "serving/http/request_parser.h"
#include "serving/http/tls_stream.h"

namespace headrace::serving {

class Connection;
class HttpLoop;

// Connections with a deadline each, all after the same time, so that the first
// is the next one's: a change is a constant number of steps.
class DeadlineList {
 public:
  using Clock = std::chrono::steady_clock;
  explicit DeadlineList(std::chrono::milliseconds after) : after_(after) {}
  bool empty() const { return list_.empty(); }
  Connection* front() const { return list_.front(); }
  bool FrontIsDue(Clock::time_point now) const;

 private:
  friend class Connection;
  const std::chrono::milliseconds after_;
  std::list<Connection*> list_;
};

// Of the loop's thread alone.
class Connection {
 public:
  enum class Phase {
    kIdle,     // nothing of a request has come
    kReading,  // a part of one
    kRunning,  // its answer is waited for
    kWriting,  // the answer is on its way
    // All is sent, and the client has not closed yet: what it still sends is
    // thrown away. Closing on unread bytes might take the answer back.
    kLingering,
    kClosed,
  };

  // Takes the socket, which does not block. Null where there is no memory.
  static std::unique_ptr<Connection> Make(HttpLoop* loop, int socket,
                                          uint64_t id);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  uint64_t id() const { return id_; }
  Phase phase() const { return phase_; }

  // Sends what the running request is answered.
  void Answer(HttpResponse response);
  // Called once, where the client goes before the answer.
  void OnClose(std::function<void()> gone) { gone_ = std::move(gone); }
  // Answers what cannot go on as a request, and closes.
  void Refuse(int status, StringView error);
  void Refuse(HttpResponse response);
  // What the client wants is no longer wanted by it.
  void GiveUp();
  void Close();

 private:
  friend class DeadlineList;
  Connection(HttpLoop* loop, int socket, uint64_t id);
  static void OnReadable(int socket, short what, void* connection);
  static void OnWritable(int socket, short what, void* connection);

  void Read();
  bool ReadSome();
  void Advance();
  // False where the request is refused by its head.
  bool Admit();
  void Dispatch();
  void Begin(const HttpResponse& response);
  void Write();
  ssize_t SendSome();
  void Written();
  void Linger();
  void Pause();
  void Resume();
  void SetPhase(Phase phase, DeadlineList* list);
  // Another 64 KiB of a request or an answer earn the time for the next ones.
  void Progress(size_t bytes);

  HttpLoop* const loop_;
  const int socket_;
  std::unique_ptr<TlsStream> tls_;  // null: the socket itself
  const uint64_t id_;
  struct FreeEvent {
    void operator()(event* e) const { event_free(e); }
  };
  std::unique_ptr<event, FreeEvent> readable_, writable_;
  Phase phase_ = Phase::kIdle;
  DeadlineList* list_ = nullptr;
  std::list<Connection*> place_;  // one node: here, or in list_
  std::list<Connection*>::iterator node_;
  DeadlineList::Clock::time_point deadline_;
  size_t progress_ = 0;

  std::string in_;  // what has come and no request has used
  RequestParser parser_;
  bool paused_ = false;       // reading
  bool ended_ = false;        // the client sends no more
  bool advancing_ = false;    // Advance() is on the stack
  bool close_after_ = false;  // the answer that is written
  bool linger_after_ = false;
  bool head_only_ = false;   // the method was HEAD
  std::string head_, body_;  // of the answer
  size_t sent_ = 0;          // bytes of both
  std::function<void()> gone_;
};

}  // namespace headrace::serving
