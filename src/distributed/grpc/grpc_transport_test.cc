// What only gRPC's transport has: other processes, TLS, ports that strangers
// find, and a library that is loaded.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <random>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "base/test_process.h"
#include "distributed/call_and_wait.h"
#include "distributed/interface.h"
#include "distributed/load.h"
#include "serving/access/test_certificates.h"

extern char** environ;

namespace headrace::distributed {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Transport& Grpc() {
  auto loaded = LoadTransport();
  if (!loaded.ok()) {
    ADD_FAILURE() << loaded.status();
    std::abort();
  }
  return **loaded;
}

ListenOptions Echo() {
  ListenOptions options;
  options.address = "127.0.0.1:0";
  options.methods["/t.S/Echo"] = [](const std::shared_ptr<ServerCall>& call,
                                    Bytes request) {
    Answer answer;
    answer.body = std::move(request);
    call->Finish(std::move(answer));
  };
  options.methods["/t.S/Wait"] = [](const std::shared_ptr<ServerCall>& call,
                                    const Bytes&) {
    call->OnCancel([call] { call->Finish({1, ""}); });
  };
  return options;
}

CallOptions Within(milliseconds time) {
  CallOptions options;
  options.deadline = Clock::now() + time;
  return options;
}

Answer Ask(Channel& channel, const char* path = "/t.S/Echo",
           milliseconds time = seconds(20)) {
  return CallAndWait(channel, path, Bytes("hello"), Within(time));
}

// This program again, in which one disabled test runs.
class OtherProcess {
 public:
  explicit OtherProcess(const std::string& test, const char* variable = "") {
    int pipes[2];
    if (pipe(pipes) != 0) std::abort();
    std::vector<std::string> variables = {"HR_TEST_PIPE=" +
                                          std::to_string(pipes[1])};
    if (*variable != '\0') variables.emplace_back(variable);
    pid_ = StartTest("Other.DISABLED_" + test, variables);
    close(pipes[1]);
    char bytes[4096];
    ssize_t n;
    while ((n = read(pipes[0], bytes, sizeof(bytes))) > 0) {
      said_.append(bytes, n);
      if (said_.back() == '\n') break;
    }
    close(pipes[0]);
  }
  ~OtherProcess() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }
  // Its line.
  const std::string& said() const { return said_; }

 private:
  pid_t pid_ = -1;
  std::string said_;
};

void Say(const std::string& text) {
  int out = -1;
  ASSERT_TRUE(absl::SimpleAtoi(getenv("HR_TEST_PIPE"), &out));
  const std::string line = text + "\n";
  ASSERT_EQ(write(out, line.data(), line.size()), line.size());
}

TEST(Other, DISABLED_Serves) {
  std::string error;
  const auto listener = Grpc().Listen(Echo(), &error);
  ASSERT_NE(listener, nullptr) << error;
  Say(std::to_string(listener->port()));
  while (true) pause();
}

TEST(Other, DISABLED_Loads) {
  const auto loaded = LoadTransport();
  ASSERT_FALSE(loaded.ok());
  Say(loaded.status().ToString());
}

std::string AddressOf(const OtherProcess& server) {
  return absl::StrCat("127.0.0.1:", absl::StripAsciiWhitespace(server.said()));
}

// As many as wait, others are answered: those for which no thread of the
// transport is left are told so.
TEST(GrpcTransport, MethodsThatWaitHoldNobodyUp) {
  constexpr int kCalls = 40;
  std::atomic<int> here{0}, elsewhere{0};
  std::atomic<bool> goes_on{false};
  ListenOptions options = Echo();
  options.methods["/t.S/Work"] = [&](const std::shared_ptr<ServerCall>& call,
                                     const Bytes&) {
    const auto work = [&goes_on, call] {
      while (!goes_on) std::this_thread::sleep_for(milliseconds(1));
      call->Finish(Answer());
    };
    if (call->MayWait()) {
      EXPECT_TRUE(call->MayWait());  // as often as it is asked
      ++here;
      work();
    } else {
      ++elsewhere;
      std::thread(work).detach();
    }
  };
  std::string error;
  const auto listener = Grpc().Listen(std::move(options), &error);
  ASSERT_NE(listener, nullptr) << error;
  const auto channel = Grpc().Connect(
      "127.0.0.1:" + std::to_string(listener->port()), ConnectOptions());
  std::atomic<int> ended{0};
  for (int i = 0; i < kCalls; ++i) {
    channel->Start("/t.S/Work", Bytes(), Within(seconds(60)),
                   [&ended](const Answer& answer) {
                     EXPECT_EQ(answer.code, 0);
                     ++ended;
                   });
  }
  while (here + elsewhere < kCalls) std::this_thread::yield();
  EXPECT_GT(here, 0);
  EXPECT_GT(elsewhere, 0);
  EXPECT_EQ(Ask(*channel).code, 0);
  EXPECT_EQ(ended, 0);
  goes_on = true;
  while (ended < kCalls) std::this_thread::yield();
}

TEST(GrpcTransport, AServerThatIsKilled) {
  OtherProcess server("Serves");
  const auto channel = Grpc().Connect(AddressOf(server), {});
  ASSERT_TRUE(Ask(*channel).ok());
  std::atomic<int> ended{0};
  std::vector<Answer> answers(8);
  for (Answer& answer : answers) {
    channel->Start("/t.S/Wait", {}, Within(seconds(60)), [&](Answer a) {
      answer = std::move(a);
      ++ended;
    });
  }
  std::this_thread::sleep_for(milliseconds(50));
  kill(server.pid(), SIGKILL);
  const auto killed = Clock::now();
  while (ended < 8) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_LT(Clock::now() - killed, milliseconds(2000));
  for (const Answer& answer : answers) {
    EXPECT_EQ(answer.code, 14) << answer.message;
    EXPECT_TRUE(absl::StrContains(answer.message, AddressOf(server)))
        << answer.message;
  }
}

// As where its machine is gone, or the link: nothing says so.
TEST(GrpcTransport, APeerThatSaysNothingIsGivenUp) {
  OtherProcess server("Serves");
  const auto channel = Grpc().Connect(AddressOf(server), {});
  ASSERT_TRUE(Ask(*channel).ok());
  kill(server.pid(), SIGSTOP);
  const auto began = Clock::now();
  const Answer answer = Ask(*channel, "/t.S/Wait", seconds(60));
  EXPECT_EQ(answer.code, 14) << answer.message;
  EXPECT_LT(Clock::now() - began, seconds(20));
}

TEST(GrpcTransport, CallersThatAreKilledAreNoticed) {
  std::atomic<bool> cancelled{false};
  ListenOptions options = Echo();
  options.methods["/t.S/Wait"] = [&](const std::shared_ptr<ServerCall>& call,
                                     const Bytes&) {
    call->OnCancel([&cancelled, call] {
      cancelled = true;
      call->Finish({1, ""});
    });
  };
  std::string error;
  const auto listener = Grpc().Listen(std::move(options), &error);
  ASSERT_NE(listener, nullptr) << error;
  {
    OtherProcess caller(
        "Calls", absl::StrCat("HR_TEST_PORT=", listener->port()).c_str());
    ASSERT_EQ(caller.said(), "called\n");
  }
  const auto end = Clock::now() + seconds(5);
  while (!cancelled && Clock::now() < end) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_TRUE(cancelled);
}

TEST(Other, DISABLED_Calls) {
  const auto channel =
      Grpc().Connect(absl::StrCat("127.0.0.1:", getenv("HR_TEST_PORT")), {});
  const auto call = channel->Start("/t.S/Wait", {}, {}, [](Answer) {});
  ASSERT_TRUE(Ask(*channel).ok());
  Say("called");
  while (true) pause();
}

TEST(GrpcTransport, NotInAForkedProcess) {
  std::string error;
  const auto listener = Grpc().Listen(Echo(), &error);
  ASSERT_NE(listener, nullptr) << error;
  const auto channel =
      Grpc().Connect(absl::StrCat("127.0.0.1:", listener->port()), {});
  ASSERT_TRUE(Ask(*channel).ok());
  const pid_t child = fork();
  if (child == 0) {
    const Answer answer = Ask(*channel);
    std::string why;
    const bool listens = Grpc().Listen(Echo(), &why) != nullptr;
    _exit(answer.code == 9 && !listens ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(Ask(*channel).ok());
}

TEST(GrpcTransport, LibrariesThatAreNoneOrOfAnotherVersion) {
  const OtherProcess none("Loads", "HEADRACE_GRPC_LIBRARY=/no/such.so");
  for (const char* part :
       {"FAILED_PRECONDITION", "/no/such.so", "pip install headrace-serving"}) {
    EXPECT_TRUE(absl::StrContains(none.said(), part)) << none.said();
  }
  const OtherProcess other("Loads", "HEADRACE_GRPC_LIBRARY=libm.so.6");
  EXPECT_TRUE(absl::StrContains(other.said(), kGrpcTransportEntry))
      << other.said();
  Grpc();
  void* library = dlopen("libheadrace_grpc.so", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) {
    Dl_info here;
    ASSERT_NE(dladdr(reinterpret_cast<void*>(&Echo), &here), 0);
    const std::string path = here.dli_fname;
    library = dlopen(
        (path.substr(0, path.rfind('/') + 1) + "libheadrace_grpc.so").c_str(),
        RTLD_NOW | RTLD_NOLOAD);
  }
  ASSERT_NE(library, nullptr);
  std::string error;
  const auto entry = reinterpret_cast<GrpcTransportEntry*>(
      dlsym(library, kGrpcTransportEntry));
  EXPECT_EQ(entry("0.0.9 interface 1", &error), nullptr);
  EXPECT_TRUE(absl::StrContains(error, "0.0.9 interface 1")) << error;
  EXPECT_TRUE(absl::StrContains(error, TransportInterface())) << error;
}

TEST(GrpcTransport, StrangersDoNotDisturb) {
  ListenOptions options = Echo();
  options.longest_message = 1 << 20;
  std::string error;
  const auto listener = Grpc().Listen(std::move(options), &error);
  ASSERT_NE(listener, nullptr) << error;
  const auto channel =
      Grpc().Connect(absl::StrCat("127.0.0.1:", listener->port()), {});
  ASSERT_TRUE(Ask(*channel).ok());
  std::mt19937 random(7);
  const std::string preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  for (int i = 0; i < 40; ++i) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(listener->port());
    ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&at), sizeof(at)), 0);
    std::string text = i % 4 == 0   ? "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
                       : i % 4 == 1 ? preface
                       : i % 4 == 2 ? preface.substr(0, i)
                                    : "";
    for (int k = 0; k < 1000 * i; ++k) text += static_cast<char>(random());
    (void)send(fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (i % 2 == 0) {
      char answer[512];
      (void)recv(fd, answer, sizeof(answer), MSG_DONTWAIT);
    }
    close(fd);
  }
  EXPECT_TRUE(Ask(*channel).ok());
}

class GrpcTls : public testing::Test {
 protected:
  void Listen(const TlsKeys& tls) {
    ListenOptions options = Echo();
    options.address = "localhost:0";
    options.tls = tls;
    listener_ = Grpc().Listen(std::move(options), &error_);
  }
  Answer AskWith(const TlsKeys& tls) {
    ConnectOptions options;
    options.tls = tls;
    return Ask(*Grpc().Connect(absl::StrCat("localhost:", listener_->port()),
                               options));
  }
  static TlsKeys Shows(const serving::TestCertificate& c) {
    TlsKeys keys;
    keys.certificate = c.cert;
    keys.key = c.key;
    return keys;
  }

  const serving::TestCertificate server_ =
      serving::MakeTestCertificate("localhost");
  const serving::TestCertificate client_ =
      serving::MakeTestCertificate("client");
  const serving::TestCertificate other_ =
      serving::MakeTestCertificate("localhost");
  std::unique_ptr<Listener> listener_;
  std::string error_;
};

TEST_F(GrpcTls, OnlyTheServerThatIsTrusted) {
  Listen(Shows(server_));
  ASSERT_NE(listener_, nullptr) << error_;
  TlsKeys trusts;
  trusts.roots = server_.cert;
  EXPECT_TRUE(AskWith(trusts).ok()) << AskWith(trusts).message;
  trusts.roots = other_.cert;
  EXPECT_EQ(AskWith(trusts).code, 16);
  EXPECT_EQ(AskWith({}).code, 16);
  trusts.roots = "no PEM";
  EXPECT_FALSE(AskWith(trusts).ok());
  // Nor by another name than its own.
  Listen(Shows(client_));
  trusts.roots = client_.cert;
  EXPECT_EQ(AskWith(trusts).code, 16);
  // Nor one without TLS.
  Listen({});
  EXPECT_EQ(AskWith(trusts).code, 16);
}

TEST_F(GrpcTls, OnlyClientsThatAreTrusted) {
  TlsKeys keys = Shows(server_);
  keys.client_roots = client_.cert;
  Listen(keys);
  ASSERT_NE(listener_, nullptr) << error_;
  TlsKeys shows = Shows(client_);
  shows.roots = server_.cert;
  EXPECT_TRUE(AskWith(shows).ok()) << AskWith(shows).message;
  shows = Shows(other_);
  shows.roots = server_.cert;
  EXPECT_EQ(AskWith(shows).code, 16);
  TlsKeys nothing;
  nothing.roots = server_.cert;
  EXPECT_EQ(AskWith(nothing).code, 16);
  EXPECT_TRUE(absl::StrContains(AskWith(nothing).message,
                                "does not take the certificate"))
      << AskWith(nothing).message;
}

// A call that waits for the peer would wait for what cannot come.
TEST_F(GrpcTls, CallsThatWaitEndSoon) {
  TlsKeys keys = Shows(server_);
  keys.client_roots = client_.cert;
  Listen(keys);
  ASSERT_NE(listener_, nullptr) << error_;
  TlsKeys other = Shows(other_);
  other.roots = server_.cert;
  TlsKeys mistrusts = Shows(client_);
  mistrusts.roots = other_.cert;
  const std::string address = absl::StrCat("localhost:", listener_->port());
  for (const auto& [says, keys_of] : std::map<std::string, const TlsKeys*>{
           {"does not take the certificate of this process", &other},
           {"shows a certificate that this process does not take", &mistrusts},
           {"speaks TLS, and this process has no certificate", nullptr}}) {
    ConnectOptions options;
    if (keys_of != nullptr) options.tls = *keys_of;
    const auto channel = Grpc().Connect(address, options);
    CallOptions call = Within(seconds(60));
    call.wait_for_ready = true;
    const auto since = Clock::now();
    const Answer answer =
        CallAndWait(*channel, "/t.S/Echo", Bytes("hello"), call);
    EXPECT_LT(Clock::now() - since, milliseconds(1'500));
    EXPECT_EQ(answer.code, 16) << answer.message;
    EXPECT_TRUE(absl::StrContains(answer.message, address + " " + says))
        << answer.message;
  }
}

// One that is not there yet is waited for, and so is one that says nothing.
TEST_F(GrpcTls, APeerThatComesLaterIsWaitedFor) {
  Listen(Shows(server_));
  ASSERT_NE(listener_, nullptr) << error_;
  const int port = listener_->port();
  listener_ = nullptr;
  ConnectOptions options;
  options.tls.roots = server_.cert;
  const std::string address = absl::StrCat("localhost:", port);
  const auto channel = Grpc().Connect(address, options);
  CallOptions call = Within(seconds(60));
  call.wait_for_ready = true;
  Answer answer{14, ""};
  std::thread asks([&] {
    answer = CallAndWait(*channel, "/t.S/Echo", Bytes("hello"), call);
  });
  std::this_thread::sleep_for(milliseconds(700));
  ListenOptions again = Echo();
  again.address = address;
  again.tls = Shows(server_);
  const auto listener = Grpc().Listen(std::move(again), &error_);
  EXPECT_NE(listener, nullptr) << error_;
  asks.join();
  EXPECT_TRUE(answer.ok()) << answer.message;
}

TEST_F(GrpcTls, KeysThatAreNone) {
  TlsKeys keys = Shows(server_);
  keys.key = "";
  Listen(keys);
  EXPECT_EQ(listener_, nullptr);
  EXPECT_TRUE(absl::StrContains(error_, "localhost:0")) << error_;
  keys.key = "no PEM";
  Listen(keys);
  EXPECT_EQ(listener_, nullptr);
  keys.key = other_.key;
  Listen(keys);
  EXPECT_EQ(listener_, nullptr);
}

}  // namespace
}  // namespace headrace::distributed
