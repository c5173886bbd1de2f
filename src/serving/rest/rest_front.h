// Version 1 of the stock server's REST interface.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "serving/answer/answers.h"
#include "serving/answer/observer.h"
#include "serving/http/http_server.h"
#include "serving/model/workers.h"
#include "serving/models.h"
#include "serving/request_log/request_logs.h"

namespace headrace::serving {

// Other paths of the same port: answers, or keeps the responder to answer
// later, and says true; says false where the request is not for it. Runs in a
// loop's thread (HttpHandler).
using RestExtra = std::function<bool(const HttpRequest&, HttpResponder)>;

struct RestOptions {
  int port = 0;                // --rest_api_port; 0: a free one
  int threads = 0;             // --rest_api_num_threads; 0: four a CPU
  int64_t timeout_ms = 30000;  // --rest_api_timeout_in_ms, of calls and clients
  bool cors = false;           // --rest_api_enable_cors_support
  int64_t max_body_bytes = int64_t{512} << 20;  // --rest_api_max_body_bytes
  // Where requests wait for a model that has to be loaded first, so that the
  // loops do not; null: in the loops.
  Workers* workers = nullptr;
  // Whether a request may go on, by its head; empty: all may.
  std::function<Status(const HttpRequest& head)> admit;
  std::shared_ptr<TlsFile> tls;  // --rest_api_ssl_config_file; null: no TLS
  // Asked first, in their order.
  std::vector<RestExtra> extra;
  // Told of each answer of the paths of version 1, whose methods are "predict",
  // "classify", "regress", "status" and "metadata", with the model as it was
  // asked for; null: nobody.
  std::function<void(const Answered&)> answered;
  // Where requests to predict, classify and regress are kept; null: nowhere.
  RequestLogs* logs = nullptr;
};

// An answer with a body of {"error": ...} where the Status is one.
HttpResponse ErrorResponse(const Status& s);

// Thread-safe.
class RestFront {
 public:
  // Serves from now on. `models` outlives the front. Errors of
  // HttpServer::Start.
  static StatusOr<std::unique_ptr<RestFront>> Start(
      Models& models, const AnswerOptions& answers, const RestOptions& options);

  int port() const { return server_->port(); }
  // See HttpServer.
  void Drain(std::chrono::steady_clock::time_point deadline) {
    server_->Drain(deadline);
  }
  void Stop() { server_->Stop(); }

 private:
  RestFront() = default;

  std::unique_ptr<HttpServer> server_;
};

}  // namespace headrace::serving
