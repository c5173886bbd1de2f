// What graphs of all kinds have in common for those who look at them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"

namespace headrace::command {

// How many nodes each op has, those of the functions included; calls of
// functions by their names are left out.
std::map<std::string, int64_t> OpCounts(const tensorflow::GraphDef& graph);

// The ops that the graph's nodes and the functions that they call have, as
// saved_model_cli lists them: without those of branches and loops.
std::set<std::string> ReachedOps(const tensorflow::GraphDef& graph);

// "float32", or the number of a dtype that has no name.
std::string DTypeText(int number);
// "DT_FLOAT".
std::string DTypeProtoText(int number);
// "(-1, 3)", "(2)", "unknown_rank": as saved_model_cli has it.
std::string ShapeText(const tensorflow::TensorShapeProto& shape);
// "[?,3]", "?".
std::string BriefShape(const tensorflow::TensorShapeProto& shape);
// Sizes, -1 unknown.
std::vector<int64_t> ShapeSizes(const tensorflow::TensorShapeProto& shape);

// "^a" -> "a", "a:1" -> "a".
std::string NodeOfInput(const std::string& input);
// Names of nodes that no other reads, without those that only check or print.
std::vector<const tensorflow::NodeDef*> LastNodes(
    const tensorflow::GraphDef& graph);
bool IsPlaceholder(const tensorflow::NodeDef& node);

// An attribute in one line: "float32", "[1,2]", "'SAME'", a large tensor by its
// dtype and shape.
std::string AttrText(const tensorflow::AttrValue& value);

}  // namespace headrace::command
