// SavedModels in the words of `saved_model_cli show --all`.
#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_join.h"
#include "command/show/graph_facts.h"
#include "command/show/show.h"
#include "command/show/structure_text.h"
#include "command/text/json_writer.h"
#include "saved_model/model_file.h"

namespace headrace::command {
namespace {

using tensorflow::MetaGraphDef;
using tensorflow::SavedObject;
using tensorflow::SignatureDef;
using tensorflow::TensorInfo;

// Of the map of a proto, in order of key.
template <typename Map>
auto Sorted(const Map& map) {
  std::map<std::string, const typename Map::mapped_type*> sorted;
  for (const auto& [key, value] : map) sorted.emplace(key, &value);
  return sorted;
}

void PrintTensors(const char* which,
                  const google::protobuf::Map<std::string, TensorInfo>& infos,
                  const std::string& indent, Output& out) {
  out.Print(indent, "The given SavedModel SignatureDef contains the following ",
            which, "(s):\n");
  for (const auto& [key, info] : Sorted(infos)) {
    const std::string inner = absl::StrCat("\n", indent, "      ");
    out.Print(indent, "  ", which, "s['", Escaped(key),
              "'] tensor_info:", inner,
              "dtype: ", DTypeProtoText(info->dtype()), inner,
              "shape: ", ShapeText(info->tensor_shape()), inner,
              "name: ", Escaped(info->name()), "\n");
  }
}

// What the children of the root are that are functions: their traces.
struct NamedFunction {
  std::string name;
  std::vector<std::string> traces;  // names, in order
};

std::vector<NamedFunction> FunctionsOf(const MetaGraphDef& graph) {
  std::vector<NamedFunction> found;
  const auto& objects = graph.object_graph_def();
  if (objects.nodes_size() == 0) return found;
  for (const auto& child : objects.nodes(0).children()) {
    if (child.node_id() < 0 || child.node_id() >= objects.nodes_size()) {
      continue;
    }
    const SavedObject& o = objects.nodes(child.node_id());
    NamedFunction f{child.local_name(), {}};
    if (o.has_bare_concrete_function()) {
      f.traces = {o.bare_concrete_function().concrete_function_name()};
    } else if (o.has_function()) {
      f.traces = {o.function().concrete_functions().begin(),
                  o.function().concrete_functions().end()};
      std::sort(f.traces.begin(), f.traces.end());
    } else {
      continue;
    }
    found.push_back(std::move(f));
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return found;
}

const tensorflow::StructuredValue* SignatureOfTrace(const MetaGraphDef& graph,
                                                    const std::string& trace) {
  const auto& all = graph.object_graph_def().concrete_functions();
  auto it = all.find(trace);
  return it == all.end() ? nullptr
                         : &it->second.canonicalized_input_signature();
}

void PrintFunctions(const MetaGraphDef& graph, Output& out) {
  out.Print("\nConcrete Functions:");
  for (const NamedFunction& f : FunctionsOf(graph)) {
    out.Print("\n  Function Name: '", Escaped(f.name), "'\n");
    int option = 0;
    for (const std::string& trace : f.traces) {
      ++option;
      const auto* signature = SignatureOfTrace(graph, trace);
      if (signature != nullptr) PrintTrace(option, *signature, out);
    }
  }
}

void PrintMetaGraph(const MetaGraphDef& graph, Output& out) {
  const auto& tags = graph.meta_info_def().tags();
  out.Print("\nMetaGraphDef with tag-set: '",
            Escaped(absl::StrJoin(tags, ", ")),
            "' contains the following SignatureDefs:\n");
  for (const auto& [key, signature] : Sorted(graph.signature_def())) {
    out.Print("\nsignature_def['", Escaped(key), "']:\n");
    PrintSignature(*signature, 1, out);
  }
  const auto quoted = [](std::string* text, const std::string& s) {
    absl::StrAppend(text, "'", Escaped(s), "'");
  };
  const std::set<std::string> ops = ReachedOps(graph.graph_def());
  out.Print("The MetaGraph with tag set [", absl::StrJoin(tags, ", ", quoted),
            "] contains the following ops: {", absl::StrJoin(ops, ", ", quoted),
            "}\n");
}

void WriteTensors(StringView key,
                  const google::protobuf::Map<std::string, TensorInfo>& infos,
                  JsonWriter& json) {
  json.Key(key);
  json.BeginObject();
  for (const auto& [name, info] : Sorted(infos)) {
    json.Key(name);
    json.BeginObject();
    json.Member("dtype", DTypeText(info->dtype()));
    if (info->tensor_shape().unknown_rank()) {
      json.Key("shape");
      json.Null();
    } else {
      json.IntsMember("shape", ShapeSizes(info->tensor_shape()));
    }
    json.Member("name", info->name());
    json.End();
  }
  json.End();
}

void WriteSignature(const SignatureDef& signature, JsonWriter& json) {
  json.BeginObject();
  WriteTensors("inputs", signature.inputs(), json);
  WriteTensors("outputs", signature.outputs(), json);
  json.Member("method_name", signature.method_name());
  json.End();
}

void WriteSignatures(const MetaGraphDef& graph, JsonWriter& json) {
  json.Key("signatures");
  json.BeginObject();
  for (const auto& [key, signature] : Sorted(graph.signature_def())) {
    json.Key(key);
    WriteSignature(*signature, json);
  }
  json.End();
}

void WriteFunctions(const MetaGraphDef& graph, JsonWriter& json) {
  json.Key("functions");
  json.BeginObject();
  for (const NamedFunction& f : FunctionsOf(graph)) {
    json.Key(f.name);
    json.BeginList();
    for (const std::string& trace : f.traces) {
      const auto* signature = SignatureOfTrace(graph, trace);
      json.BeginObject();
      json.Member("name", trace);
      if (signature) json.Member("signature", StructureText(*signature));
      json.End();
    }
    json.End();
  }
  json.End();
}

void WriteVariables(const MetaGraphDef& graph, JsonWriter& json) {
  json.Key("variables");
  json.BeginList();
  for (const SavedObject& o : graph.object_graph_def().nodes()) {
    if (!o.has_variable()) continue;
    json.BeginObject();
    json.Member("name", o.variable().name());
    json.Member("dtype", DTypeText(o.variable().dtype()));
    json.IntsMember("shape", ShapeSizes(o.variable().shape()));
    json.Key("trainable");
    json.Bool(o.variable().trainable());
    json.End();
  }
  json.End();
}

void WriteMetaGraph(const MetaGraphDef& graph, JsonWriter& json) {
  json.BeginObject();
  json.TextsMember("tags", graph.meta_info_def().tags());
  json.Member("tensorflow_version", graph.meta_info_def().tensorflow_version());
  json.IntMember("producer", graph.graph_def().versions().producer());
  WriteSignatures(graph, json);
  json.Key("ops");
  json.BeginObject();
  for (const auto& [op, count] : OpCounts(graph.graph_def())) {
    json.IntMember(op, count);
  }
  json.End();
  WriteFunctions(graph, json);
  WriteVariables(graph, json);
  json.End();
}

// The graphs that the options ask for.
StatusOr<std::vector<const MetaGraphDef*>> Chosen(tensorflow::SavedModel* model,
                                                  const Arguments& args) {
  std::vector<const MetaGraphDef*> graphs;
  if (!args.Has("tag_set")) {
    for (const MetaGraphDef& g : model->meta_graphs()) graphs.push_back(&g);
    return graphs;
  }
  HR_ASSIGN_OR_RETURN(const MetaGraphDef* graph,
                      MetaGraphOfTags(model, args.List("tag_set")));
  graphs.push_back(graph);
  return graphs;
}

Status ShowOneSignature(const std::vector<const MetaGraphDef*>& graphs,
                        const std::string& key, const Source& source,
                        bool as_json, Output& out) {
  for (const MetaGraphDef* g : graphs) {
    auto it = g->signature_def().find(key);
    if (it == g->signature_def().end()) continue;
    if (as_json) {
      JsonWriter json;
      WriteSignature(it->second, json);
      out.Print(json.Take());
    } else {
      PrintSignature(it->second, 0, out);
    }
    return OkStatus();
  }
  return NotFound(source.given, ": the SavedModel has no signature ", key);
}

}  // namespace

void PrintSignature(const SignatureDef& signature, int levels, Output& out) {
  const std::string indent(2 * levels, ' ');
  PrintTensors("input", signature.inputs(), indent, out);
  PrintTensors("output", signature.outputs(), indent, out);
  out.Print(indent, "Method name is: ", Escaped(signature.method_name()), "\n");
}

Status ShowModel(const Source& source, const Arguments& args, Output& out) {
  HR_ASSIGN_OR_RETURN(const auto model, ReadModel(source));
  HR_ASSIGN_OR_RETURN(const auto graphs, Chosen(model.get(), args));
  if (const auto key = args.Get("signature_def")) {
    return ShowOneSignature(graphs, *key, source, args.Has("json"), out);
  }
  if (args.Has("json")) {
    JsonWriter json;
    json.BeginObject();
    json.Member("kind", "saved_model");
    json.Member("path", source.given);
    json.Key("meta_graphs");
    json.BeginList();
    for (const MetaGraphDef* g : graphs) WriteMetaGraph(*g, json);
    json.End();
    json.End();
    out.Print(json.Take());
    return OkStatus();
  }
  for (const MetaGraphDef* g : graphs) PrintMetaGraph(*g, out);
  for (const MetaGraphDef* g : graphs) {
    if (!g->has_object_graph_def()) continue;
    PrintFunctions(*g, out);
    break;
  }
  return OkStatus();
}

}  // namespace headrace::command
