#include "graph/import.h"

#include <google/protobuf/arena.h>

#include <deque>
#include <set>

#include "absl/strings/str_join.h"
#include "base/hash_map.h"
#include "formats/proto_text.h"
#include "formats/version_check.h"
#include "graph/at_node.h"
#include "graph/export.h"
#include "graph/node_importer.h"
#include "op/absent_ops.h"
#include "op/registry.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace headrace {
namespace {

using tensorflow::FunctionDef;
using tensorflow::GraphDef;
using tensorflow::NodeDef;

// f(name) of each function that an attribute of a function's nodes names: made
// before it, they tell the shapes of what they give.
template <typename F>
Status EachCalledBy(const FunctionDef& def, F f) {
  for (const NodeDef& n : def.node_def()) {
    for (const auto& [name, value] : n.attr()) {
      if (value.has_func()) HR_RETURN_IF_ERROR(f(value.func().name()));
      if (!value.has_list()) continue;
      for (const auto& one : value.list().func()) {
        HR_RETURN_IF_ERROR(f(one.name()));
      }
    }
  }
  return OkStatus();
}

// A sandbox's nodes call no functions of the program around it.
Status CheckCallees(const Graph& graph, int first,
                    const FunctionLibrary* library) {
  const auto check = [&](const Node& n, const FuncRef& f) -> Status {
    if (library->Find(f.name)) return OkStatus();
    const FunctionPtr other = GlobalFunctions().Find(f.name);
    if (!other || other->body->sandbox() == graph.sandbox()) return OkStatus();
    return AtNode(PermissionDenied("safe mode: function ", f.name,
                                   " is none of ", graph.sandbox()->whose()),
                  n.name());
  };
  for (int i = first; i < graph.num_nodes(); ++i) {
    const Node& n = *graph.node(i);
    for (const AttrDef& a : n.def().attrs) {
      if (const auto* f = n.op().attrs().Get<FuncRef>(a.name)) {
        HR_RETURN_IF_ERROR(check(n, *f));
      }
      const auto* list = n.op().attrs().Get<std::vector<FuncRef>>(a.name);
      if (list == nullptr) continue;
      for (const FuncRef& f : *list) HR_RETURN_IF_ERROR(check(n, f));
    }
  }
  return OkStatus();
}

// Whether the nodes from `first` on call their functions as these are.
Status CheckCalls(const Graph& graph, int first,
                  const FunctionLibrary* library) {
  for (int i = first; i < graph.num_nodes(); ++i) {
    const Node& n = *graph.node(i);
    Status fits = CheckCall(n.op(), library);
    if (!fits.ok()) return AtNode(fits, n.name());
  }
  if (graph.sandbox()) return CheckCallees(graph, first, library);
  return OkStatus();
}

Status InFunction(const Status& s, StringView name) {
  return Status(s.code(), absl::StrCat(s.message(), "\n\t in function ", name));
}

int64_t CountNodes(const GraphDef& def, const NodeTexts& nodes) {
  int64_t count = static_cast<int64_t>(nodes.nodes().size());
  for (const FunctionDef& f : def.library().function()) {
    count += f.node_def_size();
  }
  return count;
}

class LibraryImporter {
 public:
  // `shared`: functions are found process-wide, too; those of a body, which is
  // run by what knows no library but that.
  LibraryImporter(const GraphDef& def, FunctionLibrary* library, bool shared)
      : producer_(def.versions().producer()),
        library_(library),
        shared_(shared) {
    for (const FunctionDef& f : def.library().function()) {
      defs_.emplace(f.signature().name(), &f);
    }
    for (const auto& g : def.library().gradient()) {
      gradients_[g.function_name()] = g.gradient_func();
    }
    all_ = &def.library();
  }

  Status Import() {
    for (const FunctionDef& f : all_->function()) {
      HR_RETURN_IF_ERROR(ImportOne(f, 0));
    }
    // Calls inside, now that all of the functions are there.
    for (StringView name : started_) {
      FunctionPtr f = library_->Find(name);
      Status fits = CheckCalls(*f->body, 0, library_);
      if (!fits.ok()) return InFunction(fits, name);
    }
    return OkStatus();
  }

 private:
  // Calls within calls beyond this are made in the order they come in.
  static constexpr int kDeepestCalls = 50;

  Status ImportOne(const FunctionDef& def, int depth) {
    const std::string& name = def.signature().name();
    if (name.empty()) return InvalidArgument("A function has no name");
    // Started, not finished: functions that call one another would be made for
    // ever.
    if (!started_.insert(name).second) return OkStatus();
    // Functions as ops of functions recurse on the thread's stack here.
    if (depth > 100) {
      return InvalidArgument("Function ", name, " is nested too deep");
    }
    const auto import_first = [&](StringView needed) {
      auto it = defs_.find(needed);
      return it == defs_.end() ? OkStatus() : ImportOne(*it->second, depth + 1);
    };
    // Functions that nodes use as their op must be there before the body is.
    for (const NodeDef& n : def.node_def()) {
      HR_RETURN_IF_ERROR(import_first(n.op()));
    }
    if (depth < kDeepestCalls) {
      HR_RETURN_IF_ERROR(EachCalledBy(def, import_first));
    }
    auto gradient = gradients_.find(name);
    StatusOr<FunctionPtr> f = ImportFunctionDef(
        def, producer_, library_,
        gradient == gradients_.end() ? "" : std::string(gradient->second));
    if (!f.ok()) return InFunction(f.status(), name);
    if (FunctionPtr old = library_->Find(name)) return CheckSame(*old, **f);
    if (!shared_) return library_->Add(*std::move(f));
    FunctionPtr old = GlobalFunctions().Find(name);
    if (!old) {
      HR_RETURN_IF_ERROR(GlobalFunctions().Add(*f));
      return library_->Add(*std::move(f));
    }
    HR_RETURN_IF_ERROR(CheckSame(*old, **f));
    return library_->Add(std::move(old));  // holds it
  }

  static Status CheckSame(const Function& old, const Function& f) {
    FunctionDef have, now;
    HR_RETURN_IF_ERROR(ExportFunction(old, &have));
    HR_RETURN_IF_ERROR(ExportFunction(f, &now));
    // What the user called arguments is no part of a function.
    for (FunctionDef* def : {&have, &now}) {
      for (auto& [index, attrs] : *def->mutable_arg_attr()) {
        attrs.mutable_attr()->erase("_user_specified_name");
      }
    }
    if (have.DebugString() == now.DebugString()) return OkStatus();
    return InvalidArgument("Cannot add function '", f.name,
                           "' because a different function with the same name "
                           "already exists.");
  }

  const int producer_;
  FunctionLibrary* library_;
  const bool shared_;
  const tensorflow::FunctionDefLibrary* all_;
  HashMap<StringView, const FunctionDef*> defs_;
  HashMap<StringView, StringView> gradients_;
  HashSet<StringView> started_;
};

Status FindReturned(const NodeImporter& importer, const std::string& name,
                    Edge* edge) {
  // A name without a colon asks for the node itself, as return_elements does
  // upstream; -1 marks that.
  if (name.find(':') == std::string::npos) {
    Node* node = importer.Find(name);
    if (node == nullptr) {
      return InvalidArgument("Requested return node '", name,
                             "' not found in graph def");
    }
    *edge = {node, -1};
    return OkStatus();
  }
  StatusOr<Edge> e = importer.FindOutput(name);
  if (!e.ok()) {
    return InvalidArgument("Requested return tensor '", name,
                           "' not found in graph def");
  }
  *edge = *e;
  return OkStatus();
}

Status FillResults(const NodeImporter& importer, const ImportOptions& options,
                   ImportResults* results) {
  for (const std::string& name : options.return_elements) {
    HR_RETURN_IF_ERROR(
        FindReturned(importer, name, &results->returned.emplace_back()));
  }
  HashSet<std::string> used(importer.used_keys().begin(),
                            importer.used_keys().end());
  for (const auto& [name, edge] : options.input_map) {
    if (used.contains(name)) continue;
    Edge own;
    // A mapped name that the graph has but nobody reads is no mistake; one that
    // it does not have may be a misspelling, and is told.
    if (!FindReturned(importer, name, &own).ok()) {
      results->unused_inputs.push_back(name);
    }
  }
  return OkStatus();
}

// `s`, which may be about an op that is not there, with all ops that are not:
// who loads a graph is to know at once what it needs.
Status WithAllMissing(const Status& s, const GraphDef& def,
                      const NodeTexts& nodes, const FunctionLibrary& library) {
  if (!absl::IsNotFound(s)) return s;
  HashSet<StringView> functions;
  for (const FunctionDef& f : def.library().function()) {
    functions.insert(f.signature().name());
  }
  std::set<StringView> missing;
  const auto check = [&](StringView op) {
    if (FindOp(op) == nullptr && !functions.contains(op) &&
        library.Find(op) == nullptr) {
      missing.insert(op);
    }
  };
  for (const NodeText& n : nodes.nodes()) check(n.op);
  for (const FunctionDef& f : def.library().function()) {
    for (const NodeDef& n : f.node_def()) check(n.op());
  }
  // One alone is said as TensorFlow says it.
  if (missing.size() < 2) return s;
  return Status(s.code(), absl::StrCat(s.message(),
                                       " Not registered of what the graph "
                                       "needs are: ",
                                       absl::StrJoin(missing, ", "), ".",
                                       WhyAbsent(missing)));
}

// `def`: what the GraphDef says besides its nodes.
Status Import(const GraphDef& def, const NodeTexts& nodes,
              const ImportOptions& options, Graph* graph,
              ImportResults* results) {
  // Before anything else: a graph of a later version may use what cannot be
  // read.
  HR_RETURN_IF_ERROR(CheckVersions(def.versions(), kGraphVersion,
                                   /*min_producer=*/0, "GraphDef", "graph"));
  HR_RETURN_IF_ERROR(graph->EnterSandbox());
  // Told before anything is made of them.
  HR_RETURN_IF_ERROR(CheckSandboxNodes(CountNodes(def, nodes)));
  // Functions first, as nodes may have them as their ops.
  if (def.has_library()) {
    LibraryImporter functions(def, graph->library().get(), graph->is_body);
    if (const Status s = functions.Import(); !s.ok()) {
      return WithAllMissing(s, def, nodes, *graph->library());
    }
  }
  NodeImporter importer(graph, def.versions().producer(),
                        graph->library().get());
  importer.prefix = options.prefix;
  importer.uniquify_names = options.uniquify_names;
  importer.default_device = options.default_device;
  for (const auto& [name, edge] : options.input_map) {
    importer.input_map.emplace(name, edge);
  }
  int before = graph->num_nodes();
  ImportResults own;
  Status s = importer.Add(nodes);
  if (s.ok()) {
    s = CheckCalls(*graph, before, graph->library().get());
  }
  if (s.ok()) s = FillResults(importer, options, &own);
  if (!s.ok()) {
    // All or nothing of the nodes. Functions stay, as others may have found
    // them by now.
    while (graph->num_nodes() > before) graph->RemoveLastNode();
    return WithAllMissing(s, def, nodes, *graph->library());
  }
  GraphVersions& versions = graph->versions();
  // The older of two producers, the stricter of two consumers: what is true of
  // all nodes.
  versions.producer =
      before == 0 ? def.versions().producer()
                  : std::min(versions.producer, def.versions().producer());
  versions.min_consumer =
      std::max(versions.min_consumer, def.versions().min_consumer());
  if (results) *results = std::move(own);
  return OkStatus();
}

}  // namespace

Status ImportGraphDef(const GraphDef& def, const ImportOptions& options,
                      Graph* graph, ImportResults* results) {
  NodeTexts nodes;
  for (const NodeDef& n : def.node()) nodes.Add(n);
  return Import(def, nodes, options, graph, results);
}

Status ImportGraphBytes(StringView bytes, const ImportOptions& options,
                        Graph* graph, ImportResults* results) {
  // protobuf counts bytes of a message in an int.
  if (bytes.size() > size_t{0x7fffffff}) {
    return InvalidArgument("A GraphDef of ", bytes.size(),
                           " bytes is larger than the 2 GiB that protos may "
                           "have");
  }
  NodeTexts nodes;
  std::string rest;
  GraphDef others;
  // The quick way reads the nodes' texts where they lie. Bytes that are unusual
  // in any way go to protobuf's parser, which decides whether they are right.
  if (nodes.AddFromGraph(bytes, &rest) && others.ParseFromString(rest)) {
    return Import(others, nodes, options, graph, results);
  }
  google::protobuf::ArenaOptions arena_options;
  // Blocks that grow from 64 KiB to 4 MiB: a graph of 100,000 nodes takes few
  // of them, a small one no more than it needs.
  arena_options.start_block_size = 64 << 10;
  arena_options.max_block_size = 4 << 20;
  google::protobuf::Arena arena(arena_options);
  auto* def = google::protobuf::Arena::CreateMessage<GraphDef>(&arena);
  if (!def->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return InvalidArgument("Invalid GraphDef");
  }
  return ImportGraphDef(*def, options, graph, results);
}

StatusOr<std::string> GraphDefFromText(const std::string& text) {
  google::protobuf::Arena arena;
  auto* def = google::protobuf::Arena::CreateMessage<GraphDef>(&arena);
  if (auto error = ReadProtoText(text, def)) {
    return InvalidArgument("Cannot parse the text as a GraphDef: line ",
                           error->line, ", column ", error->column, ": ",
                           error->message);
  }
  return def->SerializeAsString();
}

}  // namespace headrace
