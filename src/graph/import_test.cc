#include "graph/import.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "graph/export.h"
#include "graph/function.h"
#include "tensor/tensor_proto.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace headrace {
namespace {

constexpr char kSmall[] = R"(
  node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
  node { name: "y" op: "Neg" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
  node { name: "z" op: "AddV2" input: "y" input: "x:0" input: "^y"
         attr { key: "T" value { type: DT_FLOAT } } }
  versions { producer: 1000 })";

std::string Small() { return *GraphDefFromText(kSmall); }

Status ImportText(const std::string& text, Graph* graph) {
  StatusOr<std::string> bytes = GraphDefFromText(text);
  if (!bytes.ok()) return bytes.status();
  return ImportGraphBytes(*bytes, {}, graph, nullptr);
}

TEST(ImportTest, KeepsNodesEdgesAndVersions) {
  auto graph = std::make_shared<Graph>();
  ASSERT_TRUE(ImportGraphBytes(Small(), {}, graph.get(), nullptr).ok());
  ASSERT_EQ(graph->num_nodes(), 3);
  Node* z = graph->FindNode("z");
  EXPECT_EQ(z->input(0).node->name(), "y");
  EXPECT_EQ(z->control_inputs()[0]->name(), "y");
  EXPECT_EQ(graph->versions().producer, 1000);
}

TEST(ImportTest, OneErrorNamesAllOpsThatAreMissing) {
  auto graph = std::make_shared<Graph>();
  const Status s = ImportText(R"(
    library { function { signature { name: "f" }
      node_def { name: "a" op: "NoSuchB" } node_def { name: "b" op: "NoOp" } } }
    node { name: "x" op: "NoSuchA" }
    node { name: "y" op: "f" }
    node { name: "z" op: "AllToAll" })",
                              graph.get());
  EXPECT_TRUE(absl::IsNotFound(s)) << s;
  EXPECT_TRUE(absl::StartsWith(s.message(), "Op type not registered 'NoSuch"));
  for (const char* text :
       {"NoSuchA", "NoSuchB", "Not registered of what the graph needs are: ",
        "AllToAll is an op of TensorFlow that Headrace does not have: it runs "
        "on TPUs alone"}) {
    EXPECT_TRUE(absl::StrContains(s.message(), text)) << text << ": " << s;
  }
  EXPECT_EQ(graph->num_nodes(), 0);
  // One alone is said as TensorFlow says it.
  const Status one =
      ImportText(R"(node { name: "x" op: "NoSuchA" })", graph.get());
  EXPECT_FALSE(absl::StrContains(one.message(), "Not registered of")) << one;
}

TEST(ImportTest, SharesOpsOfNodesAlike) {
  auto graph = std::make_shared<Graph>();
  ASSERT_TRUE(ImportText(R"(
      node { name: "x" op: "Placeholder"
             attr { key: "dtype" value { type: DT_FLOAT } } }
      node { name: "a" op: "Neg" input: "x"
             attr { key: "T" value { type: DT_FLOAT } } }
      node { name: "b" op: "Neg" input: "a"
             attr { key: "T" value { type: DT_FLOAT } } })",
                         graph.get())
                  .ok());
  EXPECT_EQ(graph->FindNode("a")->op_ptr(), graph->FindNode("b")->op_ptr());
}

TEST(ImportTest, ImportedNamesAreTaken) {
  auto graph = std::make_shared<Graph>();
  ASSERT_TRUE(ImportGraphBytes(Small(), {}, graph.get(), nullptr).ok());
  EXPECT_EQ(graph->UniqueName("Z"), "Z_1");  // without regard to case
  EXPECT_EQ(graph->UniqueName("y"), "y_1");
  EXPECT_EQ(graph->UniqueName("w"), "w");
  const Status again = ImportGraphBytes(Small(), {}, graph.get(), nullptr);
  EXPECT_EQ(again.message(), "Node name 'x' already exists in the Graph");
  // Names of an import that failed are free.
  EXPECT_FALSE(ImportText(R"(
      node { name: "n" op: "NoOp" }
      node { name: "x" op: "NoOp" })",
                          graph.get())
                   .ok());
  EXPECT_EQ(graph->num_nodes(), 3);
  EXPECT_EQ(graph->UniqueName("n"), "n");
}

TEST(ImportTest, ErrorLeavesTheGraphAsItWas) {
  auto graph = std::make_shared<Graph>();
  Status s = ImportText(R"(
      node { name: "n" op: "NoOp" }
      node { name: "x" op: "Identity" input: "nobody"
             attr { key: "T" value { type: DT_FLOAT } } })",
                        graph.get());
  EXPECT_EQ(s.message(), "Node 'x': Unknown input node 'nobody'");
  EXPECT_EQ(graph->num_nodes(), 0);
}

TEST(ImportTest, ChecksVersionsBeforeNodes) {
  auto graph = std::make_shared<Graph>();
  Status s = ImportText("versions { min_consumer: 200000 }", graph.get());
  EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument);
}

TEST(ImportTest, ExportGivesTheSameGraph) {
  auto graph = std::make_shared<Graph>();
  ASSERT_TRUE(ImportGraphBytes(Small(), {}, graph.get(), nullptr).ok());
  tensorflow::GraphDef first, second;
  ASSERT_TRUE(ExportGraph(*graph, {}, &first).ok());
  auto again = std::make_shared<Graph>();
  ASSERT_TRUE(ImportGraphDef(first, {}, again.get(), nullptr).ok());
  ASSERT_TRUE(ExportGraph(*again, {}, &second).ok());
  EXPECT_EQ(first.DebugString(), second.DebugString());
}

TEST(ImportTest, EveryCutAndFlipIsAnErrorOrAGraph) {
  const std::string bytes = Small();
  for (size_t n = 0; n <= bytes.size(); ++n) {
    auto graph = std::make_shared<Graph>();
    ImportGraphBytes(StringView(bytes).substr(0, n), {}, graph.get(), nullptr)
        .IgnoreError();
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      auto graph = std::make_shared<Graph>();
      ImportGraphBytes(damaged, {}, graph.get(), nullptr).IgnoreError();
    }
  }
}

TEST(TensorProtoTest, RoundTrips) {
  for (const Tensor& t :
       {Tensor::Scalar<float>(1.5f), Tensor::Vector<int64_t>({1, -2, 3}),
        Tensor::Scalar<std::string>("ab"), Tensor::Vector<bool>({true, false}),
        Tensor::Vector<int32_t>({})}) {
    tensorflow::TensorProto proto;
    ASSERT_TRUE(TensorToProto(t, &proto).ok());
    StatusOr<Tensor> back = TensorFromProto(proto);
    ASSERT_TRUE(back.ok());
    EXPECT_TRUE(AttrEquals(t, *back));
  }
}

TEST(TensorProtoTest, RefusesContentOfAnotherSizeAndHugeSplats) {
  tensorflow::TensorProto proto;
  proto.set_dtype(tensorflow::DT_FLOAT);
  proto.mutable_tensor_shape()->add_dim()->set_size(2);
  proto.set_tensor_content("12345");
  EXPECT_FALSE(TensorFromProto(proto).ok());
  proto.clear_tensor_content();
  proto.add_float_val(1);
  EXPECT_TRUE(TensorFromProto(proto).ok());
  proto.mutable_tensor_shape()->mutable_dim(0)->set_size(int64_t{1} << 50);
  EXPECT_FALSE(TensorFromProto(proto).ok());
}

}  // namespace
}  // namespace headrace
