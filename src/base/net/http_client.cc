#include "base/net/http_client.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "base/cancellation.h"
#include "base/fork_mutex.h"
#include "base/guard.h"
#include "base/mutex.h"
#if __has_include(<curl/curl.h>)
#define HR_HAS_CURL 1
#include "base/net/curl.h"
#endif

namespace headrace {

StringView HttpAnswer::Header(StringView lower_name) const {
  for (size_t i = headers.size(); i-- > 0;) {
    if (headers[i].first == lower_name) return headers[i].second;
  }
  return "";
}

std::string PercentEncode(StringView text, StringView also) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(u) ||
        StringView("-._~").find(c) != StringView::npos ||
        also.find(c) != StringView::npos) {
      out += c;
    } else {
      out += {'%', kDigits[u >> 4], kDigits[u & 15]};
    }
  }
  return out;
}

HttpClient* HttpClient::Shared() {
  static HttpClient* const client = new HttpClient;
  return client;
}

HttpClient::HttpClient() : pool_(std::make_unique<Pool>()) {}
HttpClient::~HttpClient() = default;

#ifdef HR_HAS_CURL
namespace {

constexpr size_t kMostHeaderBytes = size_t{1} << 20;
constexpr long kSlowest = 4 << 10;      // bytes a second, see HttpRequest
constexpr long kBuffer = 128 << 10;     // of libcurl; a core's cache holds it
constexpr size_t kMostIdleHandles = 8;  // each with its connections

// What the callbacks of one request share. An error ends the transfer.
struct Transfer {
  const HttpRequest& request;
  HttpAnswer* answer;
  uint64_t sent = 0;
  size_t header_bytes = 0;
  Status error;
};

size_t TakeHeader(char* data, size_t, size_t n, void* user) {
  auto* t = static_cast<Transfer*>(user);
  const auto take = [&]() -> Status {
    StringView line = absl::StripAsciiWhitespace(StringView(data, n));
    t->header_bytes += n;
    if (t->header_bytes > kMostHeaderBytes) {
      return Unavailable("the answer has more than ", kMostHeaderBytes,
                         " bytes of headers");
    }
    if (absl::StartsWith(line, "HTTP/")) {
      t->answer->headers.clear();
      t->answer->body.clear();
      const StringView code =
          line.substr(std::min(line.find(' '), line.size()));
      if (!absl::SimpleAtoi(code.substr(0, 4), &t->answer->status)) {
        t->answer->status = 0;
      }
    } else if (const size_t colon = line.find(':'); colon != StringView::npos) {
      t->answer->headers.emplace_back(
          absl::AsciiStrToLower(line.substr(0, colon)),
          absl::StripLeadingAsciiWhitespace(line.substr(colon + 1)));
    }
    return OkStatus();
  };
  t->error.Update(Guarded("an answer's headers", take));
  return t->error.ok() ? n : 0;
}

size_t TakeBody(char* data, size_t, size_t n, void* user) {
  auto* t = static_cast<Transfer*>(user);
  const auto take = [&]() -> Status {
    const StringView bytes(data, n);
    HttpAnswer& answer = *t->answer;
    if (t->request.take && answer.status / 100 == 2) {
      if (t->request.take(bytes)) return OkStatus();
      return Unavailable("the answer has more bytes than were asked for");
    }
    if (n > t->request.most_body - answer.body.size()) {
      return ResourceExhausted("the answer has more than ",
                               t->request.most_body, " bytes");
    }
    answer.body.append(bytes.data(), n);
    return OkStatus();
  };
  t->error.Update(Guarded("an answer's bytes", take));
  return t->error.ok() ? n : 0;
}

size_t GiveBody(char* data, size_t, size_t room, void* user) {
  auto* t = static_cast<Transfer*>(user);
  const size_t n = std::min<uint64_t>(room, t->request.body_size - t->sent);
  t->error.Update(Guarded("the bytes of a request", [&] {
    return t->request.body(t->sent, absl::MakeSpan(data, n));
  }));
  t->sent += n;
  return t->error.ok() ? n : CURL_READFUNC_ABORT;
}

// Where a request is sent again from its begin, on another connection.
int SeekBody(void* user, curl_off_t offset, int) {
  static_cast<Transfer*>(user)->sent = static_cast<uint64_t>(offset);
  return CURL_SEEKFUNC_OK;
}

int Progress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  auto* t = static_cast<Transfer*>(user);
  t->error.Update(Guarded("a request", [] { return CheckStop(); }));
  return t->error.ok() ? 0 : 1;
}

Status CurlStatus(const Curl& curl, CURLcode code, const char* words) {
  const StringView text = *words != '\0' ? words : curl.strerror(code);
  switch (code) {
    case CURLE_OK:
      return OkStatus();
    case CURLE_OPERATION_TIMEDOUT:
      return DeadlineExceeded(text);
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return InvalidArgument(text);
    case CURLE_OUT_OF_MEMORY:
      return ResourceExhausted(text);
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_PEER_FAILED_VERIFICATION:
      return FailedPrecondition(text);
    default:
      return Unavailable(text);
  }
}

}  // namespace

class HttpClient::Pool {
 public:
  explicit Pool() = default;
  ~Pool() {
    if (pid_ != getpid()) return;  // the parent's, which talks by them
    for (CURL* handle : idle_) curl().cleanup(handle);
  }

  StatusOr<CURL*> Take() {
    if (curl_ == nullptr) {
      HR_ASSIGN_OR_RETURN(const Curl* curl, LoadCurl());
      const MutexLock lock(mutex_);
      curl_ = curl;
    }
    {
      const MutexLock lock(mutex_);
      if (pid_ != getpid()) idle_.clear();
      pid_ = getpid();
      if (!idle_.empty()) {  // the one used last: its connections are fresh
        CURL* handle = idle_.back();
        idle_.pop_back();
        return handle;
      }
    }
    CURL* handle = curl_.load()->init();
    if (handle == nullptr) return ResourceExhausted("no memory for a request");
    return handle;
  }
  void GiveBack(CURL* handle) {
    {
      const MutexLock lock(mutex_);
      if (idle_.size() < kMostIdleHandles) {
        idle_.push_back(handle);
        return;
      }
    }
    curl_.load()->cleanup(handle);
  }
  const Curl& curl() const { return *curl_.load(); }

 private:
  ForkMutex mutex_;
  std::atomic<const Curl*> curl_ = nullptr;
  pid_t pid_ ABSL_GUARDED_BY(mutex_) = getpid();
  std::vector<CURL*> idle_ ABSL_GUARDED_BY(mutex_);
};

namespace {

// The options of one request on a handle that has none.
class Prepared {
 public:
  Prepared(const Curl& curl, CURL* handle) : curl_(curl), handle_(handle) {}
  ~Prepared() {
    curl_.free_all(headers_);
    curl_.reset(handle_);
  }
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

  Status Set(Transfer* t) {
    HR_RETURN_IF_ERROR(SetPlace(t->request));
    HR_RETURN_IF_ERROR(SetLimits(t->request));
    HR_RETURN_IF_ERROR(SetCallbacks(t));
    if (t->request.negotiate) HR_RETURN_IF_ERROR(SetKerberos());
    return Headers(t->request);
  }
  CURLcode Perform() { return curl_.perform(handle_); }
  const char* words() const { return words_; }
  bool reached() const {
    long connections = 0;
    double connected = 0;
    curl_.getinfo(handle_, CURLINFO_NUM_CONNECTS, &connections);
    curl_.getinfo(handle_, CURLINFO_PRETRANSFER_TIME, &connected);
    return connections == 0 || connected > 0;
  }

 private:
  template <typename T>
  Status Option(CURLoption option, T value) {
    const CURLcode code = curl_.setopt(handle_, option, value);
    return CurlStatus(curl_, code, "");
  }

  Status SetPlace(const HttpRequest& r) {
    if (!absl::StartsWith(r.url, "http://") &&
        !absl::StartsWith(r.url, "https://")) {
      return InvalidArgument(r.url, " is no address of HTTP");
    }
    HR_RETURN_IF_ERROR(Option(CURLOPT_URL, r.url.c_str()));
    HR_RETURN_IF_ERROR(Option(CURLOPT_PATH_AS_IS, 1L));
    HR_RETURN_IF_ERROR(SetTrust(r));
    HR_RETURN_IF_ERROR(Option(CURLOPT_CUSTOMREQUEST, r.method.c_str()));
    if (r.method == "HEAD") return Option(CURLOPT_NOBODY, 1L);
    if (r.body_size > 0 || r.method == "PUT" || r.method == "POST") {
      HR_RETURN_IF_ERROR(Option(CURLOPT_UPLOAD, 1L));
      return Option(CURLOPT_INFILESIZE_LARGE,
                    static_cast<curl_off_t>(r.body_size));
    }
    return OkStatus();
  }

  Status SetTrust(const HttpRequest& r) {
    const char* bundle = r.certificates.c_str();
    if (*bundle == '\0') bundle = std::getenv("CURL_CA_BUNDLE");
    if (bundle != nullptr && *bundle != '\0') {
      HR_RETURN_IF_ERROR(Option(CURLOPT_CAINFO, bundle));
    }
    if (r.verify) return OkStatus();
    HR_RETURN_IF_ERROR(Option(CURLOPT_SSL_VERIFYPEER, 0L));
    return Option(CURLOPT_SSL_VERIFYHOST, 0L);
  }

  Status SetLimits(const HttpRequest& r) {
    // Signals are the program's.
    HR_RETURN_IF_ERROR(Option(CURLOPT_NOSIGNAL, 1L));
    HR_RETURN_IF_ERROR(Option(CURLOPT_CONNECTTIMEOUT_MS,
                              static_cast<long>(r.connect.count())));
    HR_RETURN_IF_ERROR(
        Option(CURLOPT_TIMEOUT_MS, static_cast<long>(r.whole.count())));
    HR_RETURN_IF_ERROR(Option(CURLOPT_LOW_SPEED_LIMIT, kSlowest));
    const long seconds = static_cast<long>((r.stall.count() + 999) / 1000);
    HR_RETURN_IF_ERROR(Option(CURLOPT_LOW_SPEED_TIME, seconds));
    // An older libcurl takes less.
    (void)Option(CURLOPT_BUFFERSIZE, kBuffer);
    (void)Option(CURLOPT_UPLOAD_BUFFERSIZE, kBuffer);
    return OkStatus();
  }

  Status SetCallbacks(Transfer* t) {
    HR_RETURN_IF_ERROR(Option(CURLOPT_ERRORBUFFER, words_));
    HR_RETURN_IF_ERROR(Option(CURLOPT_HEADERFUNCTION, &TakeHeader));
    HR_RETURN_IF_ERROR(Option(CURLOPT_HEADERDATA, t));
    HR_RETURN_IF_ERROR(Option(CURLOPT_WRITEFUNCTION, &TakeBody));
    HR_RETURN_IF_ERROR(Option(CURLOPT_WRITEDATA, t));
    HR_RETURN_IF_ERROR(Option(CURLOPT_READFUNCTION, &GiveBody));
    HR_RETURN_IF_ERROR(Option(CURLOPT_READDATA, t));
    HR_RETURN_IF_ERROR(Option(CURLOPT_SEEKFUNCTION, &SeekBody));
    HR_RETURN_IF_ERROR(Option(CURLOPT_SEEKDATA, t));
    HR_RETURN_IF_ERROR(Option(CURLOPT_XFERINFOFUNCTION, &Progress));
    HR_RETURN_IF_ERROR(Option(CURLOPT_XFERINFODATA, t));
    return Option(CURLOPT_NOPROGRESS, 0L);
  }

  Status SetKerberos() {
    if (!curl_.kerberos) {
      return FailedPrecondition(
          "the server asks for Kerberos, which this libcurl does not know");
    }
    HR_RETURN_IF_ERROR(
        Option(CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_NEGOTIATE)));
    // The user of the ticket.
    return Option(CURLOPT_USERPWD, ":");
  }

  Status Headers(const HttpRequest& r) {
    const auto add = [&](const std::string& header) {
      if (header.find_first_of("\r\n") != std::string::npos) return false;
      curl_slist* more = curl_.append(headers_, header.c_str());
      if (more != nullptr) headers_ = more;
      return more != nullptr;
    };
    // Expect: none waits for "100 Continue", a round trip more.
    bool added = add("Expect:") && add("User-Agent: headrace");
    for (const std::string& header : r.headers) added = added && add(header);
    if (!added) return InvalidArgument("a header of the request is wrong");
    return Option(CURLOPT_HTTPHEADER, headers_);
  }

  const Curl& curl_;
  CURL* const handle_;
  curl_slist* headers_ = nullptr;
  char words_[CURL_ERROR_SIZE] = "";
};

// "http://host:port" of an address, which errors name.
StringView PlaceOf(StringView url) {
  const size_t scheme = url.find("://");
  if (scheme == StringView::npos) return url;
  return url.substr(0, url.find_first_of("/?", scheme + 3));
}

}  // namespace

Status HttpClient::Do(const HttpRequest& request, HttpAnswer* answer) {
  *answer = HttpAnswer();
  HR_RETURN_IF_ERROR(CheckStop());
  HR_ASSIGN_OR_RETURN(CURL * handle, pool_->Take());
  const Curl& curl = pool_->curl();
  Transfer transfer{request, answer};
  Status status;
  {
    Prepared prepared(curl, handle);
    status = prepared.Set(&transfer);
    if (status.ok()) {
      const CURLcode code = prepared.Perform();
      answer->reached = prepared.reached();
      status = CurlStatus(curl, code, prepared.words());
    }
  }
  pool_->GiveBack(handle);
  if (!transfer.error.ok()) return transfer.error;
  if (status.ok()) return status;
  return Status(status.code(),
                absl::StrCat(PlaceOf(request.url), ": ", status.message()));
}

#else  // no headers of libcurl
class HttpClient::Pool {};

Status HttpClient::Do(const HttpRequest&, HttpAnswer*) {
  return Unimplemented(
      "files of hdfs://, webhdfs:// and s3:// need libcurl, whose headers were "
      "not there when this was built (libcurl4-openssl-dev)");
}
#endif

}  // namespace headrace
