#include "distributed/worker/pull.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <thread>

namespace headrace::distributed {
namespace {

constexpr char kKey[] = "edge";
constexpr size_t kFloats = 1000, kPartBytes = 512;

Tensor Counted() {
  Tensor tensor = *Tensor::Allocate(DType::kFloat, Shape{kFloats});
  std::iota(tensor.data<float>(), tensor.data<float>() + kFloats, 0.f);
  return tensor;
}

class PulledCall : public ClientCall {
 public:
  void Cancel() override {
    if (!std::exchange(is_cancelled, true)) on_cancel();
  }

  bool is_cancelled = false;
  std::function<void()> on_cancel;
};

// A peer of which each part comes as soon as it may, on a thread of its own,
// and the answer behind the last: all before next() returns.
class HastyPeer : public Channel {
 public:
  explicit HastyPeer(std::vector<Bytes> parts) : parts_(std::move(parts)) {}

  std::shared_ptr<ClientCall> Start(const std::string&, Bytes,
                                    const CallOptions& options,
                                    std::function<void(Answer)> done) override {
    on_part_ = options.on_part;
    done_ = std::move(done);
    call->on_cancel = [this] { End({1, "cancelled"}); };
    return call;
  }
  void Next() {
    std::thread([this] {
      if (call->is_cancelled) return;
      if (sent == parts_.size()) return End({});
      // A copy, as the call may end within.
      const auto on_part = on_part_;
      on_part(parts_[sent++], [this] { Next(); });
    }).join();
  }

  const std::shared_ptr<PulledCall> call = std::make_shared<PulledCall>();
  size_t sent = 0;

 private:
  void End(Answer answer) {
    on_part_ = nullptr;
    std::exchange(done_, nullptr)(std::move(answer));
  }

  const std::vector<Bytes> parts_;
  decltype(CallOptions::on_part) on_part_;
  std::function<void(Answer)> done_;
};

// What is pulled from a peer that sends these parts.
struct Pulled {
  explicit Pulled(std::vector<Bytes> parts)
      : peer(std::make_shared<HastyPeer>(std::move(parts))) {
    const auto large = std::make_shared<LargeValues>();
    large->IsLarge(kKey);
    Pull(peer, 1, kKey, large, [this](StatusOr<SentValue> value) {
      ++times_done;
      came = std::move(value);
    });
    peer->Next();
  }

  const std::shared_ptr<HastyPeer> peer;
  int times_done = 0;
  StatusOr<SentValue> came = Internal("nothing came");
};

std::vector<Bytes> PartsOf(const Tensor& tensor) {
  ReceivedTensor received;
  received.tensor = tensor;
  return *EncodeInParts(received, kPartBytes);
}

TEST(Pull, PartsThatComeWhileOthersArePutInKeepTheirOrder) {
  const Tensor tensor = Counted();
  const Pulled pulled(PartsOf(tensor));
  ASSERT_TRUE(pulled.came.ok()) << pulled.came.status();
  EXPECT_EQ(pulled.times_done, 1);
  EXPECT_FALSE(pulled.peer->call->is_cancelled);
  const Tensor& came = pulled.came->tensor;
  ASSERT_EQ(came.shape(), tensor.shape());
  EXPECT_TRUE(std::equal(came.data<float>(), came.data<float>() + kFloats,
                         tensor.data<float>()));
}

TEST(Pull, MoreBytesThanTheTensorHasEndTheCall) {
  std::vector<Bytes> parts = PartsOf(Counted());
  // Of nine parts the third is too many.
  parts.resize(9);
  parts[2] = Bytes(std::string(4 * kFloats, 'x'));
  const Pulled pulled(parts);
  EXPECT_EQ(pulled.came.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(pulled.came.status().message().find("more bytes than"),
            std::string::npos);
  EXPECT_EQ(pulled.times_done, 1);
  EXPECT_TRUE(pulled.peer->call->is_cancelled);
  // One more may have been under way.
  EXPECT_LE(pulled.peer->sent, 4);
}

TEST(Pull, FewerBytesThanTheTensorHasAreAnError) {
  std::vector<Bytes> parts = PartsOf(Counted());
  parts.pop_back();
  const Pulled pulled(parts);
  EXPECT_EQ(pulled.came.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(pulled.times_done, 1);
}

TEST(Pull, NothingButAnAnswerIsAnError) {
  const Pulled pulled({});
  EXPECT_EQ(pulled.came.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(pulled.times_done, 1);
}

}  // namespace
}  // namespace headrace::distributed
