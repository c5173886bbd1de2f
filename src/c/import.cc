// Importing GraphDefs.
#include "graph/import.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/hash_map.h"
#include "c/buffer.h"
#include "c/graph.h"
#include "c/status.h"

struct TF_ImportGraphDefOptions {
  headrace::ImportOptions import;
  bool uniquify_prefix = false;
  std::vector<std::pair<std::string, TF_Output>> input_map;  // by text
  std::vector<TF_Operation*> controls;
  std::vector<std::pair<std::string, int>> outputs;
  std::vector<std::string> operations;
  headrace::Status status;  // the first mistake
};

struct TF_ImportGraphDefResults {
  std::vector<TF_Output> outputs;
  std::vector<TF_Operation*> operations;
  std::vector<std::string> missing;
  std::vector<const char*> missing_names;
  std::vector<int> missing_indexes;
};

namespace headrace::capi {
namespace {

using Options = TF_ImportGraphDefOptions;
using Results = TF_ImportGraphDefResults;

constexpr int kControlIndex = -1;

std::string TextOf(const std::string& name, int index) {
  if (index == kControlIndex) return absl::StrCat("^", name);
  return absl::StrCat(name, ":", index);
}

template <typename F>
void Change(Options* options, F&& change) {
  if (options == nullptr) return;
  Status s = Guarded("the C interface", [&]() -> Status { return change(); });
  if (options->status.ok()) options->status = std::move(s);
}

// The prefix with its slash, made one that no node begins with where asked.
std::string PrefixFor(const Options& options, const Graph& graph) {
  std::string prefix = options.import.prefix;
  if (!prefix.empty() && prefix.back() == '/') prefix.pop_back();
  if (prefix.empty()) return prefix;
  HashSet<StringView> taken;
  for (int i = 0; options.uniquify_prefix && i < graph.num_nodes(); ++i) {
    const StringView name = graph.node(i)->name();
    taken.insert(name);
    for (size_t at = name.find('/'); at != StringView::npos;
         at = name.find('/', at + 1)) {
      taken.insert(name.substr(0, at));
    }
  }
  std::string unique = prefix;
  for (int i = 1; taken.contains(unique); ++i) {
    unique = absl::StrCat(prefix, "_", i);
  }
  return unique + "/";
}

// What is imported waits for `controls`: nodes that wait for another imported
// one do so already.
void AddControls(Graph* graph, int first, absl::Span<Node* const> controls) {
  if (controls.empty()) return;
  for (int i = first; i < graph->num_nodes(); ++i) {
    Node* n = graph->node(i);
    const auto is_new = [&](const Node* of) { return of->id() >= first; };
    const bool inherits =
        std::any_of(n->inputs().begin(), n->inputs().end(),
                    [&](const Edge& e) { return is_new(e.node); }) ||
        std::any_of(n->control_inputs().begin(), n->control_inputs().end(),
                    is_new);
    if (inherits) continue;
    for (Node* c : controls) n->AddControlInput(c);
  }
}

// Names as the importer knows them, and what is fed from the graph.
Status Prepare(const Options& options, TF_Graph* g, ImportOptions* import) {
  *import = options.import;
  import->prefix = PrefixFor(options, *g->graph);
  if (!import->prefix.empty() && !IsValidNodeName(import->prefix)) {
    return InvalidArgument("Imported node name prefix '", import->prefix,
                           "' would lead to invalid node names");
  }
  for (const auto& [text, output] : options.input_map) {
    Edge edge;
    if (output.index == kControlIndex) {
      HR_ASSIGN_OR_RETURN(Node * n, NodeOf(g, output.oper));
      edge = {n, kControlIndex};
    } else {
      HR_ASSIGN_OR_RETURN(edge, EdgeOf(g, output));
    }
    import->input_map.emplace_back(text, edge);
  }
  for (const auto& [name, index] : options.outputs) {
    import->return_elements.push_back(TextOf(name, index));
  }
  for (const std::string& name : options.operations) {
    import->return_elements.push_back(name);
  }
  return OkStatus();
}

void SetMissing(const std::vector<std::string>& unused, Results* results) {
  for (const std::string& text : unused) {
    int index = 0;
    std::string name = text;
    if (const size_t colon = text.rfind(':'); colon != std::string::npos) {
      if (absl::SimpleAtoi(StringView(text).substr(colon + 1), &index)) {
        name = text.substr(0, colon);
      }
    } else if (text[0] == '^') {
      name = text.substr(1);
      index = kControlIndex;
    }
    results->missing.push_back(std::move(name));
    results->missing_indexes.push_back(index);
  }
  for (const std::string& name : results->missing) {
    results->missing_names.push_back(name.c_str());
  }
}

Status Import(TF_Graph* g, const TF_Buffer* graph_def, const Options* options,
              Results* results) {
  HR_RETURN_IF_ERROR(NotNull(g, "graph"));
  HR_RETURN_IF_ERROR(NotNull(graph_def, "graph_def"));
  HR_RETURN_IF_ERROR(NotNull(options, "options"));
  HR_RETURN_IF_ERROR(options->status);
  if (graph_def->length > 0) {
    HR_RETURN_IF_ERROR(NotNull(graph_def->data, "graph_def"));
  }
  MutexLock lock(g->mutex);
  ImportOptions import;
  HR_RETURN_IF_ERROR(Prepare(*options, g, &import));
  std::vector<Node*> controls;
  for (const TF_Operation* oper : options->controls) {
    HR_ASSIGN_OR_RETURN(Node * n, NodeOf(g, oper));
    controls.push_back(n);
  }
  const int first = g->graph->num_nodes();
  ImportResults found;
  const StringView bytes(static_cast<const char*>(graph_def->data),
                         graph_def->length);
  HR_RETURN_IF_ERROR(ImportGraphBytes(bytes, import, g->graph.get(), &found));
  AddControls(g->graph.get(), first, controls);
  // Loops read what comes later.
  ++g->changes;
  const size_t outputs = options->outputs.size();
  for (size_t i = 0; i < outputs; ++i) {
    // What was asked for may be fed from the graph itself.
    Edge e = found.returned[i];
    for (const auto& [text, edge] : import.input_map) {
      if (text == import.return_elements[i]) e = edge;
    }
    results->outputs.push_back(g->OutputOf(e));
  }
  for (size_t i = outputs; i < found.returned.size(); ++i) {
    results->operations.push_back(g->OperationOf(found.returned[i].node));
  }
  SetMissing(found.unused_inputs, results);
  return OkStatus();
}

}  // namespace
}  // namespace headrace::capi

namespace capi = headrace::capi;
using headrace::OkStatus;
using headrace::Status;

TF_ImportGraphDefOptions* TF_NewImportGraphDefOptions() {
  return capi::OrElse<TF_ImportGraphDefOptions*>(
      nullptr, [] { return new TF_ImportGraphDefOptions; });
}

void TF_DeleteImportGraphDefOptions(TF_ImportGraphDefOptions* opts) {
  delete opts;
}

void TF_ImportGraphDefOptionsSetPrefix(TF_ImportGraphDefOptions* opts,
                                       const char* prefix) {
  capi::Change(opts, [&] {
    opts->import.prefix = prefix ? prefix : "";
    return OkStatus();
  });
}

void TF_ImportGraphDefOptionsSetDefaultDevice(TF_ImportGraphDefOptions* opts,
                                              const char* device) {
  capi::Change(opts, [&] {
    opts->import.default_device = device ? device : "";
    return OkStatus();
  });
}

void TF_ImportGraphDefOptionsSetUniquifyNames(TF_ImportGraphDefOptions* opts,
                                              unsigned char uniquify_names) {
  if (opts) opts->import.uniquify_names = uniquify_names != 0;
}

void TF_ImportGraphDefOptionsSetUniquifyPrefix(TF_ImportGraphDefOptions* opts,
                                               unsigned char uniquify_prefix) {
  if (opts) opts->uniquify_prefix = uniquify_prefix != 0;
}

void TF_ImportGraphDefOptionsAddInputMapping(TF_ImportGraphDefOptions* opts,
                                             const char* src_name,
                                             int src_index, TF_Output dst) {
  capi::Change(opts, [&]() -> Status {
    HR_RETURN_IF_ERROR(capi::NotNull(src_name, "src_name"));
    opts->input_map.emplace_back(capi::TextOf(src_name, src_index), dst);
    return OkStatus();
  });
}

void TF_ImportGraphDefOptionsRemapControlDependency(
    TF_ImportGraphDefOptions* opts, const char* src_name, TF_Operation* dst) {
  TF_ImportGraphDefOptionsAddInputMapping(opts, src_name, capi::kControlIndex,
                                          {dst, capi::kControlIndex});
}

void TF_ImportGraphDefOptionsAddControlDependency(
    TF_ImportGraphDefOptions* opts, TF_Operation* oper) {
  capi::Change(opts, [&] {
    opts->controls.push_back(oper);
    return OkStatus();
  });
}

void TF_ImportGraphDefOptionsAddReturnOutput(TF_ImportGraphDefOptions* opts,
                                             const char* oper_name, int index) {
  capi::Change(opts, [&]() -> Status {
    HR_RETURN_IF_ERROR(capi::NotNull(oper_name, "oper_name"));
    if (index < 0) {
      return headrace::InvalidArgument("output ", index, " of ", oper_name,
                                       " is asked for");
    }
    opts->outputs.emplace_back(oper_name, index);
    return OkStatus();
  });
}

int TF_ImportGraphDefOptionsNumReturnOutputs(
    const TF_ImportGraphDefOptions* opts) {
  return opts ? static_cast<int>(opts->outputs.size()) : 0;
}

void TF_ImportGraphDefOptionsAddReturnOperation(TF_ImportGraphDefOptions* opts,
                                                const char* oper_name) {
  capi::Change(opts, [&]() -> Status {
    HR_RETURN_IF_ERROR(capi::NotNull(oper_name, "oper_name"));
    opts->operations.emplace_back(oper_name);
    return OkStatus();
  });
}

int TF_ImportGraphDefOptionsNumReturnOperations(
    const TF_ImportGraphDefOptions* opts) {
  return opts ? static_cast<int>(opts->operations.size()) : 0;
}

void TF_ImportGraphDefResultsReturnOutputs(TF_ImportGraphDefResults* results,
                                           int* num_outputs,
                                           TF_Output** outputs) {
  if (num_outputs) *num_outputs = results ? results->outputs.size() : 0;
  if (outputs) *outputs = results ? results->outputs.data() : nullptr;
}

void TF_ImportGraphDefResultsReturnOperations(TF_ImportGraphDefResults* results,
                                              int* num_opers,
                                              TF_Operation*** opers) {
  if (num_opers) *num_opers = results ? results->operations.size() : 0;
  if (opers) *opers = results ? results->operations.data() : nullptr;
}

void TF_ImportGraphDefResultsMissingUnusedInputMappings(
    TF_ImportGraphDefResults* results, int* num_missing_unused_input_mappings,
    const char*** src_names, int** src_indexes) {
  if (num_missing_unused_input_mappings) {
    *num_missing_unused_input_mappings =
        results ? results->missing_names.size() : 0;
  }
  if (src_names) {
    *src_names = results ? results->missing_names.data() : nullptr;
  }
  if (src_indexes) {
    *src_indexes = results ? results->missing_indexes.data() : nullptr;
  }
}

void TF_DeleteImportGraphDefResults(TF_ImportGraphDefResults* results) {
  delete results;
}

TF_ImportGraphDefResults* TF_GraphImportGraphDefWithResults(
    TF_Graph* graph, const TF_Buffer* graph_def,
    const TF_ImportGraphDefOptions* options, TF_Status* status) {
  return capi::OrNull(
      status, [&]() -> headrace::StatusOr<TF_ImportGraphDefResults*> {
        auto results = std::make_unique<TF_ImportGraphDefResults>();
        HR_RETURN_IF_ERROR(
            capi::Import(graph, graph_def, options, results.get()));
        return results.release();
      });
}

TF_ImportGraphDefResults* TF_GraphImportGraphDefWithResultsNoSerialization(
    TF_Graph* graph, const TF_Buffer* graph_def,
    const TF_ImportGraphDefOptions* options, TF_Status* status) {
  return capi::OrNull(
      status, []() -> headrace::StatusOr<TF_ImportGraphDefResults*> {
        return headrace::Unimplemented(
            "TF_GraphImportGraphDefWithResultsNoSerialization reads a C++ "
            "object of TensorFlow's own: serialise the GraphDef and call "
            "TF_GraphImportGraphDefWithResults");
      });
}

void TF_GraphImportGraphDefWithReturnOutputs(
    TF_Graph* graph, const TF_Buffer* graph_def,
    const TF_ImportGraphDefOptions* options, TF_Output* return_outputs,
    int num_return_outputs, TF_Status* status) {
  capi::Into(status, [&]() -> Status {
    const int wanted = TF_ImportGraphDefOptionsNumReturnOutputs(options);
    if (num_return_outputs != wanted) {
      return headrace::InvalidArgument("Expected 'num_return_outputs' to be ",
                                       wanted, ", got ", num_return_outputs);
    }
    if (wanted > 0) {
      HR_RETURN_IF_ERROR(capi::NotNull(return_outputs, "return_outputs"));
    }
    TF_ImportGraphDefResults results;
    HR_RETURN_IF_ERROR(capi::Import(graph, graph_def, options, &results));
    std::copy(results.outputs.begin(), results.outputs.end(), return_outputs);
    return OkStatus();
  });
}

void TF_GraphImportGraphDef(TF_Graph* graph, const TF_Buffer* graph_def,
                            const TF_ImportGraphDefOptions* options,
                            TF_Status* status) {
  capi::Into(status, [&] {
    TF_ImportGraphDefResults results;
    return capi::Import(graph, graph_def, options, &results);
  });
}
