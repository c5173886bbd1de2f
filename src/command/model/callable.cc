#include "command/model/callable.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "base/files/files.h"
#include "command/show/graph_facts.h"
#include "graph/import.h"
#include "graph/needed_nodes.h"
#include "op/emitter.h"
#include "op/reach.h"
#include "op/resource.h"
#include "runtime/executable.h"
#include "runtime/function_caller.h"
#include "saved_model/model_file.h"
#include "saved_model/signature.h"

namespace headrace::command {
namespace {

// saved_model_cli leaves it out, too.

class SignatureCallable : public Callable {
 public:
  SignatureCallable(std::shared_ptr<LoadedModel> model,
                    ModelSignature signature)
      : model_(std::move(model)), signature_(std::move(signature)) {
    const Function& f = *signature_.function->function();
    for (size_t i = 0; i < signature_.inputs.size(); ++i) {
      inputs_.push_back({signature_.inputs[i], f.args[i]->output_type(0),
                         f.args[i]->output_shape(0)});
    }
  }
  const std::vector<Argument>& inputs() const override { return inputs_; }
  const std::vector<std::string>& outputs() const override {
    return signature_.outputs;
  }
  Status Call(absl::Span<const Tensor> inputs,
              std::vector<Tensor>* outputs) override {
    std::vector<Value> values;
    for (const Tensor& t : inputs) values.emplace_back(t);
    ValueList results;
    HR_RETURN_IF_ERROR(signature_.function->Call(values, &results));
    outputs->clear();
    for (const Value& v : results) outputs->push_back(v.tensor());
    return OkStatus();
  }

 private:
  const std::shared_ptr<LoadedModel> model_;
  const ModelSignature signature_;
  std::vector<Argument> inputs_;
};

class GraphCallable : public Callable {
 public:
  static StatusOr<std::unique_ptr<Callable>> Make(
      const Source& source, std::vector<std::string> outputs) {
    auto made = std::make_unique<GraphCallable>();
    made->graph_ = std::make_shared<Graph>();
    HR_RETURN_IF_ERROR(ImportGraphDef(source.graph->graph_def(), {},
                                      made->graph_.get(), nullptr));
    if (outputs.empty()) {
      for (const auto* n : LastNodes(source.graph->graph_def())) {
        outputs.push_back(n->name());
      }
    }
    std::vector<Edge> fetches, feeds;
    for (const std::string& name : outputs) {
      HR_ASSIGN_OR_RETURN(fetches.emplace_back(),
                          made->graph_->FindOutput(name));
    }
    for (Node* n : made->PlaceholdersOf(fetches)) {
      feeds.push_back({n, 0});
      made->inputs_.push_back(
          {n->name(), n->output_type(0), n->output_shape(0)});
    }
    HR_ASSIGN_OR_RETURN(made->executable_,
                        Executable::Make(*made->graph_, feeds, fetches, {},
                                         made->graph_->library().get()));
    made->outputs_ = std::move(outputs);
    return made;
  }

  const std::vector<Argument>& inputs() const override { return inputs_; }
  const std::vector<std::string>& outputs() const override { return outputs_; }
  Status Call(absl::Span<const Tensor> inputs,
              std::vector<Tensor>* outputs) override {
    RunServices services;
    services.resources = &DefaultResources();
    LibraryCaller caller(graph_->library());
    services.functions = &caller;
    std::vector<Tensor> feeds(inputs.begin(), inputs.end());
    return executable_->Run(services, absl::MakeSpan(feeds), outputs);
  }

 private:
  // Those that the fetches need, in the order of the graph.
  std::vector<Node*> PlaceholdersOf(const std::vector<Edge>& fetches) const {
    std::vector<Node*> found = NeededNodes(fetches, {});
    std::erase_if(found, [](const Node* n) {
      return !n->def().Is(OpRole::kPlaceholder) || n->num_inputs() > 0;
    });
    return found;
  }

  std::shared_ptr<Graph> graph_;
  std::unique_ptr<Executable> executable_;
  std::vector<Argument> inputs_;
  std::vector<std::string> outputs_;
};

// The sandbox that the options ask for, or null.
StatusOr<SandboxPtr> SandboxOf(const Source& source, const Arguments& args) {
  const std::optional<std::string> file = args.Get("policy");
  if (!file && !args.Has("safe")) return SandboxPtr();
  SafetyPolicy policy;
  if (file) {
    std::string local;
    HR_ASSIGN_OR_RETURN(FileSystem * fs, FileSystemFor(*file, &local));
    HR_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(fs, local));
    HR_ASSIGN_OR_RETURN(policy, SafetyPolicy::Parse(text));
  }
  return MakeSandbox(std::move(policy),
                     absl::StrCat("the model in ", source.path));
}

StatusOr<std::unique_ptr<Callable>> OpenGraph(const Source& source,
                                              const Arguments& args) {
  HR_ASSIGN_OR_RETURN(SandboxPtr sandbox, SandboxOf(source, args));
  const SandboxScope scope(std::move(sandbox));
  return GraphCallable::Make(source, args.List("outputs"));
}

StatusOr<std::unique_ptr<Callable>> OpenSignature(const Source& source,
                                                  const Arguments& args) {
  LoadedModel::Options options;
  if (args.Has("tag_set")) options.tags = args.List("tag_set");
  HR_ASSIGN_OR_RETURN(options.sandbox, SandboxOf(source, args));
  HR_ASSIGN_OR_RETURN(auto model, LoadedModel::Load(source.folder, options));
  HR_ASSIGN_OR_RETURN(auto signatures, SignaturesOf(*model));
  std::vector<std::string> keys;
  for (const auto& [key, signature] : signatures) keys.push_back(key);
  HR_ASSIGN_OR_RETURN(const std::string key,
                      ChosenSignature(args, keys, source));
  return std::make_unique<SignatureCallable>(std::move(model),
                                             std::move(signatures.at(key)));
}

}  // namespace

StatusOr<std::string> ChosenSignature(const Arguments& args,
                                      const std::vector<std::string>& keys,
                                      const Source& source) {
  std::vector<std::string> real;
  for (const std::string& key : keys) {
    if (key != kInitOpKey) real.push_back(key);
  }
  const auto has = [&](const std::string& key) {
    return std::find(real.begin(), real.end(), key) != real.end();
  };
  const std::optional<std::string> asked = args.Get("signature_def");
  const std::string all = absl::StrJoin(real, ", ");
  if (asked && !has(*asked)) {
    return NotFound(source.given, ": no signature ", *asked,
                    ", there are: ", all);
  }
  if (asked) return *asked;
  if (has("serving_default")) return std::string("serving_default");
  if (real.size() == 1) return real[0];
  if (real.empty()) return NotFound(source.given, ": it has no signatures");
  return InvalidArgument(source.given,
                         ": choose one with --signature_def: ", all);
}

StatusOr<std::unique_ptr<Callable>> OpenCallable(const Source& source,
                                                 const Arguments& args) {
  switch (source.kind) {
    case SourceKind::kSavedModel:
      return OpenSignature(source, args);
    case SourceKind::kGraph:
    case SourceKind::kMetaGraph:
      return OpenGraph(source, args);
    default:
      return InvalidArgument(source.given,
                             ": expected a SavedModel or a graph, got ",
                             KindName(source.kind));
  }
}

}  // namespace headrace::command
