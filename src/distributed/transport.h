// How the tasks of a cluster talk: named methods that take bytes and answer
// bytes.
//
// Two transports do this: gRPC's, in a library of its own that is loaded when
// it is first asked for (load.h: programs on one machine carry none of it), and
// one within the process, for tests and the simulator (local_transport.h). No
// type of gRPC, Abseil or protobuf crosses this interface, as that library has
// copies of its own.
//
// Thread-safe, all of it. Functions that are handed in are called on threads of
// the transport, or on the one that made what they tell of happen; they must
// not wait.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "distributed/wire/bytes.h"

namespace headrace::distributed {

// Raised with each change of this header: the library of gRPC's transport that
// is loaded must be of the same.
inline constexpr int kTransportInterface = 8;

// Names in lower case, as HTTP/2 has them; a name that ends in "-bin" may have
// any bytes for its value.
using Metadata = std::multimap<std::string, std::string>;
using Clock = std::chrono::steady_clock;

// How a call ended. Codes are those of gRPC, which are those of absl::Status.
struct Answer {
  bool ok() const { return code == 0; }

  int code = 0;
  std::string message;
  std::string details;  // grpc-status-details-bin: payloads of the status
  Bytes body;           // of a call that ended well
  Metadata metadata;    // trailing
};

struct CallOptions {
  Clock::time_point deadline = Clock::time_point::max();
  Metadata metadata;
  // Whether a call waits, until its deadline, for a peer that is not up yet.
  // Else it is Unavailable at once.
  bool wait_for_ready = false;
  // Parts that the peer sends before its answer, in order; empty: there must be
  // none, and a call whose peer sends some does not end well. The next part, or
  // the answer, comes when `next` has been called, which may be later and on
  // any thread: until then the peer is held up, so that what is not yet read
  // takes bounded memory. A call that ends with an error may have lost the
  // parts that came shortly before it: gRPC lets go what was not read by then.
  std::function<void(Bytes part, std::function<void()> next)> on_part;
  // A part is handed out when it comes; so may be what the answer has, as one
  // more part. Else a part may be known for one only when the next has come, as
  // the last message is the answer.
  bool parts_alone = false;
  // Whether parts of many megabytes may come.
  bool brings_much = false;
};

// Why a call of that path with that metadata cannot be sent; empty where it
// can.
std::string Fault(const std::string& path, const Metadata& metadata);
// The same of metadata alone.
std::string Fault(const Metadata& metadata);

// A call under way, as its caller holds it. May be let go before it ends.
class ClientCall {
 public:
  virtual ~ClientCall() = default;
  // It ends with CANCELLED, unless it has ended.
  virtual void Cancel() = 0;
};

// Calls under way outlive it.
class Channel {
 public:
  virtual ~Channel() = default;
  // `path` is "/package.Service/Method". `done` is called once.
  virtual std::shared_ptr<ClientCall> Start(
      const std::string& path, Bytes request, const CallOptions& options,
      std::function<void(Answer)> done) = 0;
  // On any thread: has it call `f` when it has seen to what the transport
  // called it for. False, and no call, where it is none of the transport's, or
  // may work or wait.
  virtual bool Later(std::function<void()> f) {
    (void)f;
    return false;
  }
};

// A call under way, as its server holds it; it ends with CANCELLED where it is
// let go without an answer.
class ServerCall {
 public:
  virtual ~ServerCall() = default;
  // To be asked for before the answer.
  virtual const Metadata& metadata() const = 0;
  virtual std::string peer() const = 0;  // its address
  virtual Clock::time_point deadline() const = 0;
  // To be asked on the thread that the method was called on: whether the method
  // may work or wait there until it returns. Else it must not.
  virtual bool MayWait() { return false; }
  // As that of a channel.
  virtual bool Later(std::function<void()> f) {
    (void)f;
    return false;
  }
  // Called once, at once where that has happened: the caller is gone or its
  // deadline has passed before the answer was sent. The last one set counts.
  virtual void OnCancel(std::function<void()> f) = 0;
  // A part before the answer, one at a time; `sent` is called when the next may
  // come, with false where there is nobody left to read it.
  virtual void Send(Bytes part, std::function<void(bool)> sent) = 0;
  // The first one counts. After a part it waits for that to be sent.
  virtual void Finish(Answer answer) = 0;
};

using Method =
    std::function<void(std::shared_ptr<ServerCall> call, Bytes request)>;
// One to which messages come in turn: the next when the answer to the last was
// sent as a part. No message: the caller has no more, and the call is to be
// finished.
using Conversation = std::function<void(std::shared_ptr<ServerCall> call,
                                        std::optional<Bytes> message)>;

// PEM texts. Of a channel: who signs the servers' certificates, and what it
// shows of itself. Of a listener: what it shows, and who signs the clients'
// certificates, which it asks for unless that is empty. All empty: no TLS.
struct TlsKeys {
  bool empty() const {
    return roots.empty() && certificate.empty() && key.empty() &&
           client_roots.empty();
  }

  std::string roots, certificate, key, client_roots;
};

struct ConnectOptions {
  TlsKeys tls;
  // Whether the peer is asked every few seconds if it is there, so that calls
  // end where its machine or the link is gone. Not for TensorFlow's servers,
  // which hang up on who asks more often than every five minutes.
  bool probes = true;
};

struct ListenOptions {
  std::string address;  // "host:port"; port 0: one that is free
  std::map<std::string, Method> methods;  // by path
  // By path, too. Callers are TensorFlow's alone: a channel has none, and the
  // transport within the process does not know them.
  std::map<std::string, Conversation> conversations;
  // Before a call's bytes are read; an answer with a code refuses it. May be
  // empty.
  std::function<Answer(const std::string& path, const Metadata& metadata)>
      authorize;
  size_t longest_message = SIZE_MAX;
  TlsKeys tls;
};

class Listener {
 public:
  // As Stop with no time left.
  virtual ~Listener() = default;
  virtual int port() const = 0;
  // No new calls; those under way may end until `until`, then they are
  // cancelled and told Unavailable. Waits for that, at most a second longer,
  // and for methods that run. Not to be called on a thread of the transport.
  virtual void Stop(Clock::time_point until) = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  // Never waits: a peer that is not there is found out by calls.
  virtual std::shared_ptr<Channel> Connect(const std::string& address,
                                           const ConnectOptions& options) = 0;
  // Null, and why in *error, where the address cannot be listened at.
  virtual std::unique_ptr<Listener> Listen(ListenOptions options,
                                           std::string* error) = 0;
};

}  // namespace headrace::distributed
