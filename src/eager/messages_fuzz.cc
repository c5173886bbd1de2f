// Any bytes as the serialised messages that ops are given: the first byte
// chooses the op. There are columns of every kind and type, a to i.
#include <string>
#include <vector>

#include "eager/eager_emitter.h"
#include "tensorflow/core/framework/tensor.pb.h"

namespace headrace {
namespace {

using Types = std::vector<DType>;
using Shapes = std::vector<Shape>;

const Types kTypes = {DType::kFloat, DType::kInt64, DType::kString};

Tensor Strings(const std::vector<std::string>& values) {
  return Tensor::Vector<std::string>(values);
}
Tensor Sparse() { return Strings({"a", "b", "c"}); }
Tensor Dense() { return Strings({"d", "e", "f"}); }
Tensor Ragged() { return Strings({"g", "h", "i"}); }
Tensor None() { return Strings({}); }

// Adds a default, what pads a column, and no default at all.
void AddDefaults(std::vector<Tensor>* inputs, bool padded) {
  inputs->push_back(Tensor::Vector<float>({1, 2}));
  inputs->push_back(padded ? Tensor::Scalar<int64_t>(7)
                           : Tensor::Vector<int64_t>({1, 2, 3}));
  inputs->push_back(Tensor::Vector<std::string>({}));
}
Shapes DenseShapes(bool padded) {
  return {Shape{2}, padded ? Shape{Shape::kUnknown, 2} : Shape{3}, Shape()};
}

void ParseExamples(const std::string& bytes) {
  std::vector<Tensor> inputs = {Strings({bytes, bytes}), None(), Sparse(),
                                Dense(), Ragged()};
  AddDefaults(&inputs, true);
  const AttrMap attrs = {{"num_sparse", 3},
                         {"sparse_types", kTypes},
                         {"Tdense", kTypes},
                         {"dense_shapes", DenseShapes(true)},
                         {"ragged_value_types", kTypes},
                         {"ragged_split_types",
                          Types{DType::kInt32, DType::kInt64, DType::kInt32}}};
  RunOp("ParseExampleV2", inputs, attrs).status().IgnoreError();
}

void ParseOneExample(const std::string& bytes) {
  std::vector<Tensor> inputs = {Tensor::Scalar(bytes)};
  AddDefaults(&inputs, true);
  RunOp("ParseSingleExample", inputs,
        {{"num_sparse", 3},
         {"sparse_keys", std::vector<std::string>{"a", "b", "c"}},
         {"dense_keys", std::vector<std::string>{"d", "e", "f"}},
         {"sparse_types", kTypes},
         {"Tdense", kTypes},
         {"dense_shapes", DenseShapes(true)}})
      .status()
      .IgnoreError();
}

void ParseSequences(const std::string& bytes) {
  const Types splits = {DType::kInt64, DType::kInt32, DType::kInt64};
  Tensor assumed = Tensor::Vector<bool>({true, true, true});
  std::vector<Tensor> inputs = {Strings({bytes, bytes}),
                                None(),
                                Sparse(),
                                Dense(),
                                Ragged(),
                                Sparse(),
                                Dense(),
                                Ragged(),
                                assumed};
  AddDefaults(&inputs, false);
  const AttrMap attrs = {
      {"Ncontext_sparse", 3},
      {"context_sparse_types", kTypes},
      {"Tcontext_dense", kTypes},
      {"context_dense_shapes", DenseShapes(false)},
      {"context_ragged_value_types", kTypes},
      {"context_ragged_split_types", splits},
      {"Nfeature_list_sparse", 3},
      {"feature_list_sparse_types", kTypes},
      {"Nfeature_list_dense", 3},
      {"feature_list_dense_types", kTypes},
      {"feature_list_dense_shapes", Shapes{Shape{2}, Shape(), Shape{1}}},
      {"feature_list_ragged_value_types", kTypes},
      {"feature_list_ragged_split_types", splits}};
  RunOp("ParseSequenceExampleV2", inputs, attrs).status().IgnoreError();
  inputs[0] = Tensor::Scalar(bytes);
  RunOp("ParseSequenceExampleV2", inputs, attrs).status().IgnoreError();
}

void ParseOneSequence(const std::string& bytes) {
  std::vector<Tensor> inputs = {Tensor::Scalar(bytes), None()};
  for (const char key :
       {'a', 'b', 'c', 'd', 'e', 'f', 'a', 'b', 'c', 'd', 'e', 'f'}) {
    inputs.push_back(Tensor::Scalar(std::string(1, key)));
  }
  AddDefaults(&inputs, false);
  inputs.push_back(Tensor::Scalar(std::string("name")));
  RunOp("ParseSingleSequenceExample", inputs,
        {{"Ncontext_sparse", 3},
         {"Ncontext_dense", 3},
         {"Nfeature_list_sparse", 3},
         {"Nfeature_list_dense", 3},
         {"context_sparse_types", kTypes},
         {"Tcontext_dense", kTypes},
         {"context_dense_shapes", DenseShapes(false)},
         {"feature_list_sparse_types", kTypes},
         {"feature_list_dense_types", kTypes},
         {"feature_list_dense_shapes", Shapes{Shape{2}, Shape(), Shape{1}}}})
      .status()
      .IgnoreError();
}

void ParseTensor(const std::string& bytes) {
  tensorflow::TensorProto proto;
  if (!proto.ParseFromString(bytes)) return;
  // Many elements cost time, not paths.
  int64_t elements = 1;
  for (const auto& dim : proto.tensor_shape().dim()) {
    if (dim.size() > 0 && elements < 1 << 20) {
      elements *= std::min<int64_t>(dim.size(), 1 << 20);
    }
  }
  if (elements > 1 << 20) proto.mutable_tensor_shape()->clear_dim();
  const auto tensor =
      RunOp("ParseTensor", {Tensor::Scalar(proto.SerializeAsString())},
            {{"out_type", static_cast<DType>(proto.dtype())}});
  if (!tensor.ok()) return;
  RunOp("SerializeTensor", {(*tensor)[0]}).status().IgnoreError();
}

void MergeSummaries(const std::string& bytes) {
  RunOp("MergeSummary", {Tensor::Scalar(bytes), None()}, {{"N", 2}})
      .status()
      .IgnoreError();
}

void Ignore(StringView op, const std::vector<Tensor>& inputs,
            const AttrMap& attrs) {
  RunOp(op, inputs, attrs).status().IgnoreError();
}

// As a message of known types, and as the description of another.
void DecodeMessage(const std::string& bytes) {
  const std::vector<std::string> fields = {"dtype", "tensor_shape", "float_val",
                                           "int_val", "string_val"};
  for (const char* format : {"binary", "text"}) {
    for (const bool sanitize : {false, true}) {
      Ignore(
          "DecodeProtoV2", {Strings({bytes, bytes})},
          {{"message_type", "tensorflow.TensorProto"},
           {"field_names", fields},
           {"output_types", Types{DType::kInt32, DType::kString, DType::kFloat,
                                  DType::kInt32, DType::kString}},
           {"message_format", format},
           {"sanitize", sanitize}});
    }
  }
  const AttrMap attrs = {{"message_type", "a.B"},
                         {"field_names", std::vector<std::string>{"c"}},
                         {"descriptor_source", "bytes://" + bytes}};
  AttrMap decode = attrs, encode = attrs;
  decode.Set("output_types", Types{DType::kInt32});
  Ignore("DecodeProtoV2", {Strings({bytes})}, decode);
  encode.Set("Tinput_types", Types{DType::kInt32});
  Tensor one = Tensor::Vector<int32_t>({1}).WithShape(Shape{1, 1});
  Ignore("EncodeProto", {one, one}, encode);
  Ignore("DecodeJSONExample", {Strings({bytes})}, {});
}

}  // namespace
}  // namespace headrace

extern "C" int LLVMFuzzerTestOneInput(const char* data, size_t size) {
  using namespace headrace;
  constexpr void (*kParsers[])(const std::string&) = {
      ParseExamples, ParseOneExample, ParseSequences, ParseOneSequence,
      ParseTensor,   MergeSummaries,  DecodeMessage};
  if (size == 0 || size > 1 << 16) return 0;
  const size_t which = static_cast<unsigned char>(data[0]);
  kParsers[which % std::size(kParsers)](std::string(data + 1, size - 1));
  return 0;
}
