#include "runtime/rendezvous.h"

#include <thread>

#include "base/cancellation.h"
#include "gtest/gtest.h"
#include "runtime/test_cut.h"

namespace headrace {
namespace {

TEST(RendezvousKeyTest, IsWhatGoesOverTheWire) {
  const RendezvousKey key = KeyOf("edge_1_b");
  EXPECT_EQ(key.text,
            "/job:ps/replica:0/task:0/device:CPU:0;977357710510b532;"
            "/job:worker/replica:0/task:1/device:CPU:0;edge_1_b;0:0");
  const auto read = RendezvousKey::Parse(key.text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->source, key.source);
  EXPECT_EQ(read->destination, key.destination);
  EXPECT_EQ(read->incarnation, 0x977357710510b532u);
  EXPECT_EQ(read->edge, "edge_1_b");
  for (const char* bad :
       {"garbage", "", ";;;;", "/job:ps;0;/job:w;e;0:0",
        "/job:ps/replica:0/task:0/device:CPU:0;xyz;"
        "/job:worker/replica:0/task:1/device:CPU:0;e;0:0",
        "/job:ps/replica:0/task:0/device:CPU:0;00000000000000001;"
        "/job:worker/replica:0/task:1/device:CPU:0;e;0:0",
        "/job:ps/replica:0/task:0/device:CPU:0;1;"
        "/job:worker/replica:0/task:1/device:CPU:0;;0:0"}) {
    const Status s = RendezvousKey::Parse(bad).status();
    EXPECT_EQ(s, InvalidArgument("Invalid  rendezvous key: ", bad));
  }
}

TEST(LocalRendezvousTest, ValuesComeInTheirOrder) {
  LocalRendezvous r;
  const RendezvousKey key = KeyOf("e");
  SentValue value;
  EXPECT_FALSE(*r.TryReceive(key, &value));
  ASSERT_TRUE(r.Send(key, Sent(1)).ok());
  ASSERT_TRUE(r.Send(key, Sent(2)).ok());
  EXPECT_FALSE(*r.TryReceive(KeyOf("f"), &value));
  for (float x : {1, 2}) {
    EXPECT_TRUE(*r.TryReceive(key, &value));
    EXPECT_EQ(value.tensor.scalar<float>(), x);
  }
  EXPECT_TRUE(r.idle());
}

TEST(LocalRendezvousTest, WaitersAreTold) {
  LocalRendezvous r;
  const RendezvousKey key = KeyOf("e");
  int looks = 0;
  std::vector<float> taken;
  r.Await(key, [&] { ++looks; });
  const int64_t first = r.ReceiveAsync(key, [&](StatusOr<SentValue> v) {
    taken.push_back(v->tensor.scalar<float>());
  });
  r.ReceiveAsync(key, [&](StatusOr<SentValue> v) {
    taken.push_back(-v->tensor.scalar<float>());
  });
  EXPECT_TRUE(r.Forget(key, first));
  EXPECT_FALSE(r.Forget(key, first));
  ASSERT_TRUE(r.Send(key, Sent(3)).ok());
  EXPECT_EQ(looks, 1);
  EXPECT_EQ(taken, std::vector<float>{-3});
  ASSERT_TRUE(r.Send(key, {{}, true}).ok());
  r.Await(key, [&] { ++looks; });
  EXPECT_EQ(looks, 2);
  SentValue value;
  EXPECT_TRUE(*r.TryReceive(key, &value));
  EXPECT_TRUE(value.dead);
}

TEST(LocalRendezvousTest, AnAbortEndsAll) {
  LocalRendezvous r;
  const RendezvousKey key = KeyOf("e");
  Status got;
  bool looked = false;
  r.ReceiveAsync(key, [&](StatusOr<SentValue> v) { got = v.status(); });
  r.Await(KeyOf("f"), [&] { looked = true; });
  r.Abort(Aborted("the other task is gone"));
  r.Abort(Cancelled("later"));
  EXPECT_EQ(got, Aborted("the other task is gone"));
  EXPECT_TRUE(looked);
  SentValue value;
  EXPECT_EQ(r.TryReceive(key, &value).status(), got);
  EXPECT_EQ(r.Send(key, Sent(1)), got);
  EXPECT_TRUE(r.idle());
}

TEST(LocalRendezvousTest, WaitingStops) {
  LocalRendezvous r;
  const Deadline deadline(30);
  SentValue value;
  EXPECT_TRUE(absl::IsDeadlineExceeded(Receive(r, KeyOf("e"), &value)));
}

// Two values come in the order against that of the graph, the second only when
// something was sent that waits for neither.
TEST(CutGraphTest, SendsWaitForNoOther) {
  for (const bool alive : {true, false}) {
    Cut cut;
    Edge a = cut.Recv("a", alive), b = cut.Recv("b", alive);
    Edge c = cut.Add(
        "Const", {},
        {{"dtype", DType::kFloat}, {"value", Tensor::Scalar<float>(5)}});
    Node* first = cut.Send("first", c);
    Node* sum = cut.Send("sum", cut.Add("AddV2", {a, b}, {}));
    LocalRendezvous r;
    std::thread other([&] {
      SentValue value;
      EXPECT_TRUE(Receive(r, KeyOf("first", kWorker, kPs), &value).ok());
      EXPECT_TRUE(r.Send(KeyOf("b"), Sent(2)).ok());
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      EXPECT_TRUE(r.Send(KeyOf("a"), Sent(1)).ok());
    });
    EXPECT_EQ(cut.Run({sum, first}, &r), OkStatus());
    other.join();
    EXPECT_EQ(Got(r, "sum"), 3);
  }
}

TEST(CutGraphTest, DeadValuesAreHandedOn) {
  Cut cut;
  Edge a = cut.Recv("a", false);
  Node* dead = cut.Send("dead", cut.Add("Neg", {a}, {}));
  Node* alive = cut.Send("alive", cut.Add("Neg", {cut.Recv("b", false)}, {}));
  LocalRendezvous r;
  ASSERT_TRUE(r.Send(KeyOf("a"), {{}, true}).ok());
  ASSERT_TRUE(r.Send(KeyOf("b"), Sent(2)).ok());
  EXPECT_EQ(cut.Run({dead, alive}, &r), OkStatus());
  EXPECT_EQ(Got(r, "dead"), -2);
  EXPECT_EQ(Got(r, "alive"), -2);
}

TEST(CutGraphTest, StopsAndErrorsEndWaits) {
  for (const bool alive : {true, false}) {
    Cut cut;
    Node* a = cut.Send("x", cut.Recv("a", alive));
    Node* b = cut.Send("y", cut.Recv("b", alive));
    LocalRendezvous r;
    {
      const Deadline deadline(30);
      EXPECT_TRUE(absl::IsDeadlineExceeded(cut.Run({a, b}, &r)));
    }
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      r.Abort(Aborted("gone"));
    });
    const Status s = cut.Run({a, b}, &r);
    other.join();
    EXPECT_TRUE(absl::IsAborted(s)) << s;
    EXPECT_TRUE(absl::IsFailedPrecondition(cut.Run({a}, nullptr)));
    LocalRendezvous wrong;
    ASSERT_TRUE(wrong.Send(KeyOf("a"), {Tensor::Scalar<int32_t>(1)}).ok());
    EXPECT_TRUE(absl::IsInvalidArgument(cut.Run({a}, &wrong)));
  }
}

}  // namespace
}  // namespace headrace
