#include "command/show/graph_facts.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_join.h"
#include "command/output.h"
#include "command/text/array_text.h"
#include "op/registry.h"
#include "tensor/tensor_proto.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/types.pb.h"

namespace headrace::command {
namespace {

constexpr int64_t kMostShown = 8;  // elements of a tensor in one line
constexpr size_t kMostText = 60;   // characters of a text in one line

std::string ShortText(StringView text) {
  if (text.size() <= kMostText) return BytesText(text).substr(1);
  return absl::StrCat(BytesText(text.substr(0, kMostText)).substr(1), "...");
}

std::string TensorInLine(const tensorflow::TensorProto& proto) {
  const std::string described =
      absl::StrCat(DTypeText(proto.dtype()), BriefShape(proto.tensor_shape()));
  int64_t count = 1;
  for (const auto& d : proto.tensor_shape().dim()) {
    if (d.size() < 0 || d.size() > kMostShown) return described;
    count *= d.size();
    if (count > kMostShown) return described;
  }
  const StatusOr<Tensor> t = TensorFromProto(proto);
  if (!t.ok() || !t->has_buffer()) return described;
  std::string text = ArrayText(*t);
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text.size() > 2 * kMostText ? described
                                     : absl::StrCat(described, " ", text);
}

template <typename List, typename F>
std::string ListInLine(const List& list, F&& text) {
  constexpr int kMostItems = 16;
  std::vector<std::string> parts;
  for (int i = 0; i < list.size() && i < kMostItems; ++i) {
    parts.push_back(text(list.Get(i)));
  }
  if (list.size() > kMostItems) {
    parts.push_back(absl::StrCat("... ", list.size(), " in all"));
  }
  return absl::StrCat("[", absl::StrJoin(parts, ", "), "]");
}

std::string ListText(const tensorflow::AttrValue::ListValue& l) {
  const auto number = [](auto v) { return absl::StrCat(v); };
  if (l.s_size()) return ListInLine(l.s(), ShortText);
  if (l.i_size()) return ListInLine(l.i(), number);
  if (l.f_size()) return ListInLine(l.f(), number);
  if (l.b_size()) {
    return ListInLine(
        l.b(), [](bool b) -> std::string { return b ? "true" : "false"; });
  }
  if (l.type_size()) return ListInLine(l.type(), DTypeText);
  if (l.shape_size()) return ListInLine(l.shape(), BriefShape);
  if (l.tensor_size()) return ListInLine(l.tensor(), TensorInLine);
  if (l.func_size()) {
    return ListInLine(l.func(),
                      [](const auto& f) { return Escaped(f.name()); });
  }
  return "[]";
}

}  // namespace

std::map<std::string, int64_t> OpCounts(const tensorflow::GraphDef& graph) {
  std::map<std::string, int64_t> counts;
  for (const auto& n : graph.node()) ++counts[n.op()];
  for (const auto& f : graph.library().function()) {
    for (const auto& n : f.node_def()) ++counts[n.op()];
  }
  for (const auto& f : graph.library().function()) {
    if (FindOp(f.signature().name()) == nullptr) {
      counts.erase(f.signature().name());
    }
  }
  return counts;
}

std::set<std::string> ReachedOps(const tensorflow::GraphDef& graph) {
  std::map<std::string, const tensorflow::FunctionDef*> functions;
  for (const auto& f : graph.library().function()) {
    functions[f.signature().name()] = &f;
  }
  std::set<std::string> ops, called;
  std::vector<const tensorflow::FunctionDef*> todo;
  const auto call = [&](const std::string& name) {
    auto it = functions.find(name);
    if (it == functions.end() || !called.insert(name).second) return;
    todo.push_back(it->second);
  };
  const auto add = [&](const auto& nodes) {
    for (const tensorflow::NodeDef& n : nodes) {
      if (functions.contains(n.op())) {
        call(n.op());
      } else {
        ops.insert(n.op());
      }
      auto f = n.attr().find("f");
      if (f != n.attr().end()) call(f->second.func().name());
    }
  };
  add(graph.node());
  while (!todo.empty()) {
    const tensorflow::FunctionDef* f = todo.back();
    todo.pop_back();
    add(f->node_def());
  }
  return ops;
}

std::string DTypeText(int number) {
  const int base = number > kRefOffset ? number - kRefOffset : number;
  if (!DTypeIsValid(base)) return absl::StrCat("dtype ", number);
  return std::string(DTypePythonName(static_cast<DType>(number)));
}

std::string DTypeProtoText(int number) {
  const std::string name =
      tensorflow::DataType_Name(static_cast<tensorflow::DataType>(number));
  return name.empty() ? absl::StrCat("DT_", number) : name;
}

std::vector<int64_t> ShapeSizes(const tensorflow::TensorShapeProto& shape) {
  std::vector<int64_t> sizes;
  for (const auto& d : shape.dim()) sizes.push_back(d.size());
  return sizes;
}

std::string ShapeText(const tensorflow::TensorShapeProto& shape) {
  if (shape.unknown_rank()) return "unknown_rank";
  return absl::StrCat("(", absl::StrJoin(ShapeSizes(shape), ", "), ")");
}

std::string BriefShape(const tensorflow::TensorShapeProto& shape) {
  if (shape.unknown_rank()) return "?";
  return absl::StrCat("[",
                      absl::StrJoin(ShapeSizes(shape), ",",
                                    [](std::string* out, int64_t d) {
                                      absl::StrAppend(
                                          out, d < 0 ? "?" : absl::StrCat(d));
                                    }),
                      "]");
}

std::string NodeOfInput(const std::string& input) {
  const size_t begin = input.starts_with('^') ? 1 : 0;
  return input.substr(begin, input.find(':', begin) - begin);
}

bool IsPlaceholder(const tensorflow::NodeDef& node) {
  const OpDef* op = FindOp(node.op());
  return op != nullptr && op->Is(OpRole::kPlaceholder);
}

std::vector<const tensorflow::NodeDef*> LastNodes(
    const tensorflow::GraphDef& graph) {
  std::set<std::string> read;
  for (const auto& n : graph.node()) {
    for (const std::string& input : n.input()) read.insert(NodeOfInput(input));
  }
  std::vector<const tensorflow::NodeDef*> last;
  for (const auto& n : graph.node()) {
    if (read.contains(n.name())) continue;
    const OpDef* op = FindOp(n.op());
    if (op != nullptr && (op->outputs.empty() || op->Is(OpRole::kPlaceholder) ||
                          op->Is(OpRole::kConstant))) {
      continue;
    }
    last.push_back(&n);
  }
  return last;
}

std::string AttrText(const tensorflow::AttrValue& value) {
  switch (value.value_case()) {
    case tensorflow::AttrValue::kS:
      return ShortText(value.s());
    case tensorflow::AttrValue::kI:
      return absl::StrCat(value.i());
    case tensorflow::AttrValue::kF:
      return absl::StrCat(value.f());
    case tensorflow::AttrValue::kB:
      return value.b() ? "true" : "false";
    case tensorflow::AttrValue::kType:
      return DTypeText(value.type());
    case tensorflow::AttrValue::kShape:
      return BriefShape(value.shape());
    case tensorflow::AttrValue::kTensor:
      return TensorInLine(value.tensor());
    case tensorflow::AttrValue::kList:
      return ListText(value.list());
    case tensorflow::AttrValue::kFunc:
      return Escaped(value.func().name());
    case tensorflow::AttrValue::kPlaceholder:
      return absl::StrCat("$", Escaped(value.placeholder()));
    case tensorflow::AttrValue::VALUE_NOT_SET:
      break;
  }
  return "unset";
}

}  // namespace headrace::command
