#include "command/graph/upgraded.h"

#include "formats/proto_text.h"
#include "graph/graph.h"
#include "graph/import.h"
#include "gtest/gtest.h"

namespace headrace::command {
namespace {

tensorflow::GraphDef Read(const char* text) {
  tensorflow::GraphDef graph;
  const auto error = ReadProtoText(text, &graph);
  EXPECT_FALSE(error) << error->message;
  return graph;
}

Status Import(const tensorflow::GraphDef& graph) {
  auto made = std::make_shared<Graph>();
  return ImportGraphDef(graph, {}, made.get(), nullptr);
}

TEST(Upgrade, OpsOfFunctionsAreReplacedToo) {
  tensorflow::GraphDef graph = Read(R"(
    versions { producer: 5 }
    library { function {
      signature { name: "f" input_arg { name: "x" type: DT_FLOAT }
                  output_arg { name: "v" type: DT_FLOAT } }
      node_def { name: "t" op: "TopK" input: "x"
                 attr { key: "k" value { i: 2 } }
                 attr { key: "T" value { type: DT_FLOAT } } }
      ret { key: "v" value: "t:values:0" } } })");
  const auto upgrade = UpgradeGraph(&graph);
  ASSERT_TRUE(upgrade.ok()) << upgrade.status();
  EXPECT_EQ(upgrade->replaced, 1);
  const auto& nodes = graph.library().function(0).node_def();
  ASSERT_EQ(nodes.size(), 2);
  EXPECT_EQ(nodes[0].op(), "TopKV2");
  EXPECT_EQ(nodes[0].input(1), "t/k:output:0");
  EXPECT_TRUE(nodes[0].attr().at("sorted").b());  // the default
  EXPECT_EQ(graph.versions().producer(), kGraphVersion);
  EXPECT_TRUE(Import(graph).ok()) << Import(graph);
}

TEST(Upgrade, AllThatHasNoReplacementIsNamed) {
  tensorflow::GraphDef graph = Read(R"(
    versions { producer: 1 }
    node { name: "a" op: "NoSuchA" } node { name: "b" op: "NoSuchB" })");
  const Status s = UpgradeGraph(&graph).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(s.message(),
            "ops without a replacement: NoSuchA (unknown), NoSuchB (unknown)");
}

TEST(Upgrade, NodesWithTooFewInputsAreErrors) {
  for (const char* op : {"TopK", "Conv3DBackpropInput", "QuantizeAndDequantize",
                         "BatchNormWithGlobalNormalization"}) {
    tensorflow::GraphDef graph = Read("node { name: 'a' }");
    graph.mutable_node(0)->set_op(op);
    EXPECT_EQ(UpgradeGraph(&graph).status().code(),
              absl::StatusCode::kInvalidArgument)
        << op;
  }
}

}  // namespace
}  // namespace headrace::command
