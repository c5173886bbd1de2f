// The rows of Classify and Regress, with the stock server's texts.
#include "serving/answer/examples.h"

#include <gtest/gtest.h>

#include "serving/answer/answers.h"
#include "serving/fixed_models.h"
#include "serving/model/test_models.h"

namespace headrace::serving {
namespace {

using tensorflow::serving::ClassificationResult;
using tensorflow::serving::RegressionResult;
using Names = std::vector<std::pair<std::string, DType>>;

const tensorflow::SignatureDef& MethodOnly() {
  static const auto* const def = [] {
    auto* made = new tensorflow::SignatureDef;
    made->set_method_name("any");
    return made;
  }();
  return *def;
}

Signature SignatureOf(const Names& inputs, const Names& outputs) {
  Signature s;
  for (const auto& [name, dtype] : inputs) s.inputs.push_back({name, dtype});
  for (const auto& [name, dtype] : outputs) s.outputs.push_back({name, dtype});
  s.def = &MethodOnly();
  return s;
}

const Names kExamples = {{"inputs", DType::kString}};

TEST(ExampleSignatures, WhatRegressTakes) {
  const Names both = {{"inputs", DType::kString}, {"more", DType::kString}};
  const struct {
    Names inputs, outputs;
    std::string text;
  } rows[] = {
      {both, {{"outputs", DType::kFloat}}, "Expected one input Tensor."},
      {kExamples,
       {{"a", DType::kFloat}, {"outputs", DType::kFloat}},
       "Expected one output Tensor."},
      {{{"inputs", DType::kFloat}},
       {{"outputs", DType::kFloat}},
       "No regression inputs found in SignatureDef: method_name: \"any\""},
      {{{"x", DType::kString}},
       {{"outputs", DType::kFloat}},
       "No regression inputs found in SignatureDef: method_name: \"any\""},
      {kExamples,
       {{"scores", DType::kFloat}},
       "No regression outputs found in SignatureDef: method_name: \"any\""},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(RegressOutputs(SignatureOf(row.inputs, row.outputs)).status(),
              InvalidArgument(row.text));
  }
  EXPECT_EQ(
      *RegressOutputs(SignatureOf(kExamples, {{"outputs", DType::kFloat}})),
      std::vector<int>{0});
}

TEST(ExampleSignatures, WhatClassifyTakes) {
  const Names both = {{"inputs", DType::kString}, {"more", DType::kString}};
  const struct {
    Names inputs, outputs;
    std::string text;
  } rows[] = {
      {both, {{"scores", DType::kFloat}}, "Expected one input Tensor."},
      {kExamples,
       {{"a", DType::kFloat},
        {"classes", DType::kString},
        {"scores", DType::kFloat}},
       "Expected one or two output Tensors, found 3"},
      {kExamples, {}, "Expected one or two output Tensors, found 0"},
      {{{"x", DType::kString}},
       {{"scores", DType::kFloat}},
       "No classification inputs found in SignatureDef: method_name: \"any\""},
      {kExamples,
       {{"outputs", DType::kFloat}},
       "Expected classification signature outputs to contain at least one of "
       "\"classes\" or \"scores\". Signature was: method_name: \"any\""},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(ClassifyOutputs(SignatureOf(row.inputs, row.outputs)).status(),
              InvalidArgument(row.text));
  }
}

Tensor Zeros(DType dtype, const Shape& shape) {
  Tensor t = *Tensor::Allocate(dtype, shape);
  if (dtype == DType::kFloat) {
    for (float& x : t.span<float>()) x = 0;
  }
  return t;
}

TEST(ExampleResults, WhatRegressionsMayBe) {
  const struct {
    Tensor output;
    std::string text;
  } rows[] = {
      {Zeros(DType::kFloat, Shape()),
       "Expected output Tensor shape to be either [batch_size] or [batch_size, "
       "1] but got []"},
      {Zeros(DType::kFloat, Shape{2, 2}),
       "Expected output Tensor shape to be either [batch_size] or [batch_size, "
       "1] but got [2,2]"},
      {Zeros(DType::kFloat, Shape{2, 1, 1}),
       "Expected output Tensor shape to be either [batch_size] or [batch_size, "
       "1] but got [2,1,1]"},
      {Zeros(DType::kString, Shape{2}),
       "Expected output Tensor of DT_FLOAT.  Got: DT_STRING"},
      {Zeros(DType::kFloat, Shape{3}),
       "Input batch size did not match output batch size: 2 vs. 3"},
  };
  for (const auto& row : rows) {
    RegressionResult result;
    EXPECT_EQ(RegressResult({row.output}, 2, &result),
              InvalidArgument(row.text));
  }
  for (const Shape& shape : {Shape{2}, Shape{2, 1}}) {
    RegressionResult result;
    EXPECT_TRUE(RegressResult({Zeros(DType::kFloat, shape)}, 2, &result).ok());
    EXPECT_EQ(result.regressions_size(), 2);
  }
}

TEST(ExampleResults, WhatClassificationsMayBe) {
  const Signature signature = SignatureOf(
      kExamples, {{"classes", DType::kString}, {"scores", DType::kFloat}});
  const Tensor good = Zeros(DType::kFloat, Shape{2, 3});
  const Tensor labels = Zeros(DType::kString, Shape{2, 3});
  const struct {
    Tensor classes, scores;
    std::string text;
  } rows[] = {
      {Zeros(DType::kString, Shape{2}), good,
       "Expected Tensor shape: [batch_size num_classes] but got [2]"},
      {labels, Zeros(DType::kFloat, Shape()),
       "Expected Tensor shape: [batch_size num_classes] but got []"},
      {Zeros(DType::kString, Shape{1, 3}), good,
       "Input batch size did not match output batch size: 2 vs. 1"},
      {Zeros(DType::kString, Shape{2, 4}), good,
       "Tensors class and score should match in dim_size(1). Got 4 vs. 3"},
      {good, good, "Expected classes Tensor of DT_STRING. Got: DT_FLOAT"},
      {labels, labels, "Expected scores Tensor of DT_FLOAT. Got: DT_STRING"},
  };
  for (const auto& row : rows) {
    ClassificationResult result;
    EXPECT_EQ(ClassifyResult(signature, {0, 1}, {row.classes, row.scores}, 2,
                             &result),
              InvalidArgument(row.text));
  }
  ClassificationResult result;
  ASSERT_TRUE(
      ClassifyResult(signature, {0, 1}, {labels, good}, 2, &result).ok());
  EXPECT_EQ(result.classifications_size(), 2);
  EXPECT_EQ(result.classifications(1).classes_size(), 3);
}

TEST(PredictInputs, NamesAndDefaults) {
  FixedModels models;
  auto loaded = Servable::Load({"sum", 3}, WriteModelWithDefault(), {});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  models.Add(*loaded);
  const auto ask = [&](std::vector<std::string> names) {
    tensorflow::serving::PredictRequest request;
    request.mutable_model_spec()->set_name("sum");
    for (const std::string& name : names) {
      auto& t = (*request.mutable_inputs())[name];
      t.set_dtype(tensorflow::DT_FLOAT);
      t.mutable_tensor_shape()->add_dim()->set_size(2);
      t.add_float_val(1);  // for both
    }
    StatusOr<tensorflow::serving::PredictResponse> given = Internal("none");
    Predict(models, {}, std::make_shared<Call>(), request,
            [&](StatusOr<tensorflow::serving::PredictResponse> response) {
              given = std::move(response);
            });
    return given;
  };
  const auto values = [](const auto& response) {
    const auto& sum = response->outputs().at("sum").float_val();
    return std::vector<float>(sum.begin(), sum.end());
  };
  auto response = ask({"x", "y"});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(values(response), (std::vector<float>{2, 2}));
  response = ask({"x"});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(values(response), (std::vector<float>{11, 21}));
  EXPECT_EQ(
      ask({"y"}).status(),
      InvalidArgument("Signature input alias: x(feed name: x:0) not found "
                      "in request and no default value provided. Inputs "
                      "expected to be in the set {x,y}."));
  EXPECT_EQ(ask({"x", "z"}).status(),
            InvalidArgument("Inputs contains invalid name. It has z, expected "
                            "are {x,y}."));
  EXPECT_EQ(ask({"x", "y", "z"}).status(),
            InvalidArgument("input size does not match signature: 3!=2 "
                            "len({x,y,z}) != len({x,y}). Sent extra: {z}. "
                            "Missing but required: {}."));
}

}  // namespace
}  // namespace headrace::serving
