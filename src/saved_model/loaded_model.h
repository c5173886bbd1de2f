// A SavedModel in this process: its functions, and what they read.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/hash_map.h"
#include "function/concrete_function.h"
#include "op/resource.h"
#include "saved_model/import_functions.h"
#include "saved_model/model_file.h"
#include "saved_model/session_objects.h"
#include "train/trackable.h"

namespace headrace {

// Objects are numbered as in the file; 0 is the root. Immutable once loaded, as
// far as its variables and tables are.
class LoadedModel {
 public:
  struct Options {
    std::optional<Tags> tags;
    // Variables that the checkpoint lacks stay without a value.
    bool allow_partial_checkpoint = false;
    // No variable gets a value.
    bool skip_checkpoint = false;
    // It is taken as a graph for sessions though it has objects, too.
    bool as_session = false;
    // What the model is confined to, in loading and whenever it runs; null: to
    // what the calling thread is.
    SandboxPtr sandbox;
  };
  // Reads, makes variables and resources and gives them their values. Runs
  // eagerly. Errors are those of ReadSavedModel, FindMetaGraph,
  // ImportFunctions; PermissionDenied, ResourceExhausted and DeadlineExceeded
  // for what the sandbox refuses; DataLoss for an object graph that does not
  // hold together, those of the checkpoint, and what the functions run into
  // that make resources.
  static StatusOr<std::shared_ptr<LoadedModel>> Load(const std::string& folder,
                                                     const Options& options);
  // The same of a file that has been read; `graph` is one of `model`.
  static StatusOr<std::shared_ptr<LoadedModel>> Make(
      ModelFile model, tensorflow::MetaGraphDef* graph,
      const std::string& folder, const Options& options);

  // Without its graph, of which functions and constants were made.
  const tensorflow::MetaGraphDef& meta_graph() const { return *graph_; }
  int num_objects() const { return graph_->object_graph_def().nodes_size(); }
  const tensorflow::SavedObject& object(int id) const {
    return graph_->object_graph_def().nodes(id);
  }
  // Where the model is one of TensorFlow 1; its `graph` is null for others.
  const SessionGraph& session() const { return session_; }
  // The child of that name, or -1.
  int Child(int id, StringView name) const;

  // What functions capture of an object: the handle of a variable or resource,
  // a constant, an asset's path. Null for other objects.
  const Value& value(int id) const { return values_[id]; }
  // Of the function that an object is, or of its first trace; null where it is
  // no function.
  const std::string* function_name(int id) const;
  // By the name that the file has for it; null where there is none.
  std::shared_ptr<ConcreteFunction> function(const std::string& name) const;
  // What it takes and gives, as StructuredValues.
  const tensorflow::SavedConcreteFunction& signature_of(
      const std::string& name) const {
    return graph_->object_graph_def().concrete_functions().at(name);
  }

 private:
  friend class ModelLoader;
  LoadedModel() = default;

  ModelFile model_;
  tensorflow::MetaGraphDef* graph_ = nullptr;  // of model_
  ImportedFunctions imported_;
  SessionGraph session_;
  std::vector<Value> values_;  // by object
  HashMap<std::string, std::shared_ptr<ConcreteFunction>> functions_;
};

}  // namespace headrace
