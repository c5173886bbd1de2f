#include "saved_model/loaded_model.h"

#include "gtest/gtest.h"

namespace headrace {
namespace {

constexpr char kGolden[] = HR_GOLDEN_DIR "/saved_models/plain";

std::string SignatureName(const LoadedModel& model, const char* key) {
  const int map = model.Child(0, "signatures");
  return model.object(model.Child(map, key))
      .bare_concrete_function()
      .concrete_function_name();
}

TEST(LoadedModel, RunsASignature) {
  auto model = LoadedModel::Load(kGolden, {});
  ASSERT_TRUE(model.ok()) << model.status();
  auto f = (*model)->function(SignatureName(**model, "serving_default"));
  ASSERT_NE(f, nullptr);
  ValueList out;
  const Value x(Tensor::Vector<float>({1, 2}));
  ASSERT_TRUE(f->Call({&x, 1}, &out).ok());
  ASSERT_EQ(out.size(), 2u);  // twice, y
  EXPECT_EQ(out[0].tensor().data<float>()[1], 4);
  EXPECT_EQ(out[1].tensor().data<float>()[1], 7);
  // What the model made lives as long as its functions.
  model->reset();
  EXPECT_TRUE(f->Call({&x, 1}, &out).ok());
}

TEST(LoadedModel, ValuesAreThoseOfTheCheckpoint) {
  auto model = LoadedModel::Load(kGolden, {});
  ASSERT_TRUE(model.ok()) << model.status();
  const Value& v = (*model)->value((*model)->Child(0, "v"));
  auto variable = ResourceAs<Variable>(v.tensor(), &DefaultResources());
  ASSERT_TRUE(variable.ok());
  EXPECT_EQ((*variable)->Read("v")->data<float>()[1], 2);
}

void ExpectDamaged(const std::string& objects, const char* what) {
  auto model = ParseSavedModel(
      "meta_graphs { object_graph_def { " + objects + " } }", true, "t");
  ASSERT_TRUE(model.ok()) << model.status();
  auto* graph = (*model)->mutable_meta_graphs(0);
  const Status s =
      LoadedModel::Make(*std::move(model), graph, "ram://none", {}).status();
  EXPECT_NE(s.message().find(what), std::string::npos) << s;
}

TEST(LoadedModel, ObjectGraphsThatDoNotHoldTogether) {
  ExpectDamaged("nodes { children { node_id: 7 local_name: 'a' } }",
                "child a is object 7 of 1");
  ExpectDamaged("nodes { function { concrete_functions: 'f' } }",
                "object 0: no function f");
  ExpectDamaged("nodes { constant { operation: 'c' } }", "no constant c");
  ExpectDamaged("nodes { asset { asset_file_def_index: 3 } }",
                "there is no asset 3");
  ExpectDamaged("nodes { variable { dtype: 99 } }", "without a dtype");
  ExpectDamaged("nodes { resource {} }", "nothing makes the resource");
  ExpectDamaged("nodes {} concrete_functions { key: 'f' value {} }",
                "function f is not there");
  ExpectDamaged(
      "nodes { slot_variables { original_variable_node_id: 5 slot_name: 'm' } "
      "}",
      "slot m");
}

TEST(LoadedModel, ListsAllOperationsThatAreMissing) {
  const char* text = R"(
    meta_graphs {
      graph_def { library {
        function { signature { name: "f" }
          node_def { name: "a" op: "NoSuchA" } node_def { name: "b" op: "g" } }
        function { signature { name: "g" } node_def { name: "a" op: "NoSuchB" } }
        function { signature { name: "h" } node_def { name: "a" op: "NoSuchC" } }
      } }
      object_graph_def { nodes {} concrete_functions { key: "f" value {} } }
    })";
  auto model = ParseSavedModel(text, true, "t");
  ASSERT_TRUE(model.ok()) << model.status();
  auto* graph = (*model)->mutable_meta_graphs(0);
  const Status s =
      LoadedModel::Make(*std::move(model), graph, "folder", {}).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(s.message(),
            "SavedModel folder needs operations that are not supported: "
            "NoSuchA, NoSuchB");
}

}  // namespace
}  // namespace headrace
