#include "serving/v2/infer_body.h"

#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"

namespace headrace::serving {
namespace {

// With ' for ".
std::string Json(StringView text) {
  return absl::StrReplaceAll(text, {{"'", "\""}});
}

std::string ErrorOf(StringView text, StringView length = "") {
  const auto body = ReadInferBody(Json(text), length);
  return std::string(body.status().message());
}

// A body of one input with this text for all behind its name.
std::string WithInput(StringView rest) {
  return absl::StrCat("{'inputs':[{'name':'x',", rest, "}]}");
}

TEST(V2InferBody, DataIsNestedOrFlatInAnyOrderOfMembers) {
  for (const char* rest :
       {"'shape':[2,2],'datatype':'FP32','data':[[1,2],[3,4.5]]",
        "'shape':[2,2],'datatype':'FP32','data':[1,2,3,4.5]",
        "'data':[[1,2],[3,4.5]],'datatype':'FP32','shape':[2,2]"}) {
    const std::string text = Json(WithInput(rest));
    const auto body = ReadInferBody(text, "");
    ASSERT_TRUE(body.ok()) << body.status();
    const Tensor& t = body->request.inputs[0].tensor;
    EXPECT_EQ(t.Describe(), "float[2,2]");
    EXPECT_EQ(t.data<float>()[3], 4.5f);
  }
}

TEST(V2InferBody, TypesOfData) {
  const struct {
    const char *type, *data;
    const char* described;
  } rows[] = {
      {"BOOL", "[true,false]", "bool[2]"},  {"INT8", "[-1,2]", "int8[2]"},
      {"UINT16", "[1,65535]", "uint16[2]"}, {"INT64", "[1,2]", "int64[2]"},
      {"UINT64", "[1,2]", "uint64[2]"},     {"FP64", "[1,NaN]", "double[2]"},
      {"BYTES", "['a','b']", "string[2]"},
  };
  for (const auto& row : rows) {
    const std::string text = Json(WithInput(absl::StrCat(
        "'shape':[2],'datatype':'", row.type, "','data':", row.data)));
    const auto body = ReadInferBody(text, "");
    ASSERT_TRUE(body.ok()) << body.status();
    EXPECT_EQ(body->request.inputs[0].tensor.Describe(), row.described);
  }
}

TEST(V2InferBody, BinaryDataComesInTheOrderOfTheInputs) {
  const std::string head = Json(
      "{'id':'7','parameters':{'signature_name':'s','binary_data_output':true},"
      "'inputs':[{'name':'a','shape':[1],'datatype':'INT32',"
      "'parameters':{'binary_data_size':4}},"
      "{'name':'b','shape':[1],'datatype':'INT32','data':[5]},"
      "{'name':'c','shape':[1],'datatype':'BYTES',"
      "'parameters':{'binary_data_size':6}}],"
      "'outputs':[{'name':'y','parameters':{'binary_data':false}},"
      "{'name':'z'}]}");
  const std::string binary("\7\0\0\0\2\0\0\0ab", 10);
  const std::string all = head + binary;
  const auto body = ReadInferBody(all, absl::StrCat(head.size()));
  ASSERT_TRUE(body.ok()) << body.status();
  EXPECT_EQ(body->reply.id, "7");
  EXPECT_EQ(body->request.spec.signature_name(), "s");
  ASSERT_EQ(body->request.inputs.size(), 3u);
  EXPECT_EQ(body->request.inputs[0].tensor.scalar<int32_t>(), 7);
  EXPECT_EQ(body->request.inputs[2].tensor.scalar<std::string>(), "ab");
  EXPECT_EQ(body->request.outputs, (std::vector<std::string>{"y", "z"}));
  EXPECT_EQ(body->reply.binary_output, (std::vector<bool>{false, true}));
  // Cut anywhere, with all that is left as JSON or with the header as it was.
  for (size_t n = 0; n < all.size(); ++n) {
    const std::string cut = all.substr(0, n);
    EXPECT_FALSE(ReadInferBody(cut, "").ok()) << n;
    EXPECT_FALSE(ReadInferBody(cut, absl::StrCat(head.size())).ok()) << n;
    EXPECT_FALSE(
        ReadInferBody(all, absl::StrCat(std::min(n, head.size() - 1))).ok())
        << n;
  }
}

TEST(V2InferBody, Errors) {
  const struct {
    std::string text;
    const char* error;
  } rows[] = {
      {"", "JSON Parse error: The document is empty"},
      {"[]", "JSON Value: [] Is not object"},
      {"{}", "the request has no 'inputs'"},
      {"{'inputs':{}}", "'inputs' is to be a list, not {}"},
      {"{'inputs':[3]}", "an input is to be an object, not 3"},
      {"{'inputs':[{}]}", "an input has no name"},
      {"{'id':3,'inputs':[]}", "'id' is to be a string, not 3"},
      {"{'parameters':{'priority':1},'inputs':[]}",
       "the request: the parameter 'priority' is not supported"},
      {WithInput("'shape':[1]"), "input 'x' has no datatype"},
      {WithInput("'datatype':'FP32'"), "input 'x' has no shape"},
      {WithInput("'datatype':'FP32','shape':[1]"), "input 'x' has no data"},
      {WithInput("'datatype':'FP32','shape':[1],'other':1"),
       "input 'x' has an unknown member 'other'"},
      {WithInput("'datatype':'FP3'"), "input 'x': there is no datatype 'FP3'"},
      {WithInput("'shape':[1.5]"),
       "input 'x': its shape is to be a whole number, not 1.5"},
      {WithInput("'datatype':'FP32','shape':[2,2],'data':[1,2,3]"),
       "input 'x' has data of shape [3], which is neither its shape [2,2] nor "
       "a list of 4 elements"},
      {WithInput("'datatype':'FP32','shape':[2,2],'data':[[1,2],[3]]"),
       "input 'x': Encountered list at unexpected size: 1 at level: 1 expected "
       "size: 2"},
      {WithInput("'datatype':'INT32','shape':[1],'data':[1.5]"),
       "input 'x': JSON Value: 1.5 Type: Number is not of expected type: "
       "int32"},
      {WithInput("'datatype':'INT8','shape':[1],'data':[300]"),
       "input 'x': JSON Value: 300 Type: Number is not of expected type: int8"},
      {WithInput("'datatype':'UINT16','shape':[1],'data':[65536]"),
       "input 'x': 65536 is no UINT16"},
      {WithInput("'datatype':'FP16','shape':[1],'data':[1]"),
       "input 'x': FP16 comes as binary data alone"},
      {WithInput("'datatype':'FP32','shape':[1],'data':[1],'data':[1]"),
       "input 'x' has data twice"},
      {WithInput("'datatype':'FP32','shape':[0],'data':[],'parameters':"
                 "{'binary_data_size':0}"),
       "input 'x' has both data and binary_data_size"},
      {WithInput("'datatype':'FP32','shape':[1],'parameters':"
                 "{'binary_data_size':4}"),
       "input 'x' has binary_data_size 4, where 0 bytes are left of the body"},
      {WithInput("'datatype':'FP32','shape':[1],'parameters':"
                 "{'binary_data_size':-4}"),
       "input 'x' has binary_data_size -4, where 0 bytes are left of the body"},
      {WithInput("'datatype':'FP32','shape':[1],'parameters':"
                 "{'shared_memory_region':'a'}"),
       "input 'x': the parameter 'shared_memory_region' is not supported"},
      {"{'inputs':[],'outputs':[{}]}", "an output has no name"},
      {"{'inputs':[],'outputs':[{'name':'y','parameters':"
       "{'classification':3}}]}",
       "an output: the parameter 'classification' is not supported"},
      {"{'inputs':[],'outputs':[{'name':'y','parameters':"
       "{'binary_data':1}}]}",
       "binary_data is to be true or false, not 1"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(ErrorOf(row.text), row.error) << row.text;
  }
  for (const char* sizes : {"[-1]", "[4611686018427387904,8]"}) {
    EXPECT_NE(ErrorOf(WithInput(absl::StrCat("'shape':", sizes))), "");
  }
  EXPECT_EQ(ErrorOf("{}", "3"),
            "Inference-Header-Content-Length is 3, where the body has 2 bytes");
  for (const char* length : {"-1", "x", "99999999999999999999", " 1"}) {
    EXPECT_EQ(ErrorOf("{}", length),
              absl::StrCat("Inference-Header-Content-Length '", length,
                           "' is no number of bytes"));
  }
  EXPECT_EQ(ErrorOf("{'inputs':[]}abc", "13"),
            "the body has 3 bytes after its inputs' binary data");
}

TEST(V2InferBody, DeepNestingEndsInAnError) {
  const std::string deep(1 << 20, '[');
  EXPECT_NE(ErrorOf(WithInput("'datatype':'FP32','shape':[1],'data':" + deep)),
            "");
  EXPECT_NE(ErrorOf(WithInput("'datatype':'FP32','shape':[1],'data':" + deep +
                              std::string(1 << 20, ']'))),
            "");
}

InferAnswer AnswerWith(Tensor t) {
  InferAnswer answer;
  answer.spec.set_name("m");
  answer.spec.mutable_version()->set_value(3);
  answer.outputs.push_back({"y", std::move(t)});
  return answer;
}

TEST(V2InferBody, Answers) {
  InferReply reply;
  auto body =
      WriteInferBody(reply, AnswerWith(Tensor::Vector<float>({1.0f, 2.5f})));
  ASSERT_TRUE(body.ok());
  EXPECT_FALSE(body->binary);
  EXPECT_EQ(body->bytes,
            Json("{'model_name':'m','model_version':'3','outputs':[{'name':'y',"
                 "'datatype':'FP32','shape':[2],'data':[1.0,2.5]}]}"));
  reply.id = "a";
  reply.binary = true;
  body = WriteInferBody(reply, AnswerWith(Tensor::Vector<int32_t>({7})));
  ASSERT_TRUE(body.ok());
  EXPECT_TRUE(body->binary);
  const std::string head = Json(
      "{'model_name':'m','model_version':'3','id':'a','outputs':[{'name':"
      "'y','datatype':'INT32','shape':[1],'parameters':"
      "{'binary_data_size':4}}]}");
  EXPECT_EQ(body->json_bytes, head.size());
  EXPECT_EQ(body->bytes, head + std::string("\7\0\0\0", 4));
}

TEST(V2InferBody, AnswersThatJsonCannotSay) {
  EXPECT_EQ(WriteInferBody({}, AnswerWith(Tensor::Scalar(half(1))))
                .status()
                .message(),
            "output 'y' is of FP16, which goes as binary data alone");
  EXPECT_EQ(
      WriteInferBody({}, AnswerWith(Tensor::Scalar(std::string("\xff"))))
          .status()
          .message(),
      "output 'y' has bytes that are no UTF-8, which go as binary data alone");
  EXPECT_EQ(WriteInferBody({}, AnswerWith(Tensor::Scalar(complex64(1, 2))))
                .status()
                .code(),
            absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace headrace::serving
