// Calls of WebHDFS: NameNodes that take turns, redirects to DataNodes, tries
// that end.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "base/net/http_client.h"
#include "base/remote/tries.h"
#include "base/remote/webhdfs_answer.h"
#include "base/status.h"

namespace headrace {

struct WebHdfsOptions {
  std::vector<std::string> name_nodes;  // "http://host:port"
  std::string user;                     // "": none is told
  std::string token;                    // a delegation token, "": none
  std::string cluster;                  // "hdfs://host:port", for errors
  TryLimits limits;
};

// Thread-safe.
class WebHdfsClient {
 public:
  using Parameters = std::vector<std::pair<std::string, std::string>>;

  WebHdfsClient(HttpClient* http, WebHdfsOptions options);

  // What the NameNode answers. `*repeated`, unless null, is set where the call
  // may have been done by a try before, whose answer was lost. Errors: see
  // ParseRemoteError; Unavailable where no NameNode answers in time.
  StatusOr<std::string> Call(StringView method, const std::string& path,
                             const Parameters& parameters,
                             bool* repeated = nullptr);

  // Fills `out` with a file's bytes from `offset` on; DataNodes that fail are
  // passed by. Returns how many bytes: fewer only where the file ends there.
  StatusOr<size_t> Read(const std::string& path, uint64_t offset,
                        absl::Span<char> out);

  // Sends bytes by CREATE ("PUT") or APPEND ("POST"). CREATE is tried again by
  // itself; APPEND where nothing has been sent (`*sent`: it has).
  Status Write(StringView method, const std::string& path,
               const Parameters& parameters, uint64_t size,
               const std::function<Status(uint64_t, absl::Span<char>)>& body,
               bool* sent);

  std::string Shown(const std::string& path) const {
    return options_.cluster + path;
  }

 private:
  struct ReadState;
  std::string UrlOf(const std::string& path,
                    const Parameters& parameters) const;
  // One answer of a NameNode below 400.
  Status Ask(StringView method, const std::string& path,
             const Parameters& parameters, Tries* tries, HttpAnswer* answer,
             const std::function<bool(StringView)>& take = nullptr);
  // With the path in its text.
  Status Named(const std::string& path, const Status& s) const;
  Status AskOnce(HttpRequest* request, HttpAnswer* answer);
  Status ReadOnce(const std::string& path, ReadState* state);
  void Exclude(const std::string& path, uint64_t offset,
               const std::string& location, std::vector<std::string>* excluded);
  HttpRequest Transfer(StringView method, std::string url) const;

  HttpClient* const http_;
  const WebHdfsOptions options_;
  std::atomic<size_t> active_{0};      // of name_nodes, the one that answered
  std::atomic<bool> kerberos_{false};  // a NameNode has asked for it
};

}  // namespace headrace
