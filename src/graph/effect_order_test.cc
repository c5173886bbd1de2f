#include "graph/effect_order.h"

#include <gtest/gtest.h>

#include <map>

#include "graph/export.h"
#include "graph/import.h"
#include "op/registry.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace headrace {
namespace {

// A function in which a variable is read, changed and read, another one read.
FunctionPtr Counter(Graph* graph) {
  StatusOr<std::string> bytes = GraphDefFromText(R"(
    library { function {
      signature { name: "count"
        input_arg { name: "v" type: DT_RESOURCE }
        input_arg { name: "w" type: DT_RESOURCE }
        output_arg { name: "r" type: DT_FLOAT } is_stateful: true }
      node_def { name: "one" op: "Const"
        attr { key: "dtype" value { type: DT_FLOAT } }
        attr { key: "value" value { tensor {
          dtype: DT_FLOAT tensor_shape {} float_val: 1 } } } }
      node_def { name: "before" op: "ReadVariableOp" input: "v"
        attr { key: "dtype" value { type: DT_FLOAT } } }
      node_def { name: "add" op: "AssignAddVariableOp" input: "v"
        input: "one:output:0" attr { key: "dtype" value { type: DT_FLOAT } } }
      node_def { name: "other" op: "ReadVariableOp" input: "w"
        attr { key: "dtype" value { type: DT_FLOAT } } }
      node_def { name: "after" op: "ReadVariableOp" input: "v"
        attr { key: "dtype" value { type: DT_FLOAT } } }
      ret { key: "r" value: "after:value:0" } } })");
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_TRUE(ImportGraphBytes(*bytes, {}, graph, nullptr).ok());
  return graph->library()->Find("count");
}

TEST(EffectOrder, WhatTouchesOneResourceIsOrdered) {
  const auto graph = std::make_shared<Graph>();
  const FunctionPtr f = Counter(graph.get());
  ASSERT_NE(f, nullptr);
  const Effects effects = EffectsOf(*f);
  const auto names_of = [](const std::vector<Node*>& nodes) {
    std::vector<std::string> found;
    for (const Node* n : nodes) found.push_back(n->name());
    return found;
  };
  const auto names = [&](const char* node) {
    return names_of(effects.after[f->body->FindNode(node)->id()]);
  };
  EXPECT_EQ(names("before"), std::vector<std::string>());
  EXPECT_EQ(names("add"), std::vector<std::string>{"before"});
  EXPECT_EQ(names("after"), std::vector<std::string>{"add"});
  EXPECT_EQ(names("other"), std::vector<std::string>());
  EXPECT_EQ(names_of(effects.all),
            (std::vector<std::string>{"before", "add", "other", "after"}));
}

// The graph of a function says by nodes alone what a call of it does.
TEST(EffectOrder, GraphsOfFunctionsWaitForTheirEffects) {
  const auto graph = std::make_shared<Graph>();
  const FunctionPtr f = Counter(graph.get());
  ASSERT_NE(f, nullptr);
  tensorflow::GraphDef def;
  const ExportOptions options = {.effects_of = f.get(),
                                 .nothing = *LookUpOp("NoOp")};
  ASSERT_TRUE(ExportGraph(*f->body, options, &def).ok());
  std::map<std::string, std::vector<std::string>> controls;
  for (const tensorflow::NodeDef& n : def.node()) {
    auto& of_node = controls[n.name()];
    for (const std::string& in : n.input()) {
      if (in[0] == '^') of_node.push_back(in.substr(1));
    }
  }
  using Names = std::vector<std::string>;
  EXPECT_EQ(controls["add"], Names{"before"});
  EXPECT_EQ(controls["after"], (Names{"add"}));
  EXPECT_EQ(controls["NoOp"], (Names{"add", "after", "before", "other"}));
}

}  // namespace
}  // namespace headrace
