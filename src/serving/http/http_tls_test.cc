#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include "absl/strings/match.h"
#include "serving/access/test_certificates.h"
#include "serving/http/http_server.h"
#include "serving/http/test_client.h"

namespace headrace::serving {
namespace {

using std::chrono::milliseconds;

std::shared_ptr<TlsFile> FileOf(const TlsKeys& keys) {
  auto opened = TlsFile::Open(
      {"keys", [keys] { return StatusOr<TlsKeys>(keys); }, &MakeTlsIdentity});
  EXPECT_TRUE(opened.ok()) << opened.status();
  return *std::move(opened);
}

struct TlsEchoServer {
  explicit TlsEchoServer(milliseconds timeout = milliseconds(30000)) {
    HttpOptions options;
    options.threads = 2;
    options.timeout = timeout;
    options.tls = FileOf(TestKeys());
    options.admit = [](const HttpRequest& head) -> std::optional<HttpResponse> {
      if (head.path != "/closed") return std::nullopt;
      HttpResponse refusal;
      refusal.status = 403;
      return refusal;
    };
    auto started = HttpServer::Start(
        options, [](const HttpRequest& request, HttpResponder responder) {
          HttpResponse response;
          response.body = std::string(request.body);
          responder.Send(std::move(response));
        });
    EXPECT_TRUE(started.ok()) << started.status();
    server = *std::move(started);
  }
  std::unique_ptr<HttpServer> server;
};

// A client that trusts all.
class TlsClient {
 public:
  explicit TlsClient(int port) : socket_(port) {
    context_ = SSL_CTX_new(TLS_client_method());
    session_ = SSL_new(context_);
    SSL_set_fd(session_, socket_.fd());
    is_shaken_ = SSL_connect(session_) == 1;
  }
  ~TlsClient() {
    SSL_free(session_);
    SSL_CTX_free(context_);
  }
  bool is_shaken() const { return is_shaken_; }
  bool Say(StringView text) {
    return SSL_write(session_, text.data(), static_cast<int>(text.size())) ==
           static_cast<int>(text.size());
  }
  // So many bytes, or fewer where the server ends.
  std::string Hear(size_t bytes) {
    std::string heard(bytes, '\0');
    size_t there = 0;
    while (there < bytes) {
      const int n = SSL_read(session_, heard.data() + there,
                             static_cast<int>(bytes - there));
      if (n <= 0) break;
      there += n;
    }
    heard.resize(there);
    return heard;
  }
  // The server said that no more comes.
  bool HasEnded() { return SSL_get_shutdown(session_) & SSL_RECEIVED_SHUTDOWN; }

 private:
  TestClient socket_;
  SSL_CTX* context_;
  SSL* session_;
  bool is_shaken_ = false;
};

TEST(HttpTls, RequestsOfAllSizes) {
  TlsEchoServer server;
  TlsClient client(server.server->port());
  ASSERT_TRUE(client.is_shaken());
  for (const size_t n : {0, 1, 16000, 16384, 70000, 5 << 20}) {
    const std::string body(n, 'b');
    ASSERT_TRUE(client.Say(PostText("/x", body))) << n;
    std::string head;
    while (!absl::EndsWith(head, "\r\n\r\n")) {
      const std::string c = client.Hear(1);
      ASSERT_FALSE(c.empty());
      head += c;
    }
    EXPECT_TRUE(absl::StartsWith(head, "HTTP/1.1 200")) << head;
    EXPECT_TRUE(client.Hear(n) == body) << n;
  }
  // A byte a record, and an end that is told.
  for (const char c :
       StringView("GET / HTTP/1.1\r\nConnection: close\r\n\r\n")) {
    ASSERT_TRUE(client.Say(StringView(&c, 1)));
  }
  EXPECT_TRUE(absl::StartsWith(client.Hear(1 << 20), "HTTP/1.1 200"));
  EXPECT_TRUE(client.HasEnded());
}

TEST(HttpTls, ContinueAndRefusal) {
  TlsEchoServer server;
  TlsClient client(server.server->port());
  client.Say(
      "POST /x HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(client.Hear(25), "HTTP/1.1 100 Continue\r\n\r\n");
  client.Say("ok");
  EXPECT_TRUE(absl::StartsWith(client.Hear(15), "HTTP/1.1 200 OK"));
  TlsClient other(server.server->port());
  // Of its body nothing ever comes.
  other.Say("POST /closed HTTP/1.1\r\nContent-Length: 400000000\r\n\r\n");
  EXPECT_TRUE(absl::StartsWith(other.Hear(1 << 20), "HTTP/1.1 403"));
  EXPECT_TRUE(other.HasEnded());
}

TEST(HttpTls, WhoDoesNotShakeHandsIsClosed) {
  TlsEchoServer server(milliseconds(300));
  TestClient silent(server.server->port());
  TestClient half(server.server->port());
  half.Say("\x16\x03\x01\x02\x00\x01");
  TestClient other(server.server->port());
  other.Say("GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(other.Ends());
  EXPECT_TRUE(silent.Ends());
  EXPECT_TRUE(half.Ends());
  TlsClient client(server.server->port());
  EXPECT_TRUE(client.is_shaken());
}

TEST(HttpTls, ADrainClosesHandshakes) {
  TlsEchoServer server;
  TestClient silent(server.server->port());
  TlsClient client(server.server->port());
  server.server->Drain(std::chrono::steady_clock::now() +
                       std::chrono::minutes(1));
  EXPECT_TRUE(silent.Ends());
  EXPECT_EQ(client.Hear(1), "");
  EXPECT_TRUE(client.HasEnded());
}

}  // namespace
}  // namespace headrace::serving
