#include "simulator/servers.h"

#include <gtest/gtest.h>

#include <set>

#include "simulator/step_task.h"

namespace headrace::simulator {
namespace {

LinkModel FreeLink() {
  LinkModel link;
  link.rate = 1e8;
  link.delay = link.overhead = 0;
  link.message_work = link.byte_work = link.merge_work = 0;
  return link;
}

ServersRun TrainingOf(int workers, int servers, int wanted) {
  ServersRun run;
  run.graph.workers = workers;
  run.graph.servers = servers;
  run.graph.wanted = wanted;
  run.graph.bytes = 16 << 20;
  run.compute = 0.1;
  return run;
}

ServersTimes Trained(const LinkModel& link, const ServersRun& run) {
  auto times = SimulateServers(link, run);
  EXPECT_TRUE(times.ok()) << times.status();
  return times.ok() ? *times : ServersTimes();
}

// What the product's master cuts: a worker reads each variable and gives each
// gradient once, and nothing else that is large goes anywhere.
TEST(SimulatedServersTest, AStepIsCutIntoWhatItMustSend) {
  SyncGraphOptions graph;
  graph.servers = 3;
  graph.bytes = 999'996;
  int64_t to_worker = 0, to_servers = 0;
  const auto cut = CutSyncStep(graph, 1);
  ASSERT_TRUE(cut.ok()) << cut.status();
  ASSERT_EQ(cut->parts.size(), 4);
  EXPECT_EQ(cut->task, "/job:worker/replica:0/task:1");
  std::multiset<std::string> sent, received;
  for (const auto& part : cut->parts) {
    const PartPlan plan = PlanOf(part, cut->bytes);
    for (const auto& node : plan.nodes) {
      if (node.op == "_Recv") received.insert(node.key);
      if (node.op != "_Send") continue;
      sent.insert(node.key);
      EXPECT_EQ(node.from, plan.task);
      (plan.task == cut->task ? to_servers : to_worker) += node.bytes;
    }
    // The worker takes a variable and the token from the first server, and one
    // value from each other; each server the local step and a gradient.
    const bool is_worker = plan.task == cut->task;
    const std::string from = is_worker ? "/job:ps/replica:0/task:0" : cut->task;
    ASSERT_EQ(plan.together.size(), 1) << plan.task;
    EXPECT_EQ(plan.together.begin()->first, from);
    EXPECT_EQ(plan.together.begin()->second.size(), 2);
  }
  EXPECT_EQ(sent, received);
  // The token comes, and the local step goes to each server.
  EXPECT_EQ(to_worker, graph.bytes + 8);
  EXPECT_EQ(to_servers, graph.bytes + 3 * 8);
  const auto chief = CutSyncStep(graph, -1);
  ASSERT_TRUE(chief.ok()) << chief.status();
  EXPECT_EQ(chief->parts.size(), 3);  // servers alone
}

TEST(SimulatedServersTest, AStepTakesWhatTheBusiestLinkDoes) {
  const LinkModel link = FreeLink();
  const double both_ways = 2 * (16 << 20) / link.rate;
  // One server gives all workers all of it, and takes as much.
  EXPECT_NEAR(Trained(link, TrainingOf(4, 1, 4)).step / (4 * both_ways + 0.1),
              1, 0.02);
  // With as many servers as workers each link has the same to do.
  const double even = Trained(link, TrainingOf(4, 4, 4)).step;
  EXPECT_GT(even, both_ways + 0.1);
  EXPECT_LT(even, 1.4 * (both_ways + 0.1));
  EXPECT_GT(Trained(link, TrainingOf(4, 1, 4)).server_link, 0.4);
}

TEST(SimulatedServersTest, NOfMDoesNotWaitForWhoIsSlow) {
  LinkModel link = FreeLink();
  link.rate = 1e10;
  ServersRun run = TrainingOf(4, 2, 4);
  run.steps = 20;
  const double even = Trained(link, run).step;
  run.slow = {1, 1, 1, 5};
  const ServersTimes all = Trained(link, run);
  EXPECT_GT(all.step, 4.5 * even);
  // Of the first tokens, which are of the step that is over by then.
  EXPECT_EQ(all.dropped, 4 * 2);
  run.graph.wanted = 3;
  const ServersTimes some = Trained(link, run);
  EXPECT_LT(some.step, 1.1 * even);
  // The slow one's gradients come when their step is over.
  EXPECT_GT(some.dropped, 0);
  EXPECT_EQ(some.applied, 20 * 3 * 2);
}

TEST(SimulatedServersTest, TheSeedDecidesHowWorkVaries) {
  ServersRun run = TrainingOf(3, 2, 2);
  run.jitter = 0.5;
  const ServersTimes once = Trained(FreeLink(), run);
  EXPECT_EQ(Trained(FreeLink(), run).step, once.step);
  run.seed = 9;
  EXPECT_NE(Trained(FreeLink(), run).step, once.step);
}

TEST(SimulatedServersTest, WhatNoTrainingIsIsAnError) {
  ServersRun few = TrainingOf(2, 1, 3), none = TrainingOf(2, 0, 2),
             slow = TrainingOf(2, 1, 2), back = TrainingOf(2, 1, 2);
  slow.slow = {1};
  back.jitter = 2;
  for (const ServersRun& run : {few, none, slow, back}) {
    EXPECT_TRUE(
        absl::IsInvalidArgument(SimulateServers(FreeLink(), run).status()));
  }
}

}  // namespace
}  // namespace headrace::simulator
