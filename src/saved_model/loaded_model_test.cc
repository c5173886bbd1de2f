#include "saved_model/loaded_model.h"

#include "eager/tape.h"
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

constexpr char kGradients[] = HR_GOLDEN_DIR "/saved_models/gradients";

// d(sum of the function's result)/d(its argument) at 1, or the error.
StatusOr<float> GradientAtOne(const LoadedModel& model, const char* child) {
  auto f = model.function(*model.function_name(model.Child(0, child)));
  const Value x(Tensor::Vector<float>({1}));
  Tape tape(false, false);
  tape.Watch(x);
  tape.Start();
  ValueList y;
  HR_RETURN_IF_ERROR(f->Call({&x, 1}, &y));
  tape.Stop();
  HR_ASSIGN_OR_RETURN(auto found, tape.Gradients({y[0]}, {x}, {}));
  return found[0].dense.tensor().data<float>()[0];
}

TEST(LoadedModel, GradientsOfTheProgramsOwnAreThere) {
  auto model = LoadedModel::Load(kGradients, {});
  ASSERT_TRUE(model.ok()) << model.status();
  // 3 of x, 2 * 3 of the variable, 10 h + (h + 1) of h = 3 x.
  EXPECT_EQ(*GradientAtOne(**model, "f"), 3 * 6 * 34);
  EXPECT_EQ(*GradientAtOne(**model, "called"), 2 * 3 * 6 * 34);
}

TEST(LoadedModel, GradientFunctionsThatDoNotFit) {
  using tensorflow::SavedObjectGraph;
  const auto broken = [](auto&& change) {
    auto model = ReadSavedModel(kGradients);
    EXPECT_TRUE(model.ok()) << model.status();
    auto* graph = (*model)->mutable_meta_graphs(0);
    auto* objects = graph->mutable_object_graph_def();
    const std::string name =
        graph->graph_def().library().registered_gradients(0).gradient_func();
    change(objects, &objects->mutable_concrete_functions()->at(name));
    return LoadedModel::Make(*std::move(model), graph, kGradients, {}).status();
  };
  using Saved = tensorflow::SavedConcreteFunction;
  EXPECT_TRUE(broken([](SavedObjectGraph*, Saved*) {}).ok());
  EXPECT_TRUE(absl::IsDataLoss(broken([](SavedObjectGraph*, Saved* f) {
    f->mutable_output_signature()->mutable_list_value()->add_values();
  })));
  EXPECT_TRUE(absl::IsDataLoss(broken(
      [](SavedObjectGraph*, Saved* f) { f->clear_output_signature(); })));
  EXPECT_TRUE(absl::IsDataLoss(
      broken([](SavedObjectGraph*, Saved* f) { f->add_bound_inputs(0); })));
  EXPECT_TRUE(absl::IsDataLoss(broken([](SavedObjectGraph* objects, Saved*) {
    for (auto& o : *objects->mutable_nodes()) {
      if (o.has_captured_tensor())
        o.mutable_captured_tensor()->set_name("no:0");
    }
  })));
  EXPECT_TRUE(absl::IsDataLoss(broken([](SavedObjectGraph* objects, Saved*) {
    for (auto& o : *objects->mutable_nodes()) {
      if (!o.has_captured_tensor()) continue;
      o.mutable_captured_tensor()->set_concrete_function("nobody");
    }
  })));
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
