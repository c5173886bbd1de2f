// One table of tests for both transports.
#include "distributed/transport.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "absl/strings/match.h"
#include "distributed/call_and_wait.h"
#include "distributed/load.h"
#include "distributed/local_transport.h"

namespace headrace::distributed {
namespace {

using std::chrono::milliseconds;

// A server of methods that show what a transport does, and a channel to it.
class TransportTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (absl::StartsWith(GetParam(), "local")) {
      LocalOptions options;
      if (GetParam() == std::string("local_ahead")) options.ahead = 1 << 20;
      auto network = LocalNetwork::Create(std::move(options));
      ASSERT_TRUE(network.ok()) << network.status();
      network_ = *network;
      own_ = network_->Of("client");
      transport_ = own_.get();
    } else {
      auto loaded = LoadTransport();
      ASSERT_TRUE(loaded.ok()) << loaded.status();
      transport_ = *loaded;
    }
    Listen();
  }
  void Listen(size_t longest = SIZE_MAX) {
    ListenOptions options;
    options.address = "127.0.0.1:0";
    options.methods = Methods();
    options.longest_message = longest;
    options.authorize = [asked = asked_](const std::string& path,
                                         const Metadata& metadata) {
      ++*asked;
      return metadata.contains("stranger") ? Answer{7, "who are you?"}
                                           : Answer();
    };
    std::string error;
    listener_ = transport_->Listen(std::move(options), &error);
    ASSERT_NE(listener_, nullptr) << error;
    address_ = absl::StrCat("127.0.0.1:", listener_->port());
    channel_ = transport_->Connect(address_, {});
  }
  std::map<std::string, Method> Methods() {
    using Call = std::shared_ptr<ServerCall>;
    std::map<std::string, Method> m;
    m["/t.S/Echo"] = [](const Call& call, Bytes request) {
      Answer answer;
      answer.body = std::move(request);
      for (const auto& [key, value] : call->metadata()) {
        if (key.starts_with("x-")) answer.metadata.emplace(key, value);
      }
      call->Finish(std::move(answer));
    };
    m["/t.S/Fail"] = [](const Call& call, Bytes request) {
      call->Finish({9, request.Flat(), "det\x00\x01ails", {}, {{"x-e", "v"}}});
    };
    m["/t.S/Drop"] = [](const Call&, Bytes) {};
    m["/t.S/Throw"] = [](const Call&, Bytes) {
      throw std::runtime_error("thrown");
    };
    // Never ends by itself.
    m["/t.S/Wait"] = [this](const Call& call, Bytes) {
      call->OnCancel([this, call] {
        cancelled_at_ = Clock::now();
        ++cancelled_;
        call->Finish({1, "seen"});
      });
      const MutexLock lock(mutex_);
      waiting_.push_back(call);
      ++waits_;
    };
    m["/t.S/Deaf"] = [this](const Call& call, Bytes) {
      const MutexLock lock(mutex_);
      waiting_.push_back(call);
      ++waits_;
    };
    // "N SIZE": so many parts of such a size.
    m["/t.S/Parts"] = [this](const Call& call, Bytes request) {
      size_t n = 0, size = 0;
      std::sscanf(request.Flat().c_str(), "%zu %zu", &n, &size);
      SendParts(call, 0, n, size);
    };
    m["/t.S/PartsThenError"] = [](const Call& call, Bytes) {
      call->Send(Bytes("one"), [call](bool) {
        call->Send(Bytes("two"), [call](bool) {
          call->Finish({5, "no more"});
        });
      });
    };
    return m;
  }
  void SendParts(const std::shared_ptr<ServerCall>& call, size_t i, size_t n,
                 size_t size) {
    if (i == n) {
      Answer answer;
      answer.body = Bytes("end");
      return call->Finish(std::move(answer));
    }
    std::string part(size, static_cast<char>('a' + i % 26));
    call->Send(Bytes(std::move(part)), [this, call, i, n, size](bool more) {
      sent_ = i + 1;
      if (more) SendParts(call, i + 1, n, size);
      if (!more) ++unread_;
    });
  }
  void TearDown() override {
    listener_.reset();
    const MutexLock lock(mutex_);
    waiting_.clear();
  }

  Answer Ask(const std::string& path, Bytes request = {},
             CallOptions options = {}) {
    if (options.deadline == Clock::time_point::max()) {
      options.deadline = Clock::now() + std::chrono::seconds(30);
    }
    return CallAndWait(*channel_, path, std::move(request), options);
  }
  void WaitFor(const std::function<bool()>& there) {
    const auto end = Clock::now() + std::chrono::seconds(10);
    while (!there() && Clock::now() < end) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    EXPECT_TRUE(there());
  }

  std::shared_ptr<LocalNetwork> network_;
  std::unique_ptr<Transport> own_;
  Transport* transport_ = nullptr;
  // Of the network's thread, too, which may come to its end behind a test.
  const std::shared_ptr<std::atomic<int>> asked_ =
      std::make_shared<std::atomic<int>>(0);
  std::atomic<int> cancelled_{0}, waits_{0}, unread_{0};
  std::atomic<size_t> sent_{0};
  std::atomic<Clock::time_point> cancelled_at_;
  Mutex mutex_;
  std::vector<std::shared_ptr<ServerCall>> waiting_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Listener> listener_;
  std::string address_;
  std::shared_ptr<Channel> channel_;
};

TEST_P(TransportTest, BytesOfAllSizesComeBack) {
  for (const size_t n : {0, 1, 64, 511, 512, 513, 70'000, 5 << 20}) {
    std::string text(n, '\0');
    for (size_t i = 0; i < n; ++i) text[i] = static_cast<char>(i * 31 + n);
    Bytes request("head");
    request.Append(text);
    request.Append(std::string("tail"));
    const Answer answer = Ask("/t.S/Echo", std::move(request));
    ASSERT_TRUE(answer.ok()) << answer.message;
    EXPECT_EQ(answer.body.size(), n + 8);
    EXPECT_TRUE(answer.body.Flat() == "head" + text + "tail") << n;
  }
  EXPECT_EQ(Ask("/t.S/Echo").body.size(), 0);
}

TEST_P(TransportTest, OwnersAreLetGo) {
  auto owner = std::make_shared<std::string>(1 << 20, 'o');
  Bytes request;
  request.Append({owner, owner->data(), owner->size()});
  EXPECT_TRUE(Ask("/t.S/Echo", std::move(request)).ok());
  WaitFor([&] { return owner.use_count() == 1; });
}

TEST_P(TransportTest, MetadataBothWays) {
  CallOptions options;
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  options.metadata = {{"x-a", "one"}, {"x-a", "two"}, {"x-b-bin", all}};
  const Answer answer = Ask("/t.S/Echo", {}, options);
  ASSERT_TRUE(answer.ok()) << answer.message;
  for (const auto& pair : options.metadata) {
    const auto [begin, end] = answer.metadata.equal_range(pair.first);
    EXPECT_TRUE(std::any_of(begin, end, [&](auto& p) { return p == pair; }))
        << pair.first;
  }
  for (const Metadata& wrong :
       {Metadata{{"Upper", "v"}}, Metadata{{"", "v"}}, Metadata{{":path", "v"}},
        Metadata{{"grpc-x", "v"}}, Metadata{{"x-a", "\n"}}}) {
    options.metadata = wrong;
    EXPECT_EQ(Ask("/t.S/Echo", {}, options).code, 3);
  }
  for (const char* path : {"", "/", "no", "/t.S/E cho", "/t.S/\xff"}) {
    EXPECT_EQ(Ask(path).code, 3) << path;
  }
}

TEST_P(TransportTest, ErrorsTravelWhole) {
  const Answer answer = Ask("/t.S/Fail", Bytes("why: \xc3\xa4 % \n \"x\""));
  EXPECT_EQ(answer.code, 9);
  EXPECT_EQ(answer.message, "why: \xc3\xa4 % \n \"x\"");
  EXPECT_EQ(answer.details, "det");
  EXPECT_EQ(answer.metadata.count("x-e"), 1);
  EXPECT_EQ(answer.body.size(), 0);
  EXPECT_EQ(Ask("/t.S/Nothing").code, 12);
  EXPECT_EQ(Ask("/t.S/Drop").code, 1);
  const Answer thrown = Ask("/t.S/Throw");
  EXPECT_EQ(thrown.code, 13);
  EXPECT_TRUE(absl::StrContains(thrown.message, "thrown")) << thrown.message;
}

TEST_P(TransportTest, StrangersAreRefused) {
  CallOptions options;
  options.metadata = {{"stranger", "yes"}};
  const int before = *asked_;
  const Answer answer = Ask("/t.S/Echo", Bytes("secret"), options);
  EXPECT_EQ(answer.code, 7);
  EXPECT_EQ(answer.message, "who are you?");
  EXPECT_EQ(*asked_, before + 1);
}

TEST_P(TransportTest, SixtyFourAtOnce) {
  std::vector<std::thread> clients;
  std::atomic<int> good{0};
  for (int i = 0; i < 64; ++i) {
    clients.emplace_back([&, i] {
      for (int k = 0; k < 20; ++k) {
        const std::string text(100 * i + k, static_cast<char>(i));
        if (Ask("/t.S/Echo", Bytes(text)).body.Flat() == text) ++good;
      }
    });
  }
  for (std::thread& t : clients) t.join();
  EXPECT_EQ(good, 64 * 20);
}

TEST_P(TransportTest, DeadlinesEndCallsAtBothEnds) {
  CallOptions options;
  const auto began = Clock::now();
  options.deadline = began + milliseconds(100);
  const Answer answer = Ask("/t.S/Wait", {}, options);
  EXPECT_EQ(answer.code, 4);
  EXPECT_TRUE(absl::StrContains(answer.message, address_)) << answer.message;
  EXPECT_GE(Clock::now() - began, milliseconds(99));
  EXPECT_LT(Clock::now() - began, milliseconds(2000));
  WaitFor([&] { return cancelled_ == 1; });
  {
    const MutexLock lock(mutex_);
    const auto left = waiting_[0]->deadline() - options.deadline;
    EXPECT_LT(left, milliseconds(50));
    EXPECT_GT(left, milliseconds(-50));
  }
  options.deadline = Clock::now() - milliseconds(1);
  EXPECT_EQ(Ask("/t.S/Wait", {}, options).code, 4);
}

TEST_P(TransportTest, CancelsAreSeenSoon) {
  for (int i = 1; i <= 5; ++i) {
    std::atomic<int> code{-1};
    const auto call = channel_->Start(
        "/t.S/Wait", {}, {}, [&](Answer answer) { code = answer.code; });
    WaitFor([&] { return waits_ == i; });
    const auto asked = Clock::now();
    call->Cancel();
    WaitFor([&] { return cancelled_ == i && code != -1; });
    EXPECT_EQ(code, 1);
    // On a machine that does other things, too.
    EXPECT_LT(cancelled_at_.load() - asked, milliseconds(50));
    call->Cancel();  // nothing
  }
}

TEST_P(TransportTest, CallsThatAreLetGoGoOn) {
  std::atomic<bool> done{false};
  channel_->Start("/t.S/Echo", Bytes("x"), {}, [&](Answer answer) {
    EXPECT_TRUE(answer.ok());
    done = true;
  });
  channel_.reset();
  WaitFor([&] { return done.load(); });
}

TEST_P(TransportTest, PartsComeInOrder) {
  for (const size_t n : {0, 1, 2, 3, 50}) {
    CallOptions options;
    options.brings_much = n % 2 == 1;
    std::string parts;
    options.on_part = [&](Bytes part, const std::function<void()>& next) {
      parts += part.Flat();
      next();
    };
    const Answer answer =
        Ask("/t.S/Parts", Bytes(absl::StrCat(n, " 3")), options);
    ASSERT_TRUE(answer.ok()) << answer.message;
    EXPECT_EQ(answer.body.Flat(), "end");
    std::string expected;
    for (size_t i = 0; i < n; ++i) {
      expected.append(3, static_cast<char>('a' + i % 26));
    }
    EXPECT_EQ(parts, expected);
  }
  CallOptions options;
  int parts = 0;
  options.on_part = [&](Bytes, const std::function<void()>& next) {
    ++parts;
    next();
  };
  EXPECT_EQ(Ask("/t.S/PartsThenError", {}, options).code, 5);
  EXPECT_LE(parts, 2);  // fewer where the error came before they were read
  // An ordinary answer, of which parts might have come.
  EXPECT_EQ(Ask("/t.S/Echo", Bytes("e"), options).body.Flat(), "e");
  EXPECT_EQ(Ask("/t.S/Fail", Bytes("e"), options).message, "e");
}

// The end comes on one thread as another one hands a part out.
TEST_P(TransportTest, CallsThatEndWhileTheirPartsAreRead) {
  CallOptions options;
  options.parts_alone = true;
  options.on_part = [](Bytes, const std::function<void()>& next) { next(); };
  for (int turn = 0; turn < 200; ++turn) {
    std::atomic<int> ended{0};
    std::vector<std::shared_ptr<ClientCall>> calls;
    for (int i = 0; i < 8; ++i) {
      calls.push_back(channel_->Start("/t.S/Parts", Bytes("100000 10"), options,
                                      [&](const Answer& answer) {
                                        EXPECT_EQ(answer.code, 1);
                                        ++ended;
                                      }));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(turn * 20));
    for (const auto& call : calls) call->Cancel();
    WaitFor([&] { return ended == 8; });
  }
}

TEST_P(TransportTest, PartsThatNobodyAskedForAreAnError) {
  CallOptions options;
  options.deadline = Clock::now() + milliseconds(300);
  EXPECT_FALSE(Ask("/t.S/Parts", Bytes("3 3"), options).ok());
  EXPECT_TRUE(Ask("/t.S/Echo").ok());
}

TEST_P(TransportTest, ASlowReaderHoldsTheSenderUp) {
  CallOptions options;
  Mutex mutex;
  std::function<void()> held;
  std::atomic<int> parts{0};
  options.on_part = [&](Bytes, std::function<void()> next) {
    const MutexLock lock(mutex);
    held = std::move(next);
    ++parts;
  };
  std::atomic<int> code{-1};
  const auto call = channel_->Start("/t.S/Parts", Bytes("200 1048576"), options,
                                    [&](Answer answer) { code = answer.code; });
  WaitFor([&] { return parts == 1; });
  std::this_thread::sleep_for(milliseconds(300));
  // Some are on their way, and no more.
  EXPECT_LT(sent_, 32);
  EXPECT_EQ(parts, 1);
  while (code == -1) {
    std::function<void()> next;
    {
      const MutexLock lock(mutex);
      next = std::exchange(held, nullptr);
    }
    if (next) next();
    std::this_thread::yield();
  }
  EXPECT_EQ(code, 0);
  EXPECT_EQ(parts, 200);
}

// Over the connection for such calls, where there is one: many at once, as well
// as beside others.
TEST_P(TransportTest, CallsThatBringMuchRunBesideOthers) {
  CallOptions options;
  options.brings_much = true;
  std::atomic<int> ended{0};
  std::atomic<size_t> bytes{0};
  options.on_part = [&](const Bytes& part, const std::function<void()>& next) {
    bytes += part.size();
    next();
  };
  for (int i = 0; i < 4; ++i) {
    channel_->Start("/t.S/Parts", Bytes("16 1000000"), options,
                    [&](const Answer& answer) {
                      EXPECT_EQ(answer.code, 0) << answer.message;
                      ++ended;
                    });
    EXPECT_EQ(Ask("/t.S/Echo", Bytes("e")).body.Flat(), "e");
  }
  WaitFor([&] { return ended == 4; });
  EXPECT_EQ(bytes, 4 * 16 * 1000000u);
}

TEST_P(TransportTest, AReaderThatStopsIsGivenUp) {
  CallOptions options;
  options.on_part = [](Bytes, const std::function<void()>&) {};
  options.deadline = Clock::now() + milliseconds(200);
  EXPECT_EQ(Ask("/t.S/Parts", Bytes("200 1048576"), options).code, 4);
  WaitFor([&] { return unread_ == 1; });
  std::atomic<int> code{-1};
  const auto call =
      channel_->Start("/t.S/Parts", Bytes("200 1048576"),
                      {.on_part = [](Bytes, const std::function<void()>&) {}},
                      [&](Answer answer) { code = answer.code; });
  std::this_thread::sleep_for(milliseconds(50));
  call->Cancel();
  WaitFor([&] { return unread_ == 2 && code == 1; });
}

TEST_P(TransportTest, LongMessagesAreRefused) {
  listener_.reset();
  Listen(1000);
  EXPECT_TRUE(Ask("/t.S/Echo", Bytes(std::string(1000, 'x'))).ok());
  for (const size_t n : {1001, 10 << 20}) {
    const Answer answer = Ask("/t.S/Echo", Bytes(std::string(n, 'x')));
    EXPECT_EQ(answer.code, 8) << answer.message;
  }
  EXPECT_TRUE(Ask("/t.S/Echo", Bytes("x")).ok());
}

TEST_P(TransportTest, AServerThatStopsTellsItsCallers) {
  std::vector<int> codes;
  std::vector<std::string> texts;
  Mutex mutex;
  for (int i = 0; i < 8; ++i) {
    channel_->Start(i % 2 ? "/t.S/Wait" : "/t.S/Deaf", {}, {},
                    [&](Answer answer) {
                      const MutexLock lock(mutex);
                      codes.push_back(answer.code);
                      texts.push_back(answer.message);
                    });
  }
  WaitFor([&] { return waits_ == 8; });
  const auto began = Clock::now();
  listener_->Stop(began + milliseconds(100));
  EXPECT_LT(Clock::now() - began, milliseconds(4000));
  EXPECT_GE(Clock::now() - began, milliseconds(99));
  WaitFor([&] {
    const MutexLock lock(mutex);
    return codes.size() == 8;
  });
  const MutexLock lock(mutex);
  for (size_t i = 0; i < codes.size(); ++i) EXPECT_EQ(codes[i], 14) << texts[i];
  EXPECT_EQ(cancelled_, 4);
  const Answer answer = Ask("/t.S/Echo");
  EXPECT_EQ(answer.code, 14);
  EXPECT_TRUE(absl::StrContains(answer.message, address_)) << answer.message;
}

TEST_P(TransportTest, CallsUnderWayMayEndWhileAServerStops) {
  std::atomic<int> code{-1};
  channel_->Start("/t.S/Deaf", {}, {},
                  [&](Answer answer) { code = answer.code; });
  WaitFor([&] { return waits_ == 1; });
  std::thread stops(
      [&] { listener_->Stop(Clock::now() + std::chrono::seconds(20)); });
  std::this_thread::sleep_for(milliseconds(50));
  {
    const MutexLock lock(mutex_);
    waiting_[0]->Finish({});
    waiting_.clear();
  }
  stops.join();
  WaitFor([&] { return code == 0; });
}

TEST_P(TransportTest, WaitsForPeersThatAreNotUpYet) {
  const std::string address = address_;
  listener_.reset();
  EXPECT_EQ(Ask("/t.S/Echo").code, 14);
  CallOptions options;
  options.wait_for_ready = true;
  options.deadline = Clock::now() + milliseconds(100);
  EXPECT_EQ(Ask("/t.S/Echo", {}, options).code, 4);
  std::atomic<int> code{-1};
  options.deadline = Clock::now() + std::chrono::seconds(20);
  const auto call = channel_->Start("/t.S/Echo", {}, options,
                                    [&](Answer answer) { code = answer.code; });
  ListenOptions again;
  again.address = address;
  again.methods = Methods();
  std::string error;
  listener_ = transport_->Listen(std::move(again), &error);
  ASSERT_NE(listener_, nullptr) << error;
  WaitFor([&] { return code == 0; });
}

TEST_P(TransportTest, AnAddressThatIsTakenIsAnError) {
  ListenOptions options;
  options.address = address_;
  std::string error;
  EXPECT_EQ(transport_->Listen(std::move(options), &error), nullptr);
  EXPECT_TRUE(absl::StrContains(error, address_)) << error;
}

INSTANTIATE_TEST_SUITE_P(Transports, TransportTest,
                         testing::Values("local", "local_ahead"
#ifdef HR_GRPC_TESTS
                                         ,
                                         "grpc"
#endif
                                         ),
                         [](const auto& row) { return row.param; });

}  // namespace
}  // namespace headrace::distributed
