// For tests and fuzzers: small SavedModels that are written here.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/files/files.h"
#include "formats/proto_text.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"

namespace headrace::serving {

// Ends the program where a test's own model cannot be written.
inline void MustBe(bool right, const std::string& what) {
  if (right) return;
  std::fprintf(stderr, "no test model: %s\n", what.c_str());
  std::abort();
}

// Writes a model of one MetaGraphDef, given as text, without variables; the
// folder is one in memory, `name` its own.
inline std::string WriteTestModel(const std::string& name,
                                  const std::string& meta_graph) {
  tensorflow::SavedModel model;
  model.set_saved_model_schema_version(1);
  auto* graph = model.add_meta_graphs();
  MustBe(!ReadProtoText(meta_graph, graph), meta_graph);
  graph->mutable_meta_info_def()->add_tags("serve");
  const std::string folder = "ram://test_models/" + name;
  std::string local;
  FileSystem* fs = *FileSystemFor(folder, &local);
  MustBe(CreateDirectories(fs, local).ok(), folder);
  MustBe(WriteFileAtomically(fs, JoinPath(local, "saved_model.pb"),
                             model.SerializeAsString())
             .ok(),
         folder);
  return folder;
}

inline std::string PlaceholderText(const std::string& name,
                                   const std::string& dtype) {
  return "node { name: '" + name +
         "' op: 'Placeholder' attr { key: 'dtype' value { type: " + dtype +
         " } } attr { key: 'shape' value { shape { dim { size: -1 } } } } } ";
}
inline std::string InfoText(const std::string& side, const std::string& key,
                            const std::string& tensor,
                            const std::string& dtype) {
  return side + " { key: '" + key + "' value { name: '" + tensor +
         "' dtype: " + dtype + " tensor_shape { dim { size: -1 } } } } ";
}

// sum = x + y, vectors of floats; y is 10, 20 where it is not given.
inline std::string WriteModelWithDefault() {
  return WriteTestModel(
      "defaults",
      "graph_def { " + PlaceholderText("x", "DT_FLOAT") +
          PlaceholderText("y", "DT_FLOAT") +
          "node { name: 'sum' op: 'AddV2' input: 'x' input: 'y' "
          "attr { key: 'T' value { type: DT_FLOAT } } } "
          "versions { producer: 1882 } } "
          "signature_def { key: 'serving_default' value { method_name: "
          "'tensorflow/serving/predict' " +
          InfoText("inputs", "x", "x:0", "DT_FLOAT") +
          InfoText("inputs", "y", "y:0", "DT_FLOAT") +
          InfoText("outputs", "sum", "sum:0", "DT_FLOAT") +
          "defaults { key: 'y' value { dtype: DT_FLOAT tensor_shape { dim { "
          "size: 2 } } float_val: 10 float_val: 20 } } } }");
}

// ones: as many as the vector `dims` of int32 says.
inline std::string WriteModelOfOnes() {
  return WriteTestModel(
      "ones",
      "graph_def { " + PlaceholderText("dims", "DT_INT32") +
          "node { name: 'one' op: 'Const' attr { key: 'dtype' value { type: "
          "DT_FLOAT } } attr { key: 'value' value { tensor { dtype: DT_FLOAT "
          "tensor_shape {} float_val: 1 } } } } "
          "node { name: 'ones' op: 'Fill' input: 'dims' input: 'one' "
          "attr { key: 'T' value { type: DT_FLOAT } } "
          "attr { key: 'index_type' value { type: DT_INT32 } } } "
          "versions { producer: 1882 } } "
          "signature_def { key: 'serving_default' value { method_name: "
          "'tensorflow/serving/predict' " +
          InfoText("inputs", "dims", "dims:0", "DT_INT32") +
          InfoText("outputs", "ones", "ones:0", "DT_FLOAT") + "} }");
}

}  // namespace headrace::serving
