// Two checkpoints, graphs or models: what differs.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "absl/strings/str_join.h"
#include "base/files/files.h"
#include "command/command.h"
#include "command/show/graph_facts.h"
#include "command/source.h"
#include "command/text/json_writer.h"
#include "formats/checkpoint_reader.h"
#include "google/protobuf/util/message_differencer.h"
#include "op/attr.h"
#include "saved_model/model_file.h"
#include "train/checkpoint_state.h"
#include "train/checkpoint_tensor.h"

namespace headrace::command {
namespace {

using tensorflow::GraphDef;
using tensorflow::MetaGraphDef;
using tensorflow::NodeDef;

constexpr PositionalDef kDiffPositionals[] = {
    {"A", "A SavedModel, a checkpoint or a graph."},
    {"B", "Another of the same kind."}};

constexpr OptionDef kDiffOptions[] = {
    OptionDef{"tolerance", 't', "NUMBER",
              "Of checkpoints and SavedModels: values that differ by no more "
              "are the same (0)."}
        .Of(kModels | Kinds(SourceKind::kCheckpoint)),
    {"json", 0, "", "Print JSON."}};

struct Difference {
  std::string what;  // "tensor", "node", ...
  std::string name;
  std::string text;            // what differs
  std::optional<double> most;  // the greatest difference of elements
};
using Differences = std::vector<Difference>;

// Whether two elements are both NaN, or the same: no subtraction is needed.
template <typename T>
bool Same(const T& a, const T& b) {
  if constexpr (std::is_floating_point_v<T>) {
    return a == b || (std::isnan(a) && std::isnan(b));
  } else {
    return a == b;
  }
}

// How far apart the elements are at most; NaN where one alone is.
std::optional<double> MostDifference(const Tensor& a, const Tensor& b) {
  std::optional<double> most;
  const auto note = [&](double d) {
    if (!most || std::isnan(d) || d > *most) most = d;
  };
  DispatchDType(a.dtype(), NumberTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < a.num_elements(); ++i) {
      const T x = a.data<T>()[i], y = b.data<T>()[i];
      if constexpr (std::is_same_v<T, complex64> ||
                    std::is_same_v<T, complex128>) {
        if (x != y) note(static_cast<double>(std::abs(x - y)));
      } else if constexpr (std::is_integral_v<T>) {
        if (x != y) note(std::abs(static_cast<double>(x) - y));
      } else {
        const double p = static_cast<float>(x), q = static_cast<float>(y);
        if constexpr (std::is_same_v<T, double>) {
          if (!Same(x, y)) note(std::abs(x - y));
        } else if (!Same(p, q)) {
          note(std::abs(p - q));
        }
      }
      // Nothing is greater.
      if (most && std::isnan(*most)) return;
    }
  });
  return most;
}

std::string Described(const CheckpointTensor& t) {
  return absl::StrCat(DTypeText(t.dtype), "[", absl::StrJoin(t.dims, ","), "]");
}

class CheckpointDiff {
 public:
  CheckpointDiff(const CheckpointReader& a, const CheckpointReader& b,
                 double tolerance, Differences* found)
      : a_(a), b_(b), tolerance_(tolerance), found_(found) {}

  Status Compare() {
    for (const std::string& key : a_.keys()) {
      if (b_.Contains(key)) {
        HR_RETURN_IF_ERROR(CompareTensor(key));
      } else {
        found_->push_back({"tensor", key, "only in A", std::nullopt});
      }
    }
    for (const std::string& key : b_.keys()) {
      if (a_.Contains(key)) continue;
      found_->push_back({"tensor", key, "only in B", std::nullopt});
    }
    return OkStatus();
  }

 private:
  Status CompareTensor(const std::string& key) {
    HR_ASSIGN_OR_RETURN(const CheckpointTensor in_a, a_.Lookup(key));
    HR_ASSIGN_OR_RETURN(const CheckpointTensor in_b, b_.Lookup(key));
    if (in_a.dtype != in_b.dtype || in_a.dims != in_b.dims) {
      found_->push_back(
          {"tensor", key,
           absl::StrCat(Described(in_a), " and ", Described(in_b)),
           std::nullopt});
      return OkStatus();
    }
    HR_ASSIGN_OR_RETURN(const Tensor x, ReadCheckpointTensor(a_, key, in_a));
    HR_ASSIGN_OR_RETURN(const Tensor y, ReadCheckpointTensor(b_, key, in_b));
    if (AttrEquals(x, y)) return OkStatus();
    if (const auto most = MostDifference(x, y)) {
      if (*most <= tolerance_) return OkStatus();
      found_->push_back({"tensor", key,
                         absl::StrCat("differs by ", *most, " at most"), most});
    } else if (!DispatchDType(x.dtype(), NumberTypes{}, [](auto) {})) {
      found_->push_back({"tensor", key, "has other elements", std::nullopt});
    }
    return OkStatus();
  }

  const CheckpointReader& a_;
  const CheckpointReader& b_;
  const double tolerance_;
  Differences* const found_;
};

// By name; of several of one name the first.
template <typename List, typename F>
auto ByName(const List& list, F&& name) {
  std::map<std::string, const typename List::value_type*> sorted;
  for (const auto& item : list) sorted.emplace(name(item), &item);
  return sorted;
}

// What is only in one, and what `compare` says of what is in both.
template <typename Map, typename F>
void CompareMaps(const char* what, const Map& a, const Map& b, F&& compare,
                 Differences* found) {
  for (const auto& [name, item] : a) {
    auto it = b.find(name);
    const std::string text =
        it == b.end() ? "only in A" : compare(*item, *it->second);
    if (!text.empty()) found->push_back({what, name, text, std::nullopt});
  }
  for (const auto& [name, item] : b) {
    if (!a.contains(name)) {
      found->push_back({what, name, "only in B", std::nullopt});
    }
  }
}

bool SameMessage(const google::protobuf::Message& a,
                 const google::protobuf::Message& b) {
  return google::protobuf::util::MessageDifferencer::Equals(a, b);
}

std::string InputsText(const NodeDef& n) {
  return absl::StrCat("(", absl::StrJoin(n.input(), ", "), ")");
}

// Where two nodes of one name differ; empty: nowhere.
std::string CompareNodes(const NodeDef& a, const NodeDef& b) {
  std::vector<std::string> parts;
  const auto differs = [&](StringView what, const std::string& x,
                           const std::string& y) {
    parts.push_back(absl::StrCat(what, " ", x, " and ", y));
  };
  if (a.op() != b.op()) differs("op", a.op(), b.op());
  if (InputsText(a) != InputsText(b)) {
    differs("inputs", InputsText(a), InputsText(b));
  }
  if (a.device() != b.device()) differs("device", a.device(), b.device());
  std::map<std::string, const tensorflow::AttrValue*> attrs;
  for (const auto& [name, value] : b.attr()) attrs[name] = &value;
  for (const auto& [name, value] : a.attr()) {
    auto it = b.attr().find(name);
    attrs.erase(name);
    if (it == b.attr().end()) {
      differs(name, AttrText(value), "nothing");
    } else if (!SameMessage(value, it->second)) {
      differs(name, AttrText(value), AttrText(it->second));
    }
  }
  for (const auto& [name, value] : attrs) {
    differs(name, "nothing", AttrText(*value));
  }
  std::sort(parts.begin(), parts.end());
  return absl::StrJoin(parts, "; ");
}

void CompareGraphs(const GraphDef& a, const GraphDef& b, Differences* found) {
  if (!SameMessage(a.versions(), b.versions())) {
    found->push_back({"versions", "producer",
                      absl::StrCat(a.versions().producer(), " and ",
                                   b.versions().producer()),
                      std::nullopt});
  }
  const auto node_name = [](const NodeDef& n) { return n.name(); };
  CompareMaps("node", ByName(a.node(), node_name), ByName(b.node(), node_name),
              CompareNodes, found);
  const auto function_name = [](const tensorflow::FunctionDef& f) {
    return f.signature().name();
  };
  CompareMaps(
      "function", ByName(a.library().function(), function_name),
      ByName(b.library().function(), function_name),
      [&](const auto& f, const auto& g) -> std::string {
        Differences inner;
        CompareMaps("node", ByName(f.node_def(), node_name),
                    ByName(g.node_def(), node_name), CompareNodes, &inner);
        if (!inner.empty()) {
          return absl::StrCat(inner.size(), " nodes differ, first ",
                              inner[0].name, ": ", inner[0].text);
        }
        return SameMessage(f, g) ? "" : "its signature or results differ";
      },
      found);
}

void CompareSignatures(const MetaGraphDef& a, const MetaGraphDef& b,
                       Differences* found) {
  std::map<std::string, const tensorflow::SignatureDef*> in_a, in_b;
  for (const auto& [key, s] : a.signature_def()) in_a[key] = &s;
  for (const auto& [key, s] : b.signature_def()) in_b[key] = &s;
  const auto tensors = [](const auto& infos) {
    std::map<std::string, std::string> sorted;
    for (const auto& [name, info] : infos) {
      sorted[name] =
          absl::StrCat(DTypeText(info.dtype()), ShapeText(info.tensor_shape()));
    }
    return absl::StrJoin(sorted, ", ", absl::PairFormatter(" "));
  };
  CompareMaps(
      "signature", in_a, in_b,
      [&](const auto& s, const auto& t) -> std::string {
        const auto text = [&](const tensorflow::SignatureDef& d) {
          return absl::StrCat("(", tensors(d.inputs()), ") -> (",
                              tensors(d.outputs()), ")");
        };
        return text(s) == text(t) ? ""
                                  : absl::StrCat(text(s), " and ", text(t));
      },
      found);
}

// Functions and most nodes of two exports differ by the numbers in their names:
// models are compared by what ops they have.
void CompareOps(const MetaGraphDef& a, const MetaGraphDef& b,
                Differences* found) {
  const auto ops_a = OpCounts(a.graph_def()), ops_b = OpCounts(b.graph_def());
  std::map<std::string, std::pair<int64_t, int64_t>> counts;
  for (const auto& [op, count] : ops_a) counts[op].first = count;
  for (const auto& [op, count] : ops_b) counts[op].second = count;
  for (const auto& [op, count] : counts) {
    if (count.first == count.second) continue;
    found->push_back(
        {"op", op, absl::StrCat(count.first, " and ", count.second, " nodes"),
         std::nullopt});
  }
}

Status CompareCheckpoints(FileSystem* fs_a, const std::string& a,
                          FileSystem* fs_b, const std::string& b,
                          double tolerance, Differences* found) {
  HR_ASSIGN_OR_RETURN(const auto first, CheckpointReader::Open(fs_a, a));
  HR_ASSIGN_OR_RETURN(const auto second, CheckpointReader::Open(fs_b, b));
  return CheckpointDiff(*first, *second, tolerance, found).Compare();
}

Status CompareModels(const Source& a, const Source& b, double tolerance,
                     Differences* found) {
  HR_ASSIGN_OR_RETURN(const auto first, ReadModel(a));
  HR_ASSIGN_OR_RETURN(const auto second, ReadModel(b));
  const auto by_tags = [](const tensorflow::SavedModel& model) {
    return ByName(model.meta_graphs(), [](const MetaGraphDef& g) {
      return absl::StrJoin(g.meta_info_def().tags(), ", ");
    });
  };
  CompareMaps(
      "graph", by_tags(*first), by_tags(*second),
      [&](const auto& g, const auto& h) -> std::string {
        CompareSignatures(g, h, found);
        CompareOps(g, h, found);
        return "";
      },
      found);
  const std::string in_a = JoinPath(a.path, kVariablesPrefix),
                    in_b = JoinPath(b.path, kVariablesPrefix);
  const bool has_a = CheckpointExists(a.fs, in_a),
             has_b = CheckpointExists(b.fs, in_b);
  if (has_a && has_b) {
    return CompareCheckpoints(a.fs, in_a, b.fs, in_b, tolerance, found);
  }
  if (has_a != has_b) {
    found->push_back({"variables", std::string(kVariablesPrefix),
                      has_a ? "only in A" : "only in B", std::nullopt});
  }
  return OkStatus();
}

void PrintDifferences(const Differences& found, Output& out) {
  for (const Difference& d : found) {
    out.Print(d.what, " ", Escaped(d.name), ": ", Escaped(d.text), "\n");
  }
  if (found.empty()) {
    out.Print("No differences\n");
  } else {
    out.Print(found.size(),
              found.size() == 1 ? " difference\n" : " differences\n");
  }
}

void WriteDifferences(const Differences& found, Output& out) {
  JsonWriter json;
  json.BeginList();
  for (const Difference& d : found) {
    json.BeginObject();
    json.Member("kind", d.what);
    json.Member("name", d.name);
    json.Member("difference", d.text);
    if (d.most) {
      json.Key("max_abs_difference");
      json.Number(*d.most);
    }
    json.End();
  }
  json.End();
  out.Print(json.Take());
}

StatusOr<int> RunDiff(const Arguments& args, Output& out) {
  HR_ASSIGN_OR_RETURN(const double tolerance,
                      args.Number("tolerance", 0, 0, 1e300));
  HR_ASSIGN_OR_RETURN(const Source a, FindSource(args, kDiffOptions));
  HR_ASSIGN_OR_RETURN(const Source b, FindSource(args.positionals()[1]));
  const bool graphs = a.graph && b.graph;
  if (a.kind != b.kind && !graphs) {
    return InvalidArgument("expected two of one kind: ", a.given, " is ",
                           KindName(a.kind), ", ", b.given, " is ",
                           KindName(b.kind));
  }
  Differences found;
  if (graphs) {
    CompareGraphs(a.graph->graph_def(), b.graph->graph_def(), &found);
    CompareSignatures(*a.graph, *b.graph, &found);
  } else if (a.kind == SourceKind::kSavedModel) {
    HR_RETURN_IF_ERROR(CompareModels(a, b, tolerance, &found));
  } else if (a.kind == SourceKind::kCheckpoint) {
    HR_RETURN_IF_ERROR(
        CompareCheckpoints(a.fs, a.path, b.fs, b.path, tolerance, &found));
  } else {
    return Unimplemented(a.given, ": ", KindName(a.kind), " is not compared");
  }
  if (args.Has("json")) {
    WriteDifferences(found, out);
  } else {
    PrintDifferences(found, out);
  }
  return found.empty() ? kDone : kFailed;
}

}  // namespace

const CommandDef kDiffCommand = {
    "diff",
    "What differs between two checkpoints, graphs or models.",
    kDiffPositionals,
    kDiffOptions,
    "Checkpoints by tensor: names, dtypes, shapes and the greatest difference "
    "of\n"
    "values; graphs by node; models by signature, ops and variables. It ends\n"
    "with 1 where something differs.",
    RunDiff};

}  // namespace headrace::command
