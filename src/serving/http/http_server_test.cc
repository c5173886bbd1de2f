#include "serving/http/http_server.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <deque>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "base/mutex.h"
#include "serving/http/test_client.h"

namespace headrace::serving {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// Answers "METHOD PATH?QUERY BODY"; what begins with /later waits in `kept`.
struct Echo {
  void Handle(const HttpRequest& request, HttpResponder responder) {
    if (absl::StartsWith(request.path, "/throw")) throw std::bad_alloc();
    if (absl::StartsWith(request.path, "/forget")) return;
    HttpResponse response;
    response.body = absl::StrCat(request.method, " ", request.path, "?",
                                 request.query, " ", request.body);
    if (absl::StartsWith(request.path, "/large")) {
      response.body.assign(64 << 20, 'x');
    }
    if (!absl::StartsWith(request.path, "/later")) {
      return responder.Send(std::move(response));
    }
    responder.OnClose([this] { ++gone; });
    const MutexLock lock(mutex);
    kept.emplace_back(std::move(responder), std::move(response));
  }
  // The first that waits, as soon as there is one.
  void Release() {
    WaitFor([&] {
      const MutexLock lock(mutex);
      return !kept.empty();
    });
    const MutexLock lock(mutex);
    kept.front().first.Send(std::move(kept.front().second));
    kept.pop_front();
  }
  static bool WaitFor(const std::function<bool()>& condition) {
    const auto end = Clock::now() + std::chrono::minutes(1);
    while (!condition()) {
      if (Clock::now() > end) return false;
      std::this_thread::sleep_for(milliseconds(1));
    }
    return true;
  }

  Mutex mutex;
  std::deque<std::pair<HttpResponder, HttpResponse>> kept
      ABSL_GUARDED_BY(mutex);
  std::atomic<int> gone{0};
};

struct EchoServer {
  explicit EchoServer(HttpOptions options = {}) {
    if (options.threads == 0) options.threads = 2;
    auto started = HttpServer::Start(
        options, [this](const HttpRequest& request, HttpResponder responder) {
          echo.Handle(request, std::move(responder));
        });
    EXPECT_TRUE(started.ok()) << started.status();
    server = *std::move(started);
  }
  int port() const { return server->port(); }
  Echo echo;
  std::unique_ptr<HttpServer> server;
};

HttpOptions Quick(int ms = 300) {
  HttpOptions options;
  options.timeout = milliseconds(ms);
  return options;
}

std::string Gzip(StringView text) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = text.size();
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = out.size();
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

TEST(HttpServer, RequestsFollowEachOther) {
  EchoServer server;
  TestClient client(server.port());
  EXPECT_EQ(client.Ask("GET /a?b=c HTTP/1.1\r\n\r\n").body, "GET /a?b=c ");
  EXPECT_EQ(client.Ask(PostText("/p", "body")).body, "POST /p? body");
  EXPECT_EQ(client.Ask("\r\nGET http://host/x HTTP/1.1\nHost: h\n\n").body,
            "GET /x? ");
  // All at once.
  client.Say(PostText("/1", "one") + PostText("/2", "two") +
             "GET /3 HTTP/1.1\r\n\r\n");
  EXPECT_EQ(client.Hear().body, "POST /1? one");
  EXPECT_EQ(client.Hear().body, "POST /2? two");
  EXPECT_EQ(client.Hear().body, "GET /3? ");
  // A byte at a time.
  for (const char c : PostText("/slow", "bytes")) client.Say(StringView(&c, 1));
  EXPECT_EQ(client.Hear().body, "POST /slow? bytes");
  client.Say("HEAD /h HTTP/1.1\r\n\r\n");
  EXPECT_EQ(client.Hear(true).status, 200);
  const auto last =
      client.Ask("GET /end HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_NE(last.head.find("Connection: close"), std::string::npos);
  EXPECT_TRUE(client.Ends());
  TestClient old(server.port());
  EXPECT_EQ(old.Ask("GET /old HTTP/1.0\r\n\r\n").status, 200);
  EXPECT_TRUE(old.Ends());
}

TEST(HttpServer, ChunksAndContinue) {
  EchoServer server;
  TestClient client(server.port());
  EXPECT_EQ(client
                .Ask("POST /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
                     "3\r\nabc\r\n5;x=y\r\ndefgh\r\n0\r\nTrailer: t\r\n\r\n")
                .body,
            "POST /c? abcdefgh");
  client.Say(
      "POST /e HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(client.Hear(true).status, 100);
  EXPECT_EQ(client.Ask("hi").body, "POST /e? hi");
  std::string large(3 << 20, 'z');
  EXPECT_EQ(client.Ask(PostText("/l", large)).body.size(), large.size() + 9);
}

TEST(HttpServer, Gzip) {
  HttpOptions options;
  options.limits.inflated_bytes = 1 << 20;
  EchoServer server(options);
  const char* const header = "Content-Encoding: gzip\r\n";
  TestClient client(server.port());
  const std::string packed = Gzip("some text");
  EXPECT_EQ(client.Ask(PostText("/z", packed, header)).body,
            "POST /z? some text");
  EXPECT_EQ(client.Ask(PostText("/z", packed + packed, header)).body,
            "POST /z? some textsome text");
  EXPECT_EQ(client.Ask(PostText("/z", Gzip(std::string(1 << 20, 'x')), header))
                .status,
            200);
  EXPECT_EQ(
      client.Ask(PostText("/z", Gzip(std::string((1 << 20) + 1, 'x')), header))
          .status,
      413);
  EXPECT_TRUE(client.Ends());
  for (size_t n = 1; n < packed.size(); ++n) {
    TestClient cut(server.port());
    EXPECT_EQ(cut.Ask(PostText("/z", packed.substr(0, n), header)).status, 400);
  }
  TestClient other(server.port());
  EXPECT_EQ(other.Ask(PostText("/z", "x", "Content-Encoding: br\r\n")).status,
            415);
}

TEST(HttpServer, BadRequests) {
  HttpOptions options;
  options.limits.body_bytes = 1000;
  EchoServer server(options);
  const struct {
    std::string text;
    int status;
  } rows[] = {
      {"POST / HTTP/1.1\r\nContent-Length: -5\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nContent-Length: 5x\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nContent-Length: \r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
       400},
      {"POST / HTTP/1.1\r\nContent-Length: 1001\r\n\r\n", 413},
      {"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n",
       413},
      {"POST / HTTP/1.1\r\n\r\n", 411},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 501},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: "
       "1\r\n\r\n",
       400},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", 400},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", 400},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n",
       400},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n7777\r\n", 413},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: "
       "chunked\r\n\r\nffffffffffffffffff\r\n",
       413},
      {"\x16\x03\x01garbage", 400},
      {"garbage\r\n\r\n", 400},
      {std::string("GET /\0 HTTP/1.1\r\n\r\n", 19), 400},
      {"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nA : b\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nA: b\r\n folded\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nA: b\x01\r\n\r\n", 400},
      {"GET / HTTP/2.0\r\n\r\n", 505},
      {"GET /\r\n\r\n", 400},
      {"GET nopath HTTP/1.1\r\n\r\n", 400},
      {std::string(100, 'A') + " / HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nA: " + std::string(1 << 20, 'x') + "\r\n\r\n", 431},
      {"GET /" + std::string(1 << 20, 'x') + " HTTP/1.1\r\n\r\n", 431},
      {std::string(20, '\n'), 400},
      {"POST / HTTP/1.1\r\nExpect: magic\r\nContent-Length: 1\r\n\r\n", 417},
  };
  TestClient good(server.port());
  for (const auto& row : rows) {
    TestClient client(server.port());
    const auto answer = client.Ask(row.text);
    EXPECT_EQ(answer.status, row.status) << row.text.substr(0, 100);
    EXPECT_TRUE(absl::StartsWith(answer.body, "{")) << answer.body;
    EXPECT_TRUE(client.Ends());
    EXPECT_EQ(good.Ask("GET / HTTP/1.1\r\n\r\n").status, 200);
  }
}

TEST(HttpServer, AnswersThatComeLater) {
  EchoServer server;
  TestClient client(server.port());
  client.Say("GET /later HTTP/1.1\r\n\r\nGET /next HTTP/1.1\r\n\r\n");
  server.echo.Release();
  EXPECT_EQ(client.Hear().body, "GET /later? ");
  EXPECT_EQ(client.Hear().body, "GET /next? ");
  EXPECT_EQ(client.Ask("GET /forget HTTP/1.1\r\n\r\n").status, 500);
  EXPECT_EQ(client.Ask("GET /throw HTTP/1.1\r\n\r\n").status, 429);
  EXPECT_EQ(client.Ask("GET / HTTP/1.1\r\n\r\n").status, 200);
  EXPECT_EQ(server.echo.gone, 0);
  // The client goes first.
  client.Say("GET /later HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(Echo::WaitFor([&] {
    const MutexLock lock(server.echo.mutex);
    return !server.echo.kept.empty();
  }));
  client.Close();
  EXPECT_TRUE(Echo::WaitFor([&] { return server.echo.gone == 1; }));
  server.echo.Release();
  EXPECT_TRUE(Echo::WaitFor([&] { return server.server->connections() == 0; }));
}

TEST(HttpServer, SlowClientsAreClosed) {
  EchoServer server(Quick());
  TestClient silent(server.port());
  EXPECT_TRUE(silent.Ends());
  // One byte at a time, for ever.
  TestClient slow(server.port());
  slow.Say("GET / HTTP/1.1\r\nA: ");
  const auto start = Clock::now();
  while (slow.Say("x") && Clock::now() - start < std::chrono::minutes(1)) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_LT(Clock::now() - start, std::chrono::minutes(1));
  // Asks for much and reads nothing.
  TestClient deaf(server.port(), 4096);
  deaf.Say("GET /large HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(Echo::WaitFor([&] { return server.server->connections() == 0; }));
}

TEST(HttpServer, SilentConnectionsDoNotStopOthers) {
  HttpOptions options;
  options.most_connections = 50;
  EchoServer server(options);
  std::vector<std::unique_ptr<TestClient>> silent;
  for (int i = 0; i < 200; ++i) {
    silent.push_back(std::make_unique<TestClient>(server.port()));
    ASSERT_TRUE(silent.back()->connected());
    // The last ones have begun: a new one is no better a choice to be closed.
    if (i >= 100) silent.back()->Say("GET /");
  }
  TestClient good(server.port());
  EXPECT_EQ(good.Ask("GET / HTTP/1.1\r\n\r\n").status, 200);
  EXPECT_TRUE(
      Echo::WaitFor([&] { return server.server->connections() <= 51; }));
}

TEST(HttpServer, DrainWaitsForAnswers) {
  EchoServer server;
  TestClient idle(server.port()), busy(server.port());
  EXPECT_EQ(idle.Ask("GET / HTTP/1.1\r\n\r\n").status, 200);
  busy.Say("GET /later HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(Echo::WaitFor([&] {
    const MutexLock lock(server.echo.mutex);
    return !server.echo.kept.empty();
  }));
  std::thread drain(
      [&] { server.server->Drain(Clock::now() + std::chrono::minutes(1)); });
  EXPECT_TRUE(idle.Ends());
  EXPECT_FALSE(TestClient(server.port()).connected());
  server.echo.Release();
  const auto answer = busy.Hear();
  EXPECT_EQ(answer.status, 200);
  EXPECT_NE(answer.head.find("Connection: close"), std::string::npos);
  EXPECT_TRUE(busy.Ends());
  drain.join();
}

TEST(HttpServer, DrainGivesUpAtItsDeadline) {
  EchoServer server;
  TestClient busy(server.port());
  busy.Say("GET /later HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(Echo::WaitFor([&] {
    const MutexLock lock(server.echo.mutex);
    return !server.echo.kept.empty();
  }));
  server.server->Drain(Clock::now() + milliseconds(20));
  const auto answer = busy.Hear();
  EXPECT_EQ(answer.status, 503);
  EXPECT_NE(answer.body.find("server is shutting down"), std::string::npos);
  EXPECT_EQ(server.echo.gone, 1);
  server.echo.Release();
  server.server->Stop();
  server.server->Stop();
}

TEST(HttpServer, StartErrors) {
  EchoServer server;
  HttpOptions options;
  options.port = server.port();
  EXPECT_EQ(HttpServer::Start(options, nullptr).status().code(),
            absl::StatusCode::kUnavailable);
  options.port = 70000;
  EXPECT_FALSE(HttpServer::Start(options, nullptr).ok());
}

// By its head, and whatever its body is.
TEST(HttpServer, RequestsThatAreRefused) {
  HttpOptions options;
  options.admit = [](const HttpRequest& head) -> std::optional<HttpResponse> {
    EXPECT_TRUE(head.body.empty());
    if (absl::StartsWith(head.path, "/throw")) throw std::bad_alloc();
    if (head.header("key") == "k") return std::nullopt;
    HttpResponse refusal;
    refusal.status = 401;
    refusal.body = "no";
    refusal.headers.emplace_back("WWW-Authenticate", "Key");
    return refusal;
  };
  EchoServer server(options);
  const std::string key = "Key: k\r\n";
  for (const std::string& refused :
       {PostText("/x", "b"), PostText("/x", "b", "Content-Encoding: gzip\r\n"),
        std::string("POST /x HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n"),
        std::string("POST /x HTTP/1.1\r\nExpect: 100-continue\r\n"
                    "Transfer-Encoding: chunked\r\n\r\n")}) {
    TestClient client(server.port());
    client.Say(PostText("/1", "one", key) + refused +
               PostText("/2", "two", key));
    EXPECT_EQ(client.Hear().body, "POST /1? one");
    const auto answer = client.Hear();
    EXPECT_EQ(answer.status, 401) << refused;
    EXPECT_EQ(answer.body, "no");
    EXPECT_NE(answer.head.find("WWW-Authenticate: Key"), std::string::npos);
    client.Close();
  }
  TestClient client(server.port());
  client.Say("HEAD /x HTTP/1.1\r\n\r\n");
  EXPECT_EQ(client.Hear(true).status, 401);
  EXPECT_TRUE(client.Ends());
  TestClient full(server.port());
  EXPECT_EQ(full.Ask("GET /throw HTTP/1.1\r\n\r\n").status, 429);
  // A byte at a time.
  TestClient slow(server.port());
  for (const char c : PostText("/slow", "bytes", key)) {
    slow.Say(StringView(&c, 1));
  }
  EXPECT_EQ(slow.Hear().body, "POST /slow? bytes");
}

}  // namespace
}  // namespace headrace::serving
