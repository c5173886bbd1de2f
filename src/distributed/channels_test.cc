#include "distributed/channels.h"

#include <gtest/gtest.h>

#include <future>

#include "distributed/local_transport.h"

namespace headrace::distributed {
namespace {

constexpr RemoteMethod kOnce{"/t.S/F", std::chrono::milliseconds(200)};
constexpr RemoteMethod kAgain{"/t.S/F", std::chrono::milliseconds(5000), true};
constexpr RemoteMethod kFirst{"/t.S/F", std::chrono::milliseconds(5000), true,
                              true};

class ChannelsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto network = LocalNetwork::Create();
    ASSERT_TRUE(network.ok()) << network.status();
    network_ = *network;
    transport_ = network_->Of("here");
  }
  // What it answers, in turn; the last for ever.
  std::unique_ptr<Listener> Listen(std::vector<Answer> answers) {
    ListenOptions options;
    options.address = "there";
    options.methods["/t.S/F"] =
        [this, answers](const std::shared_ptr<ServerCall>& call, const Bytes&) {
          heard_ = call->metadata();
          const size_t i = asked_++;
          if (answers.empty()) return silent_.push_back(call);
          call->Finish(answers[std::min(i, answers.size() - 1)]);
        };
    std::string error;
    auto listener = transport_->Listen(std::move(options), &error);
    EXPECT_NE(listener, nullptr) << error;
    return listener;
  }
  Answer Ask(Channels& channels, const RemoteMethod& method) {
    std::promise<Answer> answer;
    channels.Start("there", method, Bytes("x"), {},
                   [&](Answer a) { answer.set_value(std::move(a)); });
    return answer.get_future().get();
  }

  std::atomic<size_t> asked_{0};
  Metadata heard_;
  std::vector<std::shared_ptr<ServerCall>> silent_;
  std::shared_ptr<LocalNetwork> network_;
  std::unique_ptr<Transport> transport_;
};

TEST_F(ChannelsTest, OneToEachAddress) {
  Channels channels(*transport_, {});
  const auto first = channels.To("there");
  EXPECT_EQ(channels.To("there"), first);
  EXPECT_NE(channels.To("elsewhere"), first);
  channels.Forget("there");
  EXPECT_NE(channels.To("there"), first);
}

TEST_F(ChannelsTest, DeadlinesAreTheMethods) {
  const auto listener = Listen({});
  Channels channels(*transport_, {});
  const auto began = Clock::now();
  EXPECT_EQ(Ask(channels, kOnce).code, 4);
  EXPECT_GE(Clock::now() - began, std::chrono::milliseconds(199));
  EXPECT_LT(Clock::now() - began, std::chrono::milliseconds(3000));
}

TEST_F(ChannelsTest, AgainOnlyWhatMayBe) {
  const auto listener = Listen({{14, "gone"}, {}});
  Channels channels(*transport_, {});
  EXPECT_EQ(Ask(channels, kOnce).code, 14);
  EXPECT_EQ(asked_, 1);
  asked_ = 0;
  EXPECT_EQ(Ask(channels, kAgain).code, 0);
  EXPECT_EQ(asked_, 2);
}

TEST_F(ChannelsTest, NotForEver) {
  const auto listener = Listen({{14, "gone"}});
  Channels channels(*transport_, {});
  EXPECT_EQ(Ask(channels, kAgain).code, 14);
  EXPECT_EQ(asked_, 3);
}

TEST_F(ChannelsTest, APeerThatComesBackIsAsked) {
  Channels channels(*transport_, {});
  std::promise<Answer> answer;
  channels.Start("there", kAgain, {}, {},
                 [&](Answer a) { answer.set_value(std::move(a)); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const auto listener = Listen({{}});
  EXPECT_EQ(answer.get_future().get().code, 0);
}

TEST_F(ChannelsTest, CancelsEndTheLastTry) {
  Channels channels(*transport_, {});
  std::promise<Answer> answer;
  const auto call = channels.Start("there", kAgain, {}, {}, [&](Answer a) {
    answer.set_value(std::move(a));
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  call->Cancel();
  EXPECT_EQ(answer.get_future().get().code, 1);
}

TEST_F(ChannelsTest, PeersIntroduceThemselves) {
  const PeerVersion here = OwnVersion("/job:a/task:0");
  Answer equal, other;
  Introduce(OwnVersion("/job:b/task:0"), &equal.metadata);
  PeerVersion unlike = here;
  unlike.version = "9.9.9";
  Introduce(unlike, &other.metadata);
  const auto listener = Listen({equal, other, {}, {}});
  Channels channels(*transport_, {}, here);
  EXPECT_EQ(Ask(channels, kFirst).code, 0);
  EXPECT_EQ(IntroducedIn(heard_)->task, here.task);
  EXPECT_EQ(Ask(channels, kFirst).code, 9);
  EXPECT_EQ(Ask(channels, kFirst).code, 9);  // a TensorFlow
  Channels mixed(*transport_, {}, here, true);
  EXPECT_EQ(Ask(mixed, kFirst).code, 0);
  EXPECT_EQ(Ask(channels, kAgain).code, 0);
  EXPECT_EQ(IntroducedIn(heard_)->version, "");
}

}  // namespace
}  // namespace headrace::distributed
