// Writes SavedModels:
//
//   FOLDER/saved_model.pb       one graph: the objects; the functions; nodes
//   (or .cpb, in chunks)        that
//                               serve signatures, restore and save in a session
//   FOLDER/variables/variables  a checkpoint of the objects' values
//   FOLDER/assets/              files that the objects name
//
// It is written last and at once: a folder is a model only when all
// of it is there.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/hash_map.h"
#include "function/concrete_function.h"
#include "graph/builder.h"
#include "saved_model/model_file.h"
#include "train/saver.h"

namespace headrace {

// Used once, by one thread: objects are added, then what they lead to and their
// functions, then all is written.
class ModelWriter {
 public:
  // What a front end calls its version.
  struct Options {
    Tags tags = {"serve"};
    std::string version, git_version;
    // Alias by function.
    std::vector<std::pair<std::string, std::string>> aliases;
    // In chunks even where the model is smaller than 2 GiB.
    bool in_chunks = false;
  };

  ModelWriter();

  // Adds an object and returns its number, 0 for the first, the root. `value`:
  // what functions capture of it, null where they cannot.
  int AddObject(tensorflow::SavedObject object, Value value = {});
  // The same of a constant. FailedPrecondition for a graph's tensor that is
  // none.
  StatusOr<int> AddKnown(tensorflow::SavedObject object, const Value& value);
  // The same of a file, which is copied.
  StatusOr<int> AddAsset(Value path);
  // To add children to. Good until the next object is added.
  tensorflow::SavedObject* object(int id) {
    return objects_->mutable_nodes(id);
  }
  int num_objects() const { return objects_->nodes_size(); }

  // A function that objects name. Tensors that it captures and no object has
  // become constants. FailedPrecondition for resources that no object has,
  // with upstream's words. Nothing happens when it was added before.
  Status AddFunction(const ConcreteFunction& f,
                     tensorflow::StructuredValue inputs,
                     tensorflow::StructuredValue outputs);

  // In a session these give resource `id` its handle and its contents; the
  // latter may be null.
  void SetResourceFunctions(int id, std::shared_ptr<ConcreteFunction> create,
                            std::shared_ptr<ConcreteFunction> initialize);
  // What sessions and servers call by `key`.
  struct Signature {
    std::string key;
    std::shared_ptr<ConcreteFunction> function;  // it has been added
    std::vector<std::string> inputs;             // of its arguments, in order
    std::vector<std::string> outputs;  // by name; one is several results where
                                       // it is a composite tensor
    // Inputs that may be left out, and their values.
    HashMap<std::string, Tensor> defaults;
  };
  void AddSignature(Signature signature);

  // Adds the gradients that nodes of the functions ask for by name, as
  // functions. To be called once, when all functions have been added. Gives
  // warnings, of those that cannot be written; errors of the gradients' own.
  StatusOr<std::vector<std::string>> AddGradients();

  // Writes all; `root` is the root as checkpoints see it.
  Status Write(const std::string& folder, const TrackablePtr& root,
               const Options& options);

 private:
  struct ResourceFunctions {
    std::shared_ptr<ConcreteFunction> create, initialize;
  };
  class GradientWriter;  // model_gradients.cc

  // Of what `f` captures as argument `arg`.
  StatusOr<int> ObjectOf(const Function& f, const Value& capture, size_t arg);
  // Says in the graph which functions the gradients are.
  void NameGradients(tensorflow::GraphDef* def) const;

  // The graph for sessions (session_graph.cc).
  Status MakeGraph(const GraphValues& values);
  // What stands for an object's value there.
  StatusOr<Value> InGraph(int id);
  StatusOr<Value> MakeInGraph(int id);
  StatusOr<Value> AssetInGraph(int id);
  // `initializes`: it gets assets' paths before the graph's variables have
  // them.
  StatusOr<ValueList> CallInGraph(const ConcreteFunction& f,
                                  std::vector<Value> args,
                                  bool initializes = false);
  Status MakeSignature(const Signature& signature);
  // A placeholder, or one with a default.
  StatusOr<Value> MakeInput(const Signature& signature, size_t i);
  Status MakeInitializers();
  Status MakeSaver(const GraphValues& values);

  Status CopyAssets(FileSystem* fs, const std::string& folder) const;

  tensorflow::SavedModel model_;
  tensorflow::MetaGraphDef* const graph_def_;    // of model_
  tensorflow::SavedObjectGraph* const objects_;  // of model_
  std::vector<Value> values_;                    // by object
  HashMap<uint64_t, int> by_value_;              // id of a value -> object
  std::vector<std::pair<std::string, std::string>> assets_;  // path, name
  HashMap<int, ResourceFunctions> resources_;                // by object
  std::vector<int> resource_order_;
  std::vector<Signature> signatures_;
  std::vector<FunctionPtr> functions_;
  // What nodes ask for, and the function.
  std::vector<std::pair<std::string, std::string>> gradients_;
  // By (function, node): what it asks for in the file.
  std::map<std::pair<std::string, std::string>, std::string> renamed_gradients_;

  std::shared_ptr<Graph> graph_;
  std::unique_ptr<GraphBuilder> builder_;
  std::vector<Value> in_graph_;      // by object
  HashMap<int, Value> asset_paths_;  // by object: what is fed
  // By file: what is fed, what functions get.
  HashMap<int, std::pair<Value, Value>> asset_values_;
  std::vector<Node*> assets_set_;  // that keep the paths
  std::vector<bool> under_way_;    // by object: InGraph() makes it
};

}  // namespace headrace
