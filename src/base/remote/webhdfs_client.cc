#include "base/remote/webhdfs_client.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "base/remote/tries.h"

namespace headrace {
namespace {

// DataNodes that hang are left after this part of the patience, so that others
// are asked, too.
constexpr int kStalls = 4;

// "host:port" of an address.
std::string PlaceIn(StringView url) {
  const size_t scheme = url.find("://");
  if (scheme == StringView::npos) return "";
  const size_t begin = scheme + 3;
  return std::string(url.substr(
      begin, std::min(url.find_first_of("/?", begin), url.size()) - begin));
}

}  // namespace

struct WebHdfsClient::ReadState {
  uint64_t offset;
  absl::Span<char> out;
  size_t done = 0;
  std::vector<std::string> excluded;
  std::string location;  // of the DataNode that was tried
};

WebHdfsClient::WebHdfsClient(HttpClient* http, WebHdfsOptions options)
    : http_(http), options_(std::move(options)) {}

std::string WebHdfsClient::UrlOf(const std::string& path,
                                 const Parameters& parameters) const {
  std::string url = absl::StrCat("/webhdfs/v1", PercentEncode(path, "/"));
  char mark = '?';
  const auto add = [&](StringView name, StringView value) {
    absl::StrAppend(&url, StringView(&mark, 1), name, "=",
                    PercentEncode(value, "/,:"));
    mark = '&';
  };
  for (const auto& [name, value] : parameters) add(name, value);
  if (!options_.token.empty()) {
    add("delegation", options_.token);
  } else if (!options_.user.empty() && !kerberos_) {
    add("user.name", options_.user);
  }
  return url;
}

Status WebHdfsClient::Named(const std::string& path, const Status& s) const {
  if (absl::StartsWith(s.message(), options_.cluster)) return s;
  return Status(s.code(), absl::StrCat(Shown(path), ": ", s.message()));
}

Status WebHdfsClient::AskOnce(HttpRequest* request, HttpAnswer* answer) {
  request->negotiate = kerberos_ && options_.token.empty();
  HR_RETURN_IF_ERROR(http_->Do(*request, answer));
  if (answer->status != 401 || !options_.token.empty()) return OkStatus();
  if (!request->negotiate) {
    for (const auto& [name, value] : answer->headers) {
      if (name == "www-authenticate" &&
          absl::StartsWithIgnoreCase(value, "Negotiate")) {
        kerberos_ = true;
      }
    }
    if (!kerberos_) return OkStatus();
    request->negotiate = true;
    HR_RETURN_IF_ERROR(http_->Do(*request, answer));
    if (answer->status != 401) return OkStatus();
  }
  return PermissionDenied(
      "the NameNode asks for Kerberos and takes no ticket of this user (kinit; "
      "or a delegation token by HADOOP_TOKEN_FILE_LOCATION)");
}

Status WebHdfsClient::Ask(StringView method, const std::string& path,
                          const Parameters& parameters, Tries* tries,
                          HttpAnswer* answer,
                          const std::function<bool(StringView)>& take) {
  const size_t count = options_.name_nodes.size();
  Status last;
  for (size_t asked = 0;; ++asked) {
    const size_t node = active_ % count;
    HttpRequest request;
    request.method = std::string(method);
    request.url = options_.name_nodes[node] + UrlOf(path, parameters);
    request.headers = {"Content-Type: application/octet-stream"};
    request.connect = std::min(kConnectTime, tries->left());
    request.whole = tries->left();
    // The answer of a list may take a NameNode long; bytes may come at once.
    request.stall = options_.limits.patience;
    request.take = take;
    last = AskOnce(&request, answer);
    HdfsTrouble trouble = HdfsTrouble::kStandby;
    if (last.ok()) {
      if (answer->status < 400) return last;
      HdfsError error = ParseRemoteError(*answer, Shown(path));
      last = error.status;
      trouble = error.trouble;
    } else {
      last = Named(path, last);
      if (!IsTransient(last)) return last;
      tries->reached |= answer->reached;
    }
    if (trouble == HdfsTrouble::kNone) return last;
    if (trouble == HdfsTrouble::kStandby) {
      size_t expected = node;
      active_.compare_exchange_strong(expected, (node + 1) % count);
      if (count > 1 && (asked + 1) % count != 0) continue;  // the next, at once
    }
    HR_ASSIGN_OR_RETURN(const bool again, tries->Again());
    if (!again) return last;
  }
}

StatusOr<std::string> WebHdfsClient::Call(StringView method,
                                          const std::string& path,
                                          const Parameters& parameters,
                                          bool* repeated) {
  Tries tries(options_.limits);
  HttpAnswer answer;
  const Status status = Ask(method, path, parameters, &tries, &answer);
  if (repeated != nullptr) *repeated = tries.reached;
  HR_RETURN_IF_ERROR(status);
  if (answer.status / 100 == 2) return std::move(answer.body);
  return DataLoss(Shown(path), ": HTTP status ", answer.status,
                  " where an answer of WebHDFS is due");
}

HttpRequest WebHdfsClient::Transfer(StringView method, std::string url) const {
  HttpRequest request;
  request.method = std::string(method);
  request.url = std::move(url);
  request.headers = {"Content-Type: application/octet-stream"};
  request.connect = std::min(kConnectTime, options_.limits.patience);
  request.whole = std::chrono::milliseconds(0);
  request.stall = options_.limits.patience / kStalls;
  return request;
}

void WebHdfsClient::Exclude(const std::string& path, uint64_t offset,
                            const std::string& location,
                            std::vector<std::string>* excluded) {
  const std::string place = PlaceIn(location);
  if (place.empty()) return;
  // NameNodes know DataNodes by the ports of their data, which redirects do not
  // tell.
  const auto blocks = Call("GET", path,
                           {{"op", "GET_BLOCK_LOCATIONS"},
                            {"offset", absl::StrCat(offset)},
                            {"length", "1"}});
  StatusOr<std::string> name = NotFound("");
  if (blocks.ok()) name = FindDataPort(*blocks, place);
  excluded->push_back(name.ok() ? *std::move(name)
                                : place.substr(0, place.rfind(':')));
}

Status WebHdfsClient::ReadOnce(const std::string& path, ReadState* state) {
  const auto take = [state](StringView bytes) {
    if (bytes.size() > state->out.size() - state->done) return false;
    std::memcpy(state->out.data() + state->done, bytes.data(), bytes.size());
    state->done += bytes.size();
    return true;
  };
  Parameters parameters = {
      {"op", "OPEN"},
      {"offset", absl::StrCat(state->offset + state->done)},
      {"length", absl::StrCat(state->out.size() - state->done)}};
  if (!state->excluded.empty()) {
    parameters.emplace_back("excludedatanodes",
                            absl::StrJoin(state->excluded, ","));
  }
  Tries tries(options_.limits);
  // It may know no other DataNode: then all are tried again.
  if (!state->excluded.empty()) tries.most = 1;
  HttpAnswer answer;
  state->location.clear();
  HR_RETURN_IF_ERROR(Ask("GET", path, parameters, &tries, &answer, take));
  if (answer.status / 100 == 2) return OkStatus();  // a gateway's own bytes
  state->location = std::string(answer.Header("location"));
  HttpRequest request = Transfer("GET", state->location);
  request.take = take;
  HR_RETURN_IF_ERROR(http_->Do(request, &answer));
  if (answer.status / 100 == 2) return OkStatus();
  if (answer.status / 100 == 3) {
    return Unavailable("a DataNode sends on to ", answer.Header("location"));
  }
  HdfsError error = ParseRemoteError(answer, Shown(path));
  // What a DataNode refuses, another may give; but not what is not there.
  if (absl::IsUnknown(error.status)) {
    return Unavailable(error.status.message());
  }
  return error.status;
}

StatusOr<size_t> WebHdfsClient::Read(const std::string& path, uint64_t offset,
                                     absl::Span<char> out) {
  ReadState state{offset, out};
  Status failed;  // the last one of a DataNode
  Tries tries(options_.limits);
  for (;;) {
    const size_t had = state.done;
    Status status = ReadOnce(path, &state);
    if (state.done == out.size()) return state.done;
    if (status.ok()) {  // cut, or shorter than it was
      HR_ASSIGN_OR_RETURN(const std::string json,
                          Call("GET", path, {{"op", "GETFILESTATUS"}}));
      HR_ASSIGN_OR_RETURN(const FileStat stat, ParseFileStatus(json));
      if (stat.size <= offset + state.done) return state.done;
      status = Unavailable("an answer was cut after ", state.done, " of ",
                           out.size(), " bytes");
    }
    // NameNodes have several words for that they know no other DataNode.
    const bool knows_no_other = absl::IsUnknown(status) &&
                                state.location.empty() &&
                                !state.excluded.empty();
    if (!knows_no_other && !IsTransient(status)) return status;
    // Who gave much may be asked on; a new count begins.
    if (state.done - had >= kMuchRead) tries = Tries(options_.limits);
    if (state.location.empty()) {
      if (state.excluded.empty()) return status;  // no NameNode answers
      // It knows no other DataNode.
      state.excluded.clear();
      status = failed;
    } else {
      failed = status;
      Exclude(path, offset + state.done, state.location, &state.excluded);
      if (state.excluded.size() == 1) continue;  // at once from the next
    }
    HR_ASSIGN_OR_RETURN(const bool again, tries.Again());
    if (!again) return Named(path, status);
  }
}

Status WebHdfsClient::Write(
    StringView method, const std::string& path, const Parameters& parameters,
    uint64_t size,
    const std::function<Status(uint64_t, absl::Span<char>)>& body, bool* sent) {
  Tries tries(options_.limits);
  Parameters asked = parameters;
  for (;;) {
    HttpAnswer answer;
    HR_RETURN_IF_ERROR(Ask(method, path, asked, &tries, &answer));
    if (answer.status / 100 != 3) {
      return DataLoss(Shown(path), ": HTTP status ", answer.status,
                      " where a NameNode names a DataNode");
    }
    const std::string location(answer.Header("location"));
    HttpRequest request = Transfer(method, location);
    request.body_size = size;
    request.body = body;
    Status status = http_->Do(request, &answer);
    *sent |= answer.reached;
    if (status.ok()) {
      if (answer.status / 100 == 2) return status;
      HdfsError error = ParseRemoteError(answer, Shown(path));
      status = error.status;
      // The pipeline behind the DataNode may have failed.
      if (error.trouble == HdfsTrouble::kNone && !absl::IsUnknown(status)) {
        return status;
      }
    } else {
      status = Named(path, status);
      if (!IsTransient(status)) return status;
    }
    tries.end = Tries::Clock::now() +
                options_.limits.patience;  // the transfer took its time
    if (*sent && method == "POST") return status;
    HR_ASSIGN_OR_RETURN(const bool again, tries.Again());
    if (!again) return status;
    // The host alone: what is there of the file has no DataNode to look up. A
    // cluster of one host has others there, so every second try names none.
    asked = parameters;
    if (tries.done % 2 == 1) {
      const std::string place = PlaceIn(location);
      asked.emplace_back("excludedatanodes", place.substr(0, place.rfind(':')));
    }
  }
}

}  // namespace headrace
