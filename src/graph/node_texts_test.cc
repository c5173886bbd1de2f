#include "graph/node_texts.h"

#include "graph/graph.h"
#include "graph/import.h"
#include "gtest/gtest.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace headrace {
namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;

GraphDef SmallGraph() {
  GraphDef def;
  def.mutable_versions()->set_producer(2474);
  for (const char* name : {"a", "b", "c"}) {
    NodeDef* n = def.add_node();
    n->set_name(name);
    n->set_op(name[0] == 'a' ? "Placeholder" : "Neg");
    if (name[0] == 'a') {
      (*n->mutable_attr())["dtype"].set_type(tensorflow::DT_FLOAT);
    } else {
      (*n->mutable_attr())["T"].set_type(tensorflow::DT_FLOAT);
      n->add_input(name[0] == 'b' ? "a" : "b:0");
      n->add_input("^a");
    }
    n->set_device("/device:CPU:0");
  }
  return def;
}

TEST(NodeTexts, PointIntoTheBytes) {
  const GraphDef def = SmallGraph();
  const std::string bytes = def.SerializeAsString();
  NodeTexts texts;
  std::string rest;
  ASSERT_TRUE(texts.AddFromGraph(bytes, &rest));
  ASSERT_EQ(texts.nodes().size(), 3u);
  for (int i = 0; i < 3; ++i) {
    const NodeText& n = texts.nodes()[i];
    EXPECT_EQ(n.name, def.node(i).name());
    EXPECT_EQ(n.op, def.node(i).op());
    EXPECT_EQ(n.device, "/device:CPU:0");
    EXPECT_EQ(n.bytes, def.node(i).SerializeAsString());
    ASSERT_EQ(n.num_inputs, def.node(i).input_size());
    for (int k = 0; k < n.num_inputs; ++k) {
      EXPECT_EQ(texts.inputs_of(n)[k], def.node(i).input(k));
    }
    NodeDef attrs;
    ASSERT_TRUE(
        attrs.ParseFromArray(n.attrs.data(), static_cast<int>(n.attrs.size())));
    EXPECT_EQ(attrs.attr_size(), 1);
  }
  GraphDef others;
  ASSERT_TRUE(others.ParseFromString(rest));
  EXPECT_EQ(others.node_size(), 0);
  EXPECT_EQ(others.versions().producer(), 2474);
}

// Whatever a scan does not read is left to the full parser.
TEST(NodeTexts, LeaveUnusualBytesAlone) {
  std::string rest;
  GraphDef def = SmallGraph();
  def.mutable_node(1)
      ->mutable_experimental_debug_info()
      ->add_original_node_names("x");
  EXPECT_FALSE(NodeTexts().AddFromGraph(def.SerializeAsString(), &rest));
  def = SmallGraph();
  def.mutable_node(1)->set_name("na\xc3\xafve");
  EXPECT_FALSE(NodeTexts().AddFromGraph(def.SerializeAsString(), &rest));
  const std::string bytes = SmallGraph().SerializeAsString();
  for (size_t n = 1; n < bytes.size(); ++n) {  // cut off anywhere
    GraphDef part;
    rest.clear();
    if (!part.ParseFromArray(bytes.data(), static_cast<int>(n))) {
      NodeTexts texts;
      GraphDef others;
      EXPECT_FALSE(texts.AddFromGraph(bytes.substr(0, n), &rest) &&
                   others.ParseFromString(rest));
    }
  }
}

// Both ways make the same graph, also where attributes are shared or large.
TEST(NodeTexts, GraphsAreTheSame) {
  GraphDef def = SmallGraph();
  for (int i = 0; i < 2; ++i) {
    NodeDef* n = def.add_node();
    n->set_name(i ? "k1" : "k0");
    n->set_op("Const");
    (*n->mutable_attr())["dtype"].set_type(tensorflow::DT_INT32);
    auto* t = (*n->mutable_attr())["value"].mutable_tensor();
    t->set_dtype(tensorflow::DT_INT32);
    t->mutable_tensor_shape();
    t->add_int_val(7 + i);
  }
  auto from_bytes = std::make_shared<Graph>();
  auto from_def = std::make_shared<Graph>();
  Status s =
      ImportGraphBytes(def.SerializeAsString(), {}, from_bytes.get(), nullptr);
  ASSERT_TRUE(s.ok()) << s;
  ASSERT_TRUE(ImportGraphDef(def, {}, from_def.get(), nullptr).ok());
  ASSERT_EQ(from_bytes->num_nodes(), 5);
  for (int i = 0; i < 5; ++i) {
    const Node *a = from_bytes->node(i), *b = from_def->node(i);
    EXPECT_EQ(a->name(), b->name());
    EXPECT_EQ(a->device(), b->device());
    EXPECT_EQ(a->num_inputs(), b->num_inputs());
    EXPECT_EQ(a->control_inputs().size(), b->control_inputs().size());
    EXPECT_EQ(a->op().name(), b->op().name());
  }
  EXPECT_EQ(from_bytes->node(1)->op_ptr(), from_bytes->node(2)->op_ptr());
  EXPECT_EQ(from_bytes->node(3)->constant()->scalar<int32_t>(), 7);
  EXPECT_EQ(from_bytes->node(4)->constant()->scalar<int32_t>(), 8);
  // A mistake is found by the same words.
  def.mutable_node(2)->set_input(0, "b:3");
  auto g1 = std::make_shared<Graph>(), g2 = std::make_shared<Graph>();
  Status s1 = ImportGraphBytes(def.SerializeAsString(), {}, g1.get(), nullptr);
  Status s2 = ImportGraphDef(def, {}, g2.get(), nullptr);
  EXPECT_FALSE(s1.ok());
  EXPECT_EQ(s1, s2);
}

}  // namespace
}  // namespace headrace
