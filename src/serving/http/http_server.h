// A server of HTTP/1.1: it cuts requests out of connections and sends answers,
// which may come later and from any thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "serving/access/tls_file.h"
#include "serving/http/http_message.h"
#include "serving/http/request_parser.h"
#include "serving/http/responder.h"

namespace headrace::serving {

struct HttpOptions {
  // On all addresses, "::" first. 0: a free one, which port() tells.
  int port = 0;
  // Of loops, each of which serves its share of the connections; 0: four a CPU.
  int threads = 0;
  // Of a connection: for saying nothing, for sending one request (or 64 KiB of
  // it) and for taking one answer (or 64 KiB of it). It is closed then.
  std::chrono::milliseconds timeout{30000};
  HttpLimits limits;
  // Beyond so many the one that has been silent longest is closed for each new
  // one; 0: half of the process' file limit.
  int most_connections = 0;
  // Looks at a request whose head has come, before its body is taken in: an
  // answer refuses it and closes the connection. Called by a loop's thread;
  // empty: all are taken.
  std::function<std::optional<HttpResponse>(const HttpRequest& head)> admit;
  // What TLS shows to clients and asks of them; null: no TLS. A connection goes
  // on with what there was when it came.
  std::shared_ptr<TlsFile> tls;
};

// Called by a loop's thread, which serves others, so briefly. It answers by the
// responder, at once or later.
using HttpHandler = std::function<void(const HttpRequest&, HttpResponder)>;

// Thread-safe.
class HttpServer {
 public:
  // Raises the process' file limit to its hard limit. Unavailable where the
  // port cannot be had.
  static StatusOr<std::unique_ptr<HttpServer>> Start(const HttpOptions& options,
                                                     HttpHandler handler);
  // Stop().
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const;
  // Connections that are open.
  int connections() const;

  // Closes the listener and the connections that say nothing; all others after
  // the answer they wait for. Returns when there are none, or at `deadline`:
  // then the rest is answered 503 "server is shutting down", and closed.
  void Drain(std::chrono::steady_clock::time_point deadline);
  // Closes all at once and ends the threads. No handler runs after it.
  void Stop();

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace headrace::serving
