#include "saved_model/loop_counters.h"

#include <google/protobuf/text_format.h>

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow/core/framework/function.pb.h"

namespace headrace {
namespace {

using tensorflow::FunctionDef;
using tensorflow::MetaGraphDef;

// A loop over one float, in a function that gives its result. The model has a
// function by the name that stands for `%s`.
constexpr char kLoop[] = R"(
  graph_def { library {
    function { signature { name: "f" input_arg { name: "x" type: DT_FLOAT }
                           output_arg { name: "y" type: DT_FLOAT } }
               node_def { name: "while/loop_counter" op: "NoOp" }
               node_def { name: "while" op: "StatelessWhile"
                 input: "x" input: "^while/loop_counter"
                 attr { key: "T" value { list { type: DT_FLOAT } } }
                 attr { key: "output_shapes" value { list { shape {
                     dim { size: 3 } } } } }
                 attr { key: "cond" value { func { name: "cond" } } }
                 attr { key: "body" value { func { name: "body" } } } }
               ret { key: "y" value: "while:output:0" } }
    function { signature { name: "cond"
                           input_arg { name: "v" type: DT_FLOAT }
                           output_arg { name: "go_on" type: DT_BOOL } }
               ret { key: "go_on" value: "v" } }
    function { signature { name: "body"
                           input_arg { name: "loop_counter" type: DT_FLOAT }
                           output_arg { name: "next" type: DT_FLOAT } }
               arg_attr { key: 0 value { attr { key: "_user_specified_name"
                   value { s: "v" } } } }
               ret { key: "next" value: "loop_counter" } }
  } }
  object_graph_def { concrete_functions { key: "%s" value { } } })";

MetaGraphDef Parsed(const std::string& of_model) {
  std::string text = kLoop;
  text.replace(text.find("%s"), 2, of_model);
  MetaGraphDef model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &model));
  return model;
}

std::vector<std::string> Names(const auto& fields) {
  std::vector<std::string> names;
  for (const auto& f : fields) names.push_back(f.name());
  return names;
}

using Texts = std::vector<std::string>;

TEST(LoopCounters, LoopsGetACounterAndABound) {
  MetaGraphDef model = Parsed("f");
  CountLoops(&model);
  const auto& library = model.graph_def().library();
  ASSERT_EQ(library.function_size(), 3);
  const FunctionDef& f = library.function(0);
  EXPECT_EQ(Names(f.node_def()),
            (Texts{"while/loop_counter", "while/loop_counter_1",
                   "while/maximum_iterations", "while"}));
  EXPECT_EQ(f.node_def(1).attr().at("value").tensor().int_val(0), 0);
  EXPECT_EQ(f.node_def(2).attr().at("value").tensor().int_val(0), -1);
  const auto& loop = f.node_def(3);
  EXPECT_EQ(
      Texts(loop.input().begin(), loop.input().end()),
      (Texts{"while/loop_counter_1:output:0",
             "while/maximum_iterations:output:0", "x", "^while/loop_counter"}));
  EXPECT_EQ(f.ret().at("y"), "while:output:2");
  const auto& types = loop.attr().at("T").list();
  ASSERT_EQ(types.type_size(), 3);
  EXPECT_EQ(types.type(1), tensorflow::DT_INT32);
  EXPECT_EQ(types.type(2), tensorflow::DT_FLOAT);
  const auto& shapes = loop.attr().at("output_shapes").list();
  ASSERT_EQ(shapes.shape_size(), 3);
  EXPECT_EQ(shapes.shape(1).dim_size(), 0);
  EXPECT_EQ(shapes.shape(2).dim_size(), 1);

  const FunctionDef& cond = library.function(1);
  EXPECT_EQ(Names(cond.signature().input_arg()),
            (Texts{"loop_counter", "maximum_iterations", "v"}));
  EXPECT_EQ(Names(cond.signature().output_arg()), (Texts{"go_on"}));
  const FunctionDef& body = library.function(2);
  EXPECT_EQ(Names(body.signature().input_arg()),
            (Texts{"loop_counter_1", "maximum_iterations", "loop_counter"}));
  const Texts results = Names(body.signature().output_arg());
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[2], "next");
  EXPECT_EQ(body.ret().at(results[0]), "loop_counter/next:z:0");
  EXPECT_EQ(body.ret().at(results[1]), "maximum_iterations");
  EXPECT_EQ(body.arg_attr().at(2).attr().at("_user_specified_name").s(), "v");
}

TEST(LoopCounters, ACountedLoopStaysAsItIs) {
  MetaGraphDef model = Parsed("f");
  CountLoops(&model);
  const std::string once = model.DebugString();
  CountLoops(&model);
  EXPECT_EQ(model.DebugString(), once);
}

// Who calls the body by its name finds the function that it was.
TEST(LoopCounters, AFunctionOfTheModelIsCopied) {
  MetaGraphDef model = Parsed("body");
  CountLoops(&model);
  const auto& library = model.graph_def().library();
  ASSERT_EQ(library.function_size(), 4);
  EXPECT_EQ(library.function(2).signature().input_arg_size(), 1);
  EXPECT_EQ(library.function(3).signature().input_arg_size(), 3);
  EXPECT_EQ(library.function(0).node_def(3).attr().at("body").func().name(),
            "body_counted");
  EXPECT_EQ(library.function(3).signature().name(), "body_counted");
}

TEST(LoopCounters, LoopsOfUnknownFunctionsStay) {
  MetaGraphDef model = Parsed("f");
  model.mutable_graph_def()
      ->mutable_library()
      ->mutable_function()
      ->RemoveLast();
  const std::string before = model.DebugString();
  CountLoops(&model);
  EXPECT_EQ(model.DebugString(), before);
}

}  // namespace
}  // namespace headrace
