#include "serving/json/examples_body.h"

#include <gtest/gtest.h>

#include <cmath>

#include "serving/json/proto_answers.h"

namespace headrace::serving {
namespace {

TEST(ExamplesBody, KindsOfFeatures) {
  const auto body = ReadExamplesBody(
      "{\"signature_name\": \"s\", \"examples\": [{\"b\": true, \"i\": [1, "
      "-2], \"f\": [1.5, 1e2, NaN], \"s\": \"x\", \"z\": [{\"b64\": "
      "\"aGk=\"}, \"y\"], \"e\": []}, {}]}");
  ASSERT_TRUE(body.ok()) << body.status();
  EXPECT_EQ(body->signature_name, "s");
  const auto& list = body->input.example_list();
  ASSERT_EQ(list.examples_size(), 2);
  const auto& f = list.examples(0).features().feature();
  EXPECT_EQ(f.at("b").int64_list().value(0), 1);
  EXPECT_EQ(f.at("i").int64_list().value(1), -2);
  EXPECT_EQ(f.at("f").float_list().value(1), 100);
  EXPECT_TRUE(std::isnan(f.at("f").float_list().value(2)));
  EXPECT_EQ(f.at("s").bytes_list().value(0), "x");
  EXPECT_EQ(f.at("z").bytes_list().value(0), "hi");
  EXPECT_EQ(f.at("e").kind_case(), tensorflow::Feature::KIND_NOT_SET);
}

TEST(ExamplesBody, Context) {
  const auto body = ReadExamplesBody(
      "{\"examples\": [{\"a\": 1}], \"context\": {\"c\": \"x\"}}");
  ASSERT_TRUE(body.ok()) << body.status();
  const auto& list = body->input.example_list_with_context();
  EXPECT_EQ(list.examples_size(), 1);
  EXPECT_EQ(list.context().features().feature().at("c").bytes_list().value(0),
            "x");
}

TEST(ExamplesBody, Errors) {
  const struct {
    const char *text, *error;
  } rows[] = {
      {"[]", "JSON Value: [] Is not object"},
      {"{\"signature_name\": []}",
       "JSON Value: [] not formatted correctly. 'signature_name' key must be a "
       "string value."},
      {"{\"x\": 1}",
       "JSON Value: {\"x\":1} key 'examples' is expected and was not found"},
      {"{\"examples\": {}}", "Expecting 'examples' value to be an list/array"},
      {"{\"examples\": []}", "'examples' value is an empty array"},
      {"{\"examples\": [1]}",
       "Example must be JSON object but got JSON Number"},
      {"{\"examples\": [{}], \"context\": []}",
       "Example must be JSON object but got JSON Array"},
      {"{\"examples\": [{\"f\": null}]}",
       "Feature: f has element with unexpected JSON type: Null"},
      {"{\"examples\": [{\"f\": [[1]]}]}",
       "Feature: f has element with unexpected JSON type: Array"},
      {"{\"examples\": [{\"f\": {}}]}",
       "Feature: f has element with unexpected JSON type: Object"},
      {"{\"examples\": [{\"f\": [1.5, 2]}]}",
       "Unexpected element type in feature: f expecting type: float"},
      {"{\"examples\": [{\"f\": 9223372036854775808}]}",
       "Feature: f has uint64_t element. Only int64_t is supported."},
  };
  for (const auto& row : rows) {
    const auto body = ReadExamplesBody(row.text);
    EXPECT_EQ(body.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(body.status().message(), row.error) << row.text;
  }
  const std::string whole =
      "{\"examples\": [{\"a\": [1, 2], \"b\": {\"b64\": \"aGk=\"}}]}";
  for (size_t n = 0; n < whole.size(); ++n) {
    EXPECT_FALSE(ReadExamplesBody(whole.substr(0, n)).ok());
  }
}

TEST(ProtoAnswers, ClassifyAndRegress) {
  tensorflow::serving::ClassificationResponse classified;
  for (const float score : {0.5f, 2.0f}) {
    auto* row = classified.mutable_result()->add_classifications();
    auto* c = row->add_classes();
    c->set_label("a");
    c->set_score(score);
    row->add_classes()->set_label("b");
  }
  EXPECT_EQ(ClassifyJson(classified),
            "{\n    \"results\": [[[\"a\", 0.5], [\"b\", 0.0]], [[\"a\", 2.0], "
            "[\"b\", 0.0]]\n    ]\n}");
  tensorflow::serving::RegressionResponse regressed;
  regressed.mutable_result()->add_regressions()->set_value(1);
  regressed.mutable_result()->add_regressions()->set_value(0.1f);
  EXPECT_EQ(RegressJson(regressed), "{\n    \"results\": [1.0, 0.1\n    ]\n}");
}

TEST(ProtoAnswers, Metadata) {
  tensorflow::serving::GetModelMetadataResponse response;
  response.mutable_model_spec()->set_name("m");
  response.mutable_model_spec()->mutable_version()->set_value(123);
  tensorflow::serving::SignatureDefMap map;
  auto& signature = (*map.mutable_signature_def())["serving_default"];
  auto& x = (*signature.mutable_inputs())["x"];
  x.set_name("x:0");
  x.set_dtype(tensorflow::DT_FLOAT);
  x.mutable_tensor_shape()->add_dim()->set_size(-1);
  (*response.mutable_metadata())["signature_def"].PackFrom(map);
  const auto json = MetadataJson(response);
  ASSERT_TRUE(json.ok()) << json.status();
  std::string flat;
  for (const char c : *json) {
    if (c != ' ' && c != '\n') flat.push_back(c);
  }
  EXPECT_EQ(
      flat,
      "{\"model_spec\":{\"name\":\"m\",\"signature_name\":\"\",\"version\":"
      "\"123\"},\"metadata\":{\"signature_def\":{\"signature_def\":{"
      "\"serving_default\":{\"inputs\":{\"x\":{\"dtype\":\"DT_FLOAT\","
      "\"tensor_shape\":{\"dim\":[{\"size\":\"-1\",\"name\":\"\"}],\"unknown_"
      "rank\":false},\"name\":\"x:0\"}},\"outputs\":{},\"method_name\":\"\","
      "\"defaults\":{}}}}}}");
  (*response.mutable_metadata())["signature_def"].PackFrom(
      tensorflow::serving::ClassificationResponse());
  EXPECT_FALSE(MetadataJson(response).ok());
}

}  // namespace
}  // namespace headrace::serving
