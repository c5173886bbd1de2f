#include "eager/tape.h"

#include "gtest/gtest.h"

namespace headrace {
namespace {

TEST(Tape, WalksBackThroughIdentity) {
  Value x(Tensor::Vector<float>({1, 2, 3}));
  Tape tape(/*persistent=*/false, /*watch_variables=*/true);
  tape.Watch(x);
  tape.Start();
  OpScope s;
  Value y = s("Identity", {s("Identity", {x})});
  tape.Stop();
  ASSERT_TRUE(s.ok()) << s.status();
  Value seed(Tensor::Vector<float>({4, 5, 6}));
  auto g = tape.Gradients({y}, {x}, {seed});
  ASSERT_TRUE(g.ok()) << g.status();
  EXPECT_EQ((*g)[0].dense.tensor().data<float>()[1], 5);
}

TEST(Tape, NothingFlowsThroughStopGradient) {
  Value x(Tensor::Vector<float>({1, 2, 3}));
  Tape tape(false, true);
  tape.Watch(x);
  tape.Start();
  OpScope s;
  Value y = s("StopGradient", {x});
  tape.Stop();
  Value seed(Tensor::Vector<float>({4, 5, 6}));
  auto g = tape.Gradients({y}, {x}, {seed});
  ASSERT_TRUE(g.ok()) << g.status();
  EXPECT_FALSE((*g)[0]);
}

}  // namespace
}  // namespace headrace
