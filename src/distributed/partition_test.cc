#include "distributed/partition.h"

#include "graph/export.h"
#include "graph/import.h"
#include "gtest/gtest.h"
#include "op/registry.h"

namespace headrace::distributed {
namespace {

constexpr char kPs0[] = "/job:ps/replica:0/task:0/device:CPU:0";
constexpr char kWorker0[] = "/job:worker/replica:0/task:0/device:CPU:0";

Devices ThreeTasks() {
  Devices devices;
  uint64_t incarnation = 0x10;
  for (const char* name :
       {kWorker0, kPs0, "/job:ps/replica:0/task:1/device:CPU:0"}) {
    ClusterDevice d;
    EXPECT_TRUE(DeviceName::Parse(name, &d.name));
    d.incarnation = incarnation++;
    devices.all.push_back(d);
  }
  devices.standard = devices.all[0].name;
  return devices;
}

struct Nodes {
  Edge Add(const char* name, const char* op, std::vector<Edge> in,
           const AttrMap& attrs, const char* device = "",
           std::vector<Node*> after = {}) {
    std::vector<DType> types;
    for (const Edge& e : in) types.push_back(e.node->output_type(e.index));
    auto resolved = ResolveOp(*FindOp(op), types, attrs);
    EXPECT_TRUE(resolved.ok()) << resolved.status();
    auto node = graph->AddNode(name, *resolved, in, after);
    EXPECT_TRUE(node.ok()) << node.status();
    (*node)->set_device(device);
    return {*node, 0};
  }
  Edge Constant(const char* name, const char* device = "") {
    return Add(name, "Const", {},
               {{"dtype", DType::kFloat}, {"value", Tensor::Scalar<float>(1)}},
               device);
  }
  Edge Variable(const char* name, const char* device) {
    return Add(name, "VarHandleOp", {},
               {{"dtype", DType::kFloat}, {"shape", Shape()}}, device);
  }
  StatusOr<std::vector<Part>> Cut(std::vector<Edge> feeds,
                                  std::vector<Edge> fetches,
                                  std::vector<Node*> targets = {},
                                  bool soft = false) {
    EXPECT_TRUE(ExportGraph(*graph, {}, &def).ok());
    Devices devices = ThreeTasks();
    devices.soft = soft;
    return Partition({graph.get(), &def, feeds, fetches, targets}, devices);
  }

  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  tensorflow::GraphDef def;
};

std::string Ops(const Part& part) {
  std::string all;
  for (const auto& n : part.graph.node()) {
    absl::StrAppend(&all, all.empty() ? "" : " ", n.op());
  }
  return all;
}

std::string Attr(const Part& part, const char* op, const char* attr) {
  for (const auto& n : part.graph.node()) {
    if (n.op() != op) continue;
    const auto& value = n.attr().at(attr);
    return value.s().empty() ? absl::StrCat(value.i()) : value.s();
  }
  return "no such op";
}

TEST(PartitionTest, ValuesCrossOnce) {
  Nodes g;
  Edge x = g.Add("x", "Placeholder", {}, {{"dtype", DType::kFloat}}, kPs0);
  Edge n = g.Add("n", "Neg", {x}, {}, kPs0);
  Edge a = g.Add("a", "Mul", {n, n}, {}, kWorker0);
  Edge b = g.Add("b", "AddV2", {a, n}, {}, "/job:worker");
  auto parts = g.Cut({x}, {b, n, x});
  ASSERT_TRUE(parts.ok()) << parts.status();
  ASSERT_EQ(parts->size(), 2);
  const Part &ps = (*parts)[0], &worker = (*parts)[1];
  EXPECT_EQ(ps.task.ToString(), "/job:ps/replica:0/task:0");
  EXPECT_EQ(Ops(ps), "_Recv Neg _Send _Send");
  EXPECT_EQ(Ops(worker), "_Recv Mul AddV2 _Send");
  ASSERT_EQ(ps.feeds.size(), 1);
  EXPECT_EQ(ps.feeds[0].second,
            absl::StrCat(kPs0, ";0000000000000011;", kPs0, ";x:0;0:0"));
  // The third fetch is fed.
  ASSERT_EQ(ps.fetches.size(), 1);
  EXPECT_EQ(ps.fetches[0].first, 1);
  ASSERT_EQ(worker.fetches.size(), 1);
  EXPECT_EQ(worker.fetches[0].first, 0);
  EXPECT_EQ(Attr(worker, "_Recv", "send_device"), kPs0);
  EXPECT_EQ(Attr(worker, "_Recv", "recv_device"), kWorker0);
  EXPECT_EQ(Attr(worker, "_Recv", "send_device_incarnation"), "17");
  EXPECT_EQ(Attr(worker, "_Recv", "tensor_name"),
            Attr(ps, "_Send", "tensor_name"));
  for (const Part& part : *parts) {
    for (const auto& node : part.graph.node()) {
      EXPECT_EQ(node.device(), part.task.ToString() + "/device:CPU:0");
    }
    Graph read;
    EXPECT_EQ(ImportGraphDef(part.graph, {}, &read, nullptr), OkStatus());
  }
}

TEST(PartitionTest, WaitingCrossesAsAnEmptyTensor) {
  Nodes g;
  Edge v = g.Variable("v", kPs0);
  Edge init = g.Add("init", "AssignVariableOp", {v, g.Constant("one")}, {});
  Edge read = g.Add("read", "ReadVariableOp", {v}, {{"dtype", DType::kFloat}},
                    "", {init.node});
  Edge c = g.Add("c", "Neg", {g.Constant("two", kWorker0)}, {}, kWorker0,
                 {init.node, read.node});
  auto parts = g.Cut({}, {c});
  ASSERT_TRUE(parts.ok()) << parts.status();
  ASSERT_EQ(parts->size(), 2);
  // The constant goes where it is read.
  EXPECT_EQ(Ops((*parts)[0]),
            "VarHandleOp Const AssignVariableOp ReadVariableOp Const _Send "
            "Const _Send");
  EXPECT_EQ(Ops((*parts)[1]), "Const _Recv Identity _Recv Identity Neg _Send");
}

TEST(PartitionTest, WhatSharesAResourceIsTogether) {
  Nodes g;
  Edge v = g.Variable("v", "/job:ps/task:1");
  Edge read = g.Add("read", "ReadVariableOp", {v}, {{"dtype", DType::kFloat}});
  Edge near = g.Add("near", "Neg", {read},
                    {{"_class", std::vector<std::string>{"loc:@v"}}});
  Edge far = g.Add("far", "Neg", {near}, {});
  auto parts = g.Cut({}, {far});
  ASSERT_TRUE(parts.ok()) << parts.status();
  EXPECT_EQ((*parts)[0].task.ToString(), "/job:ps/replica:0/task:1");
  EXPECT_EQ(Ops((*parts)[0]), "VarHandleOp ReadVariableOp Neg _Send");
  // A task alone needs no ends but those of its client.
  parts = g.Cut({}, {near});
  ASSERT_TRUE(parts.ok()) << parts.status();
  ASSERT_EQ(parts->size(), 1);
  EXPECT_EQ(Ops((*parts)[0]), "VarHandleOp ReadVariableOp Neg _Send");
}

TEST(PartitionTest, DevicesThatAreNotThereAreErrors) {
  Nodes g;
  Edge a = g.Constant("a", "/job:ps/task:7");
  EXPECT_EQ(
      g.Cut({}, {a}).status(),
      InvalidArgument(
          "Cannot assign a device for operation a: {{node a}} was explicitly "
          "assigned to /job:ps/task:7 but available devices are [ ",
          kPs0, ", /job:ps/replica:0/task:1/device:CPU:0, ", kWorker0,
          " ]. Make sure the device specification refers to a valid "
          "device.\n\t [[a]]"));
  Edge b = g.Constant("b", "/job:ps/task:1/device:GPU:0");
  EXPECT_FALSE(g.Cut({}, {b}).ok());
  EXPECT_TRUE(g.Cut({}, {b}, {}, /*soft=*/true).ok());
  Edge c = g.Constant("c", "/jobs:ps");
  EXPECT_EQ(g.Cut({}, {c}).status(),
            InvalidArgument("Malformed device specification '/jobs:ps' in "
                            "node: {{node c}}\n\t [[c]]"));
  Edge v = g.Variable("v", "/job:ps/task:0");
  Edge w = g.Variable("w", "/job:ps/task:1");
  Edge read = g.Add("read", "ReadVariableOp", {v},
                    {{"dtype", DType::kFloat},
                     {"_class", std::vector<std::string>{"loc:@w"}}});
  const Status s = g.Cut({}, {read, Edge{w.node, 0}}).status();
  EXPECT_EQ(s.message(),
            "Cannot colocate nodes {{colocation_node read}} and "
            "{{colocation_node w}}: Cannot merge devices with incompatible "
            "tasks: '/job:ps/task:1' and '/job:ps/task:0'\n\t [[read]]");
}

// What uses a resource goes there, whatever it names.
TEST(PartitionTest, ResourcesSayWhereTheyAre) {
  Nodes g;
  Edge v = g.Variable("v", "/job:ps/task:0");
  Edge read = g.Add("read", "ReadVariableOp", {v}, {{"dtype", DType::kFloat}},
                    kWorker0);
  auto parts = g.Cut({}, {read});
  ASSERT_TRUE(parts.ok()) << parts.status();
  ASSERT_EQ(parts->size(), 1);
  EXPECT_EQ((*parts)[0].task.ToString(), "/job:ps/replica:0/task:0");
}

TEST(PartitionTest, LoopsLieOnOneTask) {
  for (const char* device : {kWorker0, kPs0}) {
    Nodes g;
    const AttrMap enter{{"frame_name", "turns"}};
    Edge one = g.Constant("one", kWorker0);
    Edge in = g.Add("enter", "Enter", {one}, enter, kWorker0);
    Edge turn = g.Add("turn", "Neg", {in}, {}, device);
    Edge out = g.Add("exit", "Exit", {turn}, {}, device);
    const Status s = g.Cut({}, {g.Add("end", "Neg", {out}, {}, kPs0)}).status();
    if (device == kWorker0) {
      EXPECT_EQ(s, OkStatus());
    } else {
      EXPECT_TRUE(absl::IsUnimplemented(s)) << s;
      EXPECT_NE(s.message().find("The loop 'turns'"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace headrace::distributed
