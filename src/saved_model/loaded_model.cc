#include "saved_model/loaded_model.h"

#include <optional>
#include <set>

#include "absl/strings/str_split.h"
#include "base/files/files.h"
#include "base/guard.h"
#include "graph/at_node.h"
#include "graph/needed_nodes.h"
#include "op/emitter.h"
#include "op/reach.h"
#include "saved_model/saved_gradients.h"
#include "saved_model/saved_resource.h"
#include "tensor/tensor_proto.h"
#include "train/checkpoint.h"

namespace headrace {

using tensorflow::NodeDef;
using tensorflow::SavedObject;
using tensorflow::SavedObjectGraph;

// Makes a LoadedModel. Used once.
class ModelLoader {
 public:
  ModelLoader(std::string folder, LoadedModel::Options options)
      : folder_(std::move(folder)), options_(std::move(options)) {}

  StatusOr<std::shared_ptr<LoadedModel>> Load(ModelFile model,
                                              tensorflow::MetaGraphDef* graph) {
    model_.reset(new LoadedModel);
    model_->model_ = std::move(model);
    model_->graph_ = graph;
    if (options_.as_session) graph->clear_object_graph_def();
    if (graph->object_graph_def().nodes_size() == 0) {
      HR_ASSIGN_OR_RETURN(
          model_->session_,
          MakeSessionObjects(graph, folder_, &model_->imported_));
    }
    objects_ = &graph->object_graph_def();
    HR_RETURN_IF_ERROR(CheckObjects());
    // The only constants that outlive the graph.
    HR_RETURN_IF_ERROR(MakePlainValues());
    if (!model_->session_.graph) HR_RETURN_IF_ERROR(ImportAll());
    if (options_.sandbox) HR_RETURN_IF_ERROR(CheckPermitted());
    KeepTheRest();
    HR_RETURN_IF_ERROR(MakeResources());
    HR_RETURN_IF_ERROR(RegisterGradients(
        model_->imported_, *objects_,
        [this](int id) -> StatusOr<Value> { return model_->values_[id]; }));
    HR_RETURN_IF_ERROR(MakeFunctions());
    if (!options_.skip_checkpoint) HR_RETURN_IF_ERROR(Restore());
    HR_RETURN_IF_ERROR(Initialize());
    return std::move(model_);
  }

 private:
  template <typename... Args>
  Status Damaged(const Args&... args) const {
    return DataLoss("SavedModel ", folder_, ": ", args...);
  }
  bool IsObject(int id) const { return id >= 0 && id < objects_->nodes_size(); }

  // Ids are used as indices, and functions looked up by name, from here on.
  Status CheckObjects() const {
    for (int i = 0; i < objects_->nodes_size(); ++i) {
      const SavedObject& o = objects_->nodes(i);
      for (const auto& child : o.children()) {
        if (IsObject(child.node_id())) continue;
        return Damaged("object ", i, ": child ", child.local_name(),
                       " is object ", child.node_id(), " of ",
                       objects_->nodes_size());
      }
      for (const auto& slot : o.slot_variables()) {
        if (IsObject(slot.original_variable_node_id()) &&
            IsObject(slot.slot_variable_node_id())) {
          continue;
        }
        return Damaged("object ", i, ": slot ", slot.slot_name(),
                       " is between objects that are not there");
      }
      HR_RETURN_IF_ERROR(CheckNames(i, o));
    }
    for (const auto& [name, f] : objects_->concrete_functions()) {
      for (int id : f.bound_inputs()) {
        if (IsObject(id)) continue;
        return Damaged("function ", name, " captures object ", id, " of ",
                       objects_->nodes_size());
      }
    }
    return OkStatus();
  }

  Status CheckNames(int i, const SavedObject& o) const {
    const auto known = [this](const std::string& name) {
      return objects_->concrete_functions().contains(name);
    };
    for (const std::string& name : o.function().concrete_functions()) {
      if (!known(name)) return Damaged("object ", i, ": no function ", name);
    }
    if (o.has_bare_concrete_function() &&
        !known(o.bare_concrete_function().concrete_function_name())) {
      return Damaged("object ", i, ": no function ",
                     o.bare_concrete_function().concrete_function_name());
    }
    for (const auto& [name, saveable] : o.saveable_objects()) {
      if (IsObject(saveable.save_function()) &&
          IsObject(saveable.restore_function())) {
        continue;
      }
      return Damaged("object ", i, ": ", name,
                     " is saved by functions that are not there");
    }
    return OkStatus();
  }

  // Those that no function has to be run for.
  Status MakePlainValues() {
    model_->values_.resize(objects_->nodes_size());
    HashMap<StringView, const NodeDef*> nodes;
    for (const NodeDef& n : model_->graph_->graph_def().node()) {
      nodes.emplace(n.name(), &n);
    }
    for (int i = 0; i < objects_->nodes_size(); ++i) {
      const SavedObject& o = objects_->nodes(i);
      Value& value = model_->values_[i];
      if (o.has_variable()) {
        HR_ASSIGN_OR_RETURN(value, VariableOf(i, o.variable()));
      } else if (o.has_constant()) {
        auto it = nodes.find(o.constant().operation());
        if (it == nodes.end() || !it->second->attr().contains("value")) {
          return Damaged("object ", i, ": no constant ",
                         o.constant().operation());
        }
        HR_ASSIGN_OR_RETURN(
            Tensor constant,
            TensorFromProto(it->second->attr().at("value").tensor()));
        value = Value(std::move(constant));
      } else if (o.has_asset()) {
        HR_ASSIGN_OR_RETURN(value, AssetOf(i, o.asset()));
      }
    }
    return OkStatus();
  }

  StatusOr<Value> VariableOf(int i, const tensorflow::SavedVariable& v) const {
    if (!DTypeIsValid(v.dtype())) {
      return Damaged("object ", i, ": a variable without a dtype");
    }
    const auto dtype = static_cast<DType>(v.dtype());
    HR_ASSIGN_OR_RETURN(const Shape shape, ShapeFromProto(v.shape()));
    ResourceHandle handle;
    handle.resource = std::make_shared<Variable>(dtype, shape);
    handle.name = v.name();
    handle.data =
        std::make_shared<const HandleData>(HandleData{{dtype, shape}});
    return Value(Tensor::Scalar(std::move(handle)));
  }

  StatusOr<Value> AssetOf(int i, const tensorflow::SavedAsset& asset) const {
    const int index = asset.asset_file_def_index();
    if (index < 0 || index >= model_->graph_->asset_file_def_size()) {
      return Damaged("object ", i, ": there is no asset ", index);
    }
    const std::string path =
        JoinPath(JoinPath(folder_, kAssetsFolder),
                 model_->graph_->asset_file_def(index).filename());
    if (options_.sandbox) {
      Status s = options_.sandbox->PermitFile(folder_, path);
      // Models may do without one; who reads it says so.
      if (!s.ok() && !absl::IsNotFound(s)) return s;
    }
    return Value(Tensor::Scalar<std::string>(path));
  }

  // Whether the sandbox permits what the functions could run: told before
  // anything runs. What they do run is looked at again.
  Status CheckPermitted() const {
    for (const auto& [name, f] : model_->imported_.by_name) {
      if (name == model_->session_.restore) continue;
      // A function of a session's graph holds more than it needs.
      for (const Node* n : NeededNodes(f->results, f->control_outputs)) {
        const Status s = CheckOpPermitted(n->def());
        if (s.ok()) continue;
        const Status at = AtNode(s, n->name());
        return Status(at.code(),
                      absl::StrCat("SavedModel ", folder_, ": ", at.message(),
                                   "\n\t in function ", name));
      }
    }
    return OkStatus();
  }

  Status ImportAll() {
    std::vector<std::string> names;
    for (const auto& [name, f] : objects_->concrete_functions()) {
      names.push_back(name);
    }
    HR_ASSIGN_OR_RETURN(
        model_->imported_,
        ImportFunctions(model_->graph_->mutable_graph_def(), names, folder_));
    model_->graph_->clear_graph_def();
    return OkStatus();
  }

  // Most of the memory that the file was read into held nodes, which are made
  // by now: what is left moves out of it.
  void KeepTheRest() {
    ModelFile rest = NewModelFile();
    *rest->add_meta_graphs() = *model_->graph_;
    model_->model_ = std::move(rest);
    model_->graph_ = model_->model_->mutable_meta_graphs(0);
    objects_ = &model_->graph_->object_graph_def();
  }

  // The function of object `id`, with what it captures; null where the object
  // has none.
  StatusOr<std::shared_ptr<ConcreteFunction>> FunctionOf(int id) {
    const std::string* name = model_->function_name(id);
    if (name == nullptr) return nullptr;
    return Bind(*name);
  }

  StatusOr<std::shared_ptr<ConcreteFunction>> Bind(const std::string& name) {
    std::shared_ptr<ConcreteFunction>& made = model_->functions_[name];
    if (made) return made;
    const FunctionPtr& f = model_->imported_.by_name.at(name);
    std::vector<Value> captures, trainable;
    const auto& bound = objects_->concrete_functions().at(name).bound_inputs();
    if (bound.size() > static_cast<int>(f->args.size())) {
      return Damaged("function ", name, " has ", f->args.size(),
                     " arguments, of which ", bound.size(), " are captures");
    }
    size_t arg = f->args.size() - bound.size();
    for (int id : bound) {
      const Value& value = model_->values_[id];
      const DType wanted = f->args[arg++]->output_type(0);
      if (!value) {
        return Unimplemented("SavedModel ", folder_, ": function ", name,
                             " captures object ", id,
                             ", which has no value outside of functions");
      }
      if (value.dtype() != wanted) {
        return Damaged("function ", name, " captures object ", id, ", a ",
                       DTypeName(value.dtype()), " tensor, as ",
                       DTypeName(wanted));
      }
      captures.push_back(value);
      if (objects_->nodes(id).variable().trainable()) {
        trainable.push_back(value);
      }
    }
    return made = std::make_shared<ConcreteFunction>(f, std::move(captures),
                                                     std::move(trainable));
  }

  // Runs the function that is the child `name` of a resource, which takes
  // nothing; whatever it gives goes to `results`.
  Status RunChild(int id, StringView name, ValueList* results) {
    const int child = model_->Child(id, name);
    if (child < 0) return OkStatus();
    HR_ASSIGN_OR_RETURN(const std::shared_ptr<ConcreteFunction> f,
                        FunctionOf(child));
    if (f == nullptr) return OkStatus();
    return f->Call({}, results);
  }

  // Nothing where the name is empty.
  Status CallNamed(const std::string& name, std::vector<Value> args) {
    if (name.empty()) return OkStatus();
    HR_ASSIGN_OR_RETURN(const auto f, Bind(name));
    ValueList nothing;
    return f->Call(args, &nothing);
  }

  Status MakeResources() {
    for (int i = 0; i < objects_->nodes_size(); ++i) {
      if (!objects_->nodes(i).has_resource()) continue;
      ValueList made;
      HR_RETURN_IF_ERROR(RunChild(i, "_create_resource", &made));
      if (made.size() != 1 || made[0].dtype() != DType::kResource) {
        return Damaged("object ", i, ": nothing makes the resource");
      }
      HR_ASSIGN_OR_RETURN(model_->values_[i], OwnedResource(made[0].tensor()));
    }
    return OkStatus();
  }

  Status MakeFunctions() {
    // Gradients are called by what asks for them: they capture tensors of it.
    std::set<StringView> gradients;
    for (const ImportedGradient& g : model_->imported_.gradients) {
      gradients.insert(g.function);
    }
    for (const auto& [name, f] : objects_->concrete_functions()) {
      if (gradients.contains(name)) continue;
      HR_RETURN_IF_ERROR(Bind(name).status());
    }
    return OkStatus();
  }

  Status Initialize() {
    const SessionGraph& session = model_->session_;
    if (session.graph) return CallNamed(session.initialize, {});
    for (int i = 0; i < objects_->nodes_size(); ++i) {
      if (!objects_->nodes(i).has_resource()) continue;
      ValueList nothing;
      HR_RETURN_IF_ERROR(RunChild(i, "_initialize", &nothing));
    }
    return OkStatus();
  }

  // An object as checkpoints see it.
  StatusOr<TrackablePtr> NodeOf(int i) {
    const SavedObject& o = objects_->nodes(i);
    if (o.has_variable()) {
      HR_ASSIGN_OR_RETURN(auto variable,
                          ResourceAs<Variable>(model_->values_[i].tensor(),
                                               &DefaultResources()));
      return std::make_shared<VariableNode>(variable, o.variable().name());
    }
    if (o.saveable_objects_size() == 0) return std::make_shared<Trackable>();
    std::vector<SavedResourceNode::Part> parts;
    for (const auto& [name, saveable] : o.saveable_objects()) {
      SavedResourceNode::Part part{name};
      HR_ASSIGN_OR_RETURN(part.save, FunctionOf(saveable.save_function()));
      HR_ASSIGN_OR_RETURN(part.restore,
                          FunctionOf(saveable.restore_function()));
      if (part.save && part.restore) parts.push_back(std::move(part));
    }
    return std::make_shared<SavedResourceNode>(std::move(parts));
  }

  Status Restore() {
    const std::string path = JoinPath(folder_, kVariablesPrefix);
    std::shared_ptr<void> permitted;
    if (options_.sandbox) {
      const std::vector<std::string> parts =
          absl::StrSplit(kVariablesPrefix, '/');
      permitted =
          options_.sandbox->PermitPrefix(folder_, parts.front(), parts.back());
    }
    if (const SessionGraph& session = model_->session_; session.graph) {
      return CallNamed(session.restore,
                       {Value(Tensor::Scalar<std::string>(path))});
    }
    std::vector<TrackablePtr> nodes;
    bool values = false;
    for (int i = 0; i < objects_->nodes_size(); ++i) {
      HR_ASSIGN_OR_RETURN(TrackablePtr node, NodeOf(i));
      values = values || node->has_values();
      nodes.push_back(std::move(node));
    }
    // Models without variables may have no checkpoint.
    if (!values) return OkStatus();
    for (int i = 0; i < objects_->nodes_size(); ++i) {
      for (const auto& child : objects_->nodes(i).children()) {
        // Borrowed: the graph may have circles.
        HR_RETURN_IF_ERROR(nodes[i]->Attach(
            child.local_name(), nodes[child.node_id()], Trackable::kBorrowed));
      }
      for (const auto& slot : objects_->nodes(i).slot_variables()) {
        HR_RETURN_IF_ERROR(nodes[i]->AttachSlot(
            nodes[slot.original_variable_node_id()], slot.slot_name(),
            nodes[slot.slot_variable_node_id()], Trackable::kBorrowed));
      }
    }
    HR_ASSIGN_OR_RETURN(auto restored, RestoreGraph(path, nodes[0]));
    Status matched = options_.allow_partial_checkpoint
                         ? OkStatus()
                         : restored->CheckExistingMatched();
    restored->ExpectPartial();
    return matched;
  }

  const std::string folder_;
  const LoadedModel::Options options_;
  std::shared_ptr<LoadedModel> model_;
  const SavedObjectGraph* objects_ = nullptr;  // of model_
};

StatusOr<std::shared_ptr<LoadedModel>> LoadedModel::Load(
    const std::string& folder, const Options& options) {
  Options confined = options;
  if (!confined.sandbox) confined.sandbox = CurrentSandbox();
  // The program asked for these files, not the model.
  const AdoptedSandbox outside;
  HR_ASSIGN_OR_RETURN(auto model, ReadSavedModel(folder));
  HR_ASSIGN_OR_RETURN(auto* graph,
                      FindMetaGraph(model.get(), options.tags, folder));
  return Make(std::move(model), graph, folder, confined);
}

StatusOr<std::shared_ptr<LoadedModel>> LoadedModel::Make(
    ModelFile model, tensorflow::MetaGraphDef* graph, const std::string& folder,
    const Options& options) {
  // Variables get their values now, whatever graph is being built.
  EmitterScope eager(DefaultEmitter());
  StopRecording quiet;
  std::optional<SandboxCall> call;
  if (options.sandbox) call.emplace(options.sandbox);
  std::shared_ptr<LoadedModel> loaded;
  // The loader's own small tensors throw where memory ends.
  Status s = Guarded("the loading of " + folder, [&]() -> Status {
    HR_ASSIGN_OR_RETURN(
        loaded, ModelLoader(folder, options).Load(std::move(model), graph));
    return OkStatus();
  });
  if (call) s = call->Told(std::move(s));
  HR_RETURN_IF_ERROR(s);
  return loaded;
}

int LoadedModel::Child(int id, StringView name) const {
  for (const auto& child : object(id).children()) {
    if (child.local_name() == name) return child.node_id();
  }
  return -1;
}

const std::string* LoadedModel::function_name(int id) const {
  const SavedObject& o = object(id);
  if (o.has_bare_concrete_function()) {
    return &o.bare_concrete_function().concrete_function_name();
  }
  return o.function().concrete_functions_size() > 0
             ? &o.function().concrete_functions(0)
             : nullptr;
}

std::shared_ptr<ConcreteFunction> LoadedModel::function(
    const std::string& name) const {
  auto it = functions_.find(name);
  return it == functions_.end() ? nullptr : it->second;
}

}  // namespace headrace
