#include "serving/v2/infer_message.h"

#include <gtest/gtest.h>

#include <functional>

#include "serving/fixed_models.h"

namespace headrace::serving {
namespace {

using inference::ModelInferRequest;

ModelInferRequest TypedRequest() {
  ModelInferRequest request;
  request.set_model_name("plain");
  auto* x = request.add_inputs();
  x->set_name("x");
  x->set_datatype("FP32");
  x->add_shape(2);
  x->mutable_contents()->add_fp32_contents(1.5);
  x->mutable_contents()->add_fp32_contents(-2);
  return request;
}

ModelInferRequest RawRequest() {
  ModelInferRequest request = TypedRequest();
  request.mutable_inputs(0)->clear_contents();
  const float values[] = {1.5, -2};
  request.add_raw_input_contents(reinterpret_cast<const char*>(values),
                                 sizeof(values));
  return request;
}

TEST(V2InferMessage, TypedAndRawContentsAreTheSame) {
  for (ModelInferRequest request : {TypedRequest(), RawRequest()}) {
    const auto read = ReadInferMessage(&request);
    ASSERT_TRUE(read.ok()) << read.status();
    const Tensor& t = read->inputs[0].tensor;
    EXPECT_EQ(t.Describe(), "float[2]");
    EXPECT_EQ(t.data<float>()[0], 1.5f);
    EXPECT_EQ(t.data<float>()[1], -2.0f);
  }
}

TEST(V2InferMessage, VersionsAreNumbersOrLabels) {
  EXPECT_EQ(SpecOfModel("m", "")->version_choice_case(),
            ModelSpec::VERSION_CHOICE_NOT_SET);
  EXPECT_EQ(SpecOfModel("m", "12")->version().value(), 12);
  EXPECT_EQ(SpecOfModel("m", "canary")->version_label(), "canary");
  for (const char* bad : {"-1", "1x", "99999999999999999999"}) {
    EXPECT_EQ(SpecOfModel("m", bad).status().message(),
              absl::StrCat("'", bad, "' is no version of a model"));
  }
}

TEST(V2InferMessage, Errors) {
  struct Row {
    std::function<void(ModelInferRequest&)> change;
    const char* error;
  };
  const Row rows[] = {
      {[](auto& r) { r.mutable_inputs(0)->set_datatype("F"); },
       "input 'x': there is no datatype 'F'"},
      {[](auto& r) { r.mutable_inputs(0)->set_datatype("FP16"); },
       "input 'x': FP16 comes in raw_input_contents alone"},
      {[](auto& r) { r.mutable_inputs(0)->set_shape(0, 3); },
       "input 'x' has 2 elements, where shape [3] has 3"},
      {[](auto& r) { r.mutable_inputs(0)->set_datatype("FP64"); },
       "input 'x' has 0 elements of FP64, where shape [2] has 2"},
      {[](auto& r) {
         r.mutable_inputs(0)->set_datatype("INT8");
         auto* c = r.mutable_inputs(0)->mutable_contents();
         c->clear_fp32_contents();
         c->add_int_contents(1);
         c->add_int_contents(128);
       },
       "input 'x': 128 is no INT8"},
      {[](auto& r) { r.add_raw_input_contents("12345678"); },
       "input 'x' has contents, where raw_input_contents are given"},
      {[](auto& r) {
         r.add_raw_input_contents("");
         r.add_raw_input_contents("");
       },
       "there are 1 inputs and 2 raw_input_contents"},
      {[](auto& r) {
         r.mutable_inputs(0)->clear_contents();
         r.add_raw_input_contents("1234567");
       },
       "input 'x' has 7 bytes, where FP32 of shape [2] has 8"},
      {[](auto& r) { (*r.mutable_parameters())["priority"]; },
       "the parameter 'priority' is not supported"},
      {[](auto& r) {
         (*r.mutable_parameters())["signature_name"].set_bool_param(true);
       },
       "the parameter 'signature_name' is to be a string"},
      {[](auto& r) {
         (*r.mutable_inputs(0)->mutable_parameters())["shared_memory_region"];
       },
       "input 'x': the parameter 'shared_memory_region' is not supported"},
      {[](auto& r) {
         auto* y = r.add_outputs();
         y->set_name("y");
         (*y->mutable_parameters())["classification"];
       },
       "output 'y': the parameter 'classification' is not supported"},
  };
  for (const Row& row : rows) {
    ModelInferRequest request = TypedRequest();
    row.change(request);
    const auto read = ReadInferMessage(&request);
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(read.status().message(), row.error);
  }
  for (const int64_t size : {int64_t{-1}, int64_t{1} << 62}) {
    ModelInferRequest request = TypedRequest();
    request.mutable_inputs(0)->set_shape(0, size);
    request.mutable_inputs(0)->add_shape(8);
    EXPECT_FALSE(ReadInferMessage(&request).ok());
  }
}

TEST(V2InferMessage, AMessageCutAnywhereHarmsNothing) {
  ModelInferRequest whole = RawRequest();
  const std::string bytes = whole.SerializeAsString();
  for (size_t n = 0; n < bytes.size(); ++n) {
    ModelInferRequest cut;
    if (!cut.ParseFromString(bytes.substr(0, n))) continue;
    ReadInferMessage(&cut).status().IgnoreError();
  }
}

StatusOr<InferAnswer> InferPlain(InferRequest request) {
  auto loaded =
      Servable::Load({"plain", 3}, HR_GOLDEN_DIR "/saved_models/plain", {});
  FixedModels models;
  models.Add(*loaded);
  StatusOr<InferAnswer> answer = Internal("it did not answer");
  Infer(models, std::make_shared<Call>(), std::move(request),
        [&](StatusOr<InferAnswer> a) { answer = std::move(a); });
  return answer;
}

TEST(V2Infer, OutputsComeInTheOrderInWhichTheyAreAsked) {
  ModelInferRequest message = TypedRequest();
  message.add_outputs()->set_name("y");
  message.add_outputs()->set_name("twice");
  const auto answer = InferPlain(*ReadInferMessage(&message));
  ASSERT_TRUE(answer.ok()) << answer.status();
  ASSERT_EQ(answer->outputs.size(), 2u);
  EXPECT_EQ(answer->outputs[0].name, "y");
  EXPECT_EQ(answer->outputs[1].name, "twice");
  EXPECT_EQ(answer->outputs[1].tensor.data<float>()[0], 3.0f);
  EXPECT_EQ(answer->spec.version().value(), 3);
  EXPECT_EQ(answer->spec.signature_name(), "serving_default");
  const auto typed = WriteInferMessage("id", false, *answer);
  ASSERT_TRUE(typed.ok());
  EXPECT_EQ(typed->model_version(), "3");
  EXPECT_EQ(typed->outputs(1).contents().fp32_contents(1), -4.0f);
  EXPECT_TRUE(typed->raw_output_contents().empty());
  const auto raw = WriteInferMessage("id", true, *answer);
  ASSERT_TRUE(raw.ok());
  EXPECT_EQ(raw->raw_output_contents(1).size(), 8u);
  EXPECT_FALSE(raw->outputs(1).has_contents());
}

TEST(V2Infer, WhatTypedFieldsCannotHoldGoesRaw) {
  InferAnswer answer;
  answer.outputs.push_back({"a", Tensor::Scalar(1.0f)});
  answer.outputs.push_back({"b", Tensor::Scalar(half(1))});
  const auto written = WriteInferMessage("", false, answer);
  ASSERT_TRUE(written.ok());
  EXPECT_EQ(written->raw_output_contents_size(), 2);
}

TEST(V2Infer, RequestsThatDoNotFitTheSignature) {
  struct Row {
    std::function<void(InferRequest&)> change;
    const char* error;
  };
  const Row rows[] = {
      {[](auto& r) { r.spec.set_name("none"); },
       "Servable not found for request: Latest(none)"},
      {[](auto& r) { r.spec.set_signature_name("s"); },
       "Serving signature key \"s\" not found."},
      {[](auto& r) { r.inputs[0].name = "z"; },
       "unexpected input 'z' for model 'plain': its inputs are {x}"},
      {[](auto& r) { r.inputs.push_back(r.inputs[0]); },
       "input 'x' is given twice"},
      {[](auto& r) { r.inputs.clear(); },
       "input 'x' of model 'plain' is missing"},
      {[](auto& r) { r.inputs[0].tensor = Tensor::Vector<int32_t>({1}); },
       "input 'x' of model 'plain' is of datatype FP32, not INT32"},
      {[](auto& r) { r.outputs = {"z"}; },
       "unexpected output 'z' for model 'plain': its outputs are {twice,y}"},
      {[](auto& r) {
         r.outputs = {"y", "y"};
       },
       "output 'y' is asked for twice"},
  };
  for (const Row& row : rows) {
    ModelInferRequest message = TypedRequest();
    InferRequest request = *ReadInferMessage(&message);
    row.change(request);
    EXPECT_EQ(InferPlain(std::move(request)).status().message(), row.error);
  }
}

}  // namespace
}  // namespace headrace::serving
