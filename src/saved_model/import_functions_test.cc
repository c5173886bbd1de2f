#include "saved_model/import_functions.h"

#include <google/protobuf/arena.h>
#include <google/protobuf/text_format.h>

#include <memory>

#include "gtest/gtest.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace headrace {
namespace {

// A graph that calls `f`, which calls `g`; nobody calls `idle`.
constexpr char kCalls[] = R"(
  node { name: "call" op: "PartitionedCall"
         attr { key: "f" value { func { name: "f" } } } }
  library {
    function { signature { name: "idle" } }
    function { signature { name: "g" } }
    function { signature { name: "f" }
               node_def { name: "call" op: "PartitionedCall"
                          attr { key: "f" value { func { name: "g" } } } } }
    gradient { function_name: "idle" gradient_func: "g" }
    gradient { function_name: "f" gradient_func: "g" }
    registered_gradients { registered_op_type: "r" gradient_func: "g" }
  })";

// On an arena or, without one, anywhere: messages are moved in both.
void ExpectReachedAlone(google::protobuf::Arena* arena) {
  using tensorflow::GraphDef;
  auto* def = google::protobuf::Arena::CreateMessage<GraphDef>(arena);
  const std::unique_ptr<GraphDef> owner(arena ? nullptr : def);
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(kCalls, def));
  ASSERT_TRUE(GiveNewNames(def, "folder").ok());
  const auto& library = def->library();
  ASSERT_EQ(library.function_size(), 2);
  const auto& f = library.function(0);
  const auto& g = library.function(1);
  EXPECT_EQ(def->node(0).attr().at("f").func().name(), f.signature().name());
  EXPECT_EQ(f.node_def(0).attr().at("f").func().name(), g.signature().name());
  EXPECT_NE(f.signature().name(), "f");
  ASSERT_EQ(library.gradient_size(), 1);
  EXPECT_EQ(library.gradient(0).function_name(), f.signature().name());
  EXPECT_EQ(library.gradient(0).gradient_func(), g.signature().name());
  EXPECT_EQ(library.registered_gradients_size(), 0);
}

TEST(ImportFunctions, ReachedFunctionsAloneAreKept) {
  ExpectReachedAlone(nullptr);
}

TEST(ImportFunctions, ReachedFunctionsOfAnArenaAloneAreKept) {
  google::protobuf::Arena arena;
  ExpectReachedAlone(&arena);
}

}  // namespace
}  // namespace headrace
