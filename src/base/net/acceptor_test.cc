#include "base/net/acceptor.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <fstream>

#include "serving/http/test_client.h"

namespace headrace {
namespace {

using serving::TestClient;

// Says a word to each who comes, and closes.
void Greet(int socket) {
  (void)send(socket, "hello", 5, MSG_NOSIGNAL);
  close(socket);
}

std::string HeardAt(const std::string& path) {
  const OwnedFile s(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  if (connect(s.fd(), reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) != 0) {
    return "";
  }
  char bytes[16];
  const ssize_t n = recv(s.fd(), bytes, sizeof(bytes), 0);
  return std::string(bytes, n > 0 ? n : 0);
}

TEST(Acceptor, APort) {
  auto acceptor = Acceptor::OnPort(0);
  ASSERT_TRUE(acceptor.ok()) << acceptor.status();
  const int port = (*acceptor)->port();
  EXPECT_GT(port, 0);
  const auto second = Acceptor::OnPort(port);
  EXPECT_TRUE(absl::IsUnavailable(second.status()));
  EXPECT_NE(second.status().message().find("in use"), StringView::npos);
  ASSERT_TRUE((*acceptor)->Start(&Greet, [] {}).ok());
  for (int i = 0; i < 20; ++i) {
    TestClient client(port);
    EXPECT_TRUE(client.Ends());
  }
  (*acceptor)->Close();
  EXPECT_FALSE(TestClient(port).connected());
  EXPECT_TRUE(Acceptor::OnPort(port).ok());
}

TEST(Acceptor, AnAddress) {
  for (const char* host : {"127.0.0.1", "localhost", ""}) {
    auto acceptors = Acceptor::OnAddress(absl::StrCat(host, ":0"));
    ASSERT_TRUE(acceptors.ok()) << acceptors.status();
    const int port = acceptors->front()->port();
    for (auto& acceptor : *acceptors) {
      EXPECT_EQ(acceptor->port(), port);
      ASSERT_TRUE(acceptor->Start(&Greet, [] {}).ok());
    }
    TestClient client(port);
    EXPECT_TRUE(client.Ends());
    const auto second = Acceptor::OnAddress(absl::StrCat(host, ":", port));
    EXPECT_TRUE(absl::IsUnavailable(second.status())) << host;
  }
  // Of another interface nobody gets in.
  auto other = Acceptor::OnAddress("127.0.0.2:0");
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_FALSE(TestClient(other->front()->port()).connected());
}

TEST(Acceptor, BadAddresses) {
  for (const char* address :
       {"", "localhost", "localhost:", "localhost:x", "localhost:65536",
        "localhost:-1", "127.0.0.1:0x"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Acceptor::OnAddress(address).status()))
        << address;
  }
  const Status away = Acceptor::OnAddress("192.0.2.1:0").status();
  EXPECT_TRUE(absl::IsUnavailable(away)) << away;
  EXPECT_NE(away.message().find("192.0.2.1:0"), StringView::npos);
  EXPECT_TRUE(absl::IsUnavailable(
      Acceptor::OnAddress("no.such.host.invalid:0").status()));
}

TEST(Acceptor, WhoseAddress) {
  for (const char* address : {"127.0.0.1:1", "localhost:0", ":5", "nonsense"}) {
    EXPECT_TRUE(Acceptor::IsHere(address)) << address;
  }
  for (const char* address : {"192.0.2.1:0", "no.such.host.invalid:1"}) {
    EXPECT_FALSE(Acceptor::IsHere(address)) << address;
  }
}

TEST(Acceptor, APath) {
  const std::string path = ::testing::TempDir() + "acceptor_test.socket";
  unlink(path.c_str());
  auto acceptor = Acceptor::OnPath(path);
  ASSERT_TRUE(acceptor.ok()) << acceptor.status();
  ASSERT_TRUE((*acceptor)->Start(&Greet, [] {}).ok());
  EXPECT_EQ(HeardAt(path), "hello");
  // One that is listened at is another server's.
  EXPECT_TRUE(absl::IsUnavailable(Acceptor::OnPath(path).status()));
  EXPECT_EQ(HeardAt(path), "hello");
  (*acceptor)->Close();
  EXPECT_NE(access(path.c_str(), F_OK), 0);
  // What a server left that did not end well is taken over.
  {
    const OwnedFile left(socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    ASSERT_EQ(bind(left.fd(), reinterpret_cast<const sockaddr*>(&address),
                   sizeof(address)),
              0);
  }
  EXPECT_TRUE(Acceptor::OnPath(path).ok());
  // A file that is none stays.
  std::ofstream(path) << "text";
  EXPECT_TRUE(absl::IsUnavailable(Acceptor::OnPath(path).status()));
  EXPECT_EQ(access(path.c_str(), F_OK), 0);
  unlink(path.c_str());
  EXPECT_TRUE(absl::IsInvalidArgument(
      Acceptor::OnPath("/" + std::string(200, 'x')).status()));
}

}  // namespace
}  // namespace headrace
