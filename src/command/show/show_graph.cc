// Graphs: what goes in and out, which ops they have, and their nodes.
#include <algorithm>

#include "absl/strings/str_join.h"
#include "command/show/graph_facts.h"
#include "command/show/show.h"
#include "command/text/json_writer.h"

namespace headrace::command {
namespace {

using tensorflow::GraphDef;
using tensorflow::MetaGraphDef;
using tensorflow::NodeDef;

// "x (float32, [?,3])".
std::string PlaceholderText(const NodeDef& n) {
  std::string text = Escaped(n.name());
  auto dtype = n.attr().find("dtype");
  auto shape = n.attr().find("shape");
  if (dtype == n.attr().end()) return text;
  absl::StrAppend(&text, " (", DTypeText(dtype->second.type()));
  if (shape != n.attr().end()) {
    absl::StrAppend(&text, ", ", BriefShape(shape->second.shape()));
  }
  return text + ")";
}

std::string EscapedList(
    const google::protobuf::RepeatedPtrField<std::string>& names) {
  return absl::StrJoin(names, ", ", [](std::string* out, const std::string& s) {
    *out += Escaped(s);
  });
}

// "y = AddV2(x, c) {T=float32} @/cpu:0".
void PrintNode(const NodeDef& n, StringView indent, Output& out) {
  std::vector<std::string> attrs;
  for (const auto& [name, value] : n.attr()) {
    attrs.push_back(absl::StrCat(Escaped(name), "=", AttrText(value)));
  }
  std::sort(attrs.begin(), attrs.end());
  out.Print(indent, Escaped(n.name()), " = ", Escaped(n.op()), "(",
            EscapedList(n.input()), ")");
  if (!attrs.empty()) out.Print(" {", absl::StrJoin(attrs, ", "), "}");
  if (!n.device().empty()) out.Print(" @", Escaped(n.device()));
  out.Print("\n");
}

void PrintNodes(const GraphDef& g, Output& out) {
  out.Print("\nNodes:\n");
  for (const NodeDef& n : g.node()) {
    if (out.closed()) return;
    PrintNode(n, "  ", out);
  }
  for (const auto& f : g.library().function()) {
    const auto& s = f.signature();
    const auto args = [](const auto& list) {
      return absl::StrJoin(list, ", ", [](std::string* text, const auto& a) {
        absl::StrAppend(
            text, Escaped(a.name()),
            a.type() ? absl::StrCat(": ", DTypeText(a.type())) : "");
      });
    };
    out.Print("\nFunction ", Escaped(s.name()), "(", args(s.input_arg()),
              ") -> (", args(s.output_arg()), "):\n");
    for (const NodeDef& n : f.node_def()) {
      if (out.closed()) return;
      PrintNode(n, "  ", out);
    }
  }
}

void PrintSummary(const GraphDef& g, Output& out) {
  out.Print("GraphDef: ", g.node_size(), " nodes, ",
            g.library().function_size(), " functions, producer ",
            g.versions().producer(), ", min_consumer ",
            g.versions().min_consumer(), "\n\nPlaceholders:\n");
  for (const NodeDef& n : g.node()) {
    if (IsPlaceholder(n)) out.Print("  ", PlaceholderText(n), "\n");
  }
  out.Print("\nNodes that none reads:\n");
  for (const NodeDef* n : LastNodes(g)) {
    out.Print("  ", Escaped(n->name()), " (", Escaped(n->op()), ")\n");
  }
  out.Print("\nOps:\n");
  for (const auto& [op, count] : OpCounts(g)) {
    out.Print("  ", Escaped(op), ": ", count, "\n");
  }
}

void PrintMeta(const MetaGraphDef& meta, Output& out) {
  const auto& info = meta.meta_info_def();
  out.Print("MetaGraphDef with tag-set: '", EscapedList(info.tags()),
            "', TensorFlow ", Escaped(info.tensorflow_version()), "\n");
  for (const auto& [key, signature] : meta.signature_def()) {
    out.Print("\nsignature_def['", Escaped(key), "']:\n");
    PrintSignature(signature, 1, out);
  }
  out.Print("\nCollections:\n");
  std::vector<std::string> names;
  for (const auto& [name, collection] : meta.collection_def()) {
    names.push_back(Escaped(name));
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) out.Print("  ", name, "\n");
  out.Print("\n");
}

void WriteNode(const NodeDef& n, JsonWriter& json) {
  json.BeginObject();
  json.Member("name", n.name());
  json.Member("op", n.op());
  json.TextsMember("inputs", n.input());
  if (!n.device().empty()) json.Member("device", n.device());
  std::map<std::string, std::string> attrs;
  for (const auto& [name, value] : n.attr()) attrs[name] = AttrText(value);
  json.Key("attrs");
  json.BeginObject();
  for (const auto& [name, text] : attrs) json.Member(name, text);
  json.End();
  json.End();
}

template <typename Nodes>
void WriteNodes(const Nodes& nodes, JsonWriter& json) {
  json.Key("nodes");
  json.BeginList();
  for (const NodeDef& n : nodes) WriteNode(n, json);
  json.End();
}

void WriteGraph(const Source& source, bool all, Output& out) {
  const GraphDef& g = source.graph->graph_def();
  JsonWriter json;
  json.BeginObject();
  json.Member("kind",
              source.kind == SourceKind::kGraph ? "graph" : "meta_graph");
  json.Member("path", source.given);
  json.IntMember("producer", g.versions().producer());
  json.IntMember("min_consumer", g.versions().min_consumer());
  json.IntMember("node_count", g.node_size());
  std::vector<std::string> placeholders, last, collections;
  for (const NodeDef& n : g.node()) {
    if (IsPlaceholder(n)) placeholders.push_back(n.name());
  }
  for (const NodeDef* n : LastNodes(g)) last.push_back(n->name());
  for (const auto& [name, c] : source.graph->collection_def()) {
    collections.push_back(name);
  }
  json.TextsMember("placeholders", placeholders);
  json.TextsMember("not_read", last);
  json.TextsMember("collections", collections);
  json.Key("ops");
  json.BeginObject();
  for (const auto& [op, count] : OpCounts(g)) json.IntMember(op, count);
  json.End();
  if (all) WriteNodes(g.node(), json);
  json.Key("functions");
  json.BeginObject();
  for (const auto& f : g.library().function()) {
    json.Key(f.signature().name());
    json.BeginObject();
    json.IntMember("node_count", f.node_def_size());
    if (all) WriteNodes(f.node_def(), json);
    json.End();
  }
  json.End();
  json.End();
  out.Print(json.Take());
}

}  // namespace

Status ShowGraph(const Source& source, const Arguments& args, Output& out) {
  if (args.Has("json")) {
    WriteGraph(source, args.Has("all"), out);
    return OkStatus();
  }
  if (source.kind == SourceKind::kMetaGraph) PrintMeta(*source.graph, out);
  PrintSummary(source.graph->graph_def(), out);
  if (args.Has("all")) PrintNodes(source.graph->graph_def(), out);
  return OkStatus();
}

}  // namespace headrace::command
