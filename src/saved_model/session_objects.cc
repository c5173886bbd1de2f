#include "saved_model/session_objects.h"

#include <map>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/hash_map.h"
#include "graph/builder.h"
#include "graph/import.h"
#include "op/emitter.h"
#include "op/registry.h"
#include "saved_model/model_file.h"
#include "tensor/dtype_proto.h"
#include "tensor/tensor_proto.h"

namespace headrace {
namespace {

using tensorflow::CollectionDef;
using tensorflow::GraphDef;
using tensorflow::MetaGraphDef;
using tensorflow::NodeDef;
using tensorflow::SavedObject;
using tensorflow::StructuredValue;
using tensorflow::TensorInfo;
using tensorflow::TypeSpecProto;
using tensorflow::VariableDef;

constexpr char kTrainKey[] = "__saved_model_train_op";
// Collections of variables, those first that checkpoints have.
constexpr const char* kVariableCollections[] = {
    "variables", "local_variables", "model_variables", "trainable_variables"};
constexpr char kTrainable[] = "trainable_variables";

// "a:0" -> "a".
StringView NodeOf(StringView output) {
  return output.substr(0, output.find(':'));
}

// A part of what a signature takes or gives: its name there, and a tensor's.
using Named = std::pair<std::string, std::string>;

// The tensors behind an entry of a signature.
void Flatten(const std::string& key, const TensorInfo& info,
             std::vector<Named>* parts) {
  if (info.has_coo_sparse()) {
    const auto& coo = info.coo_sparse();
    parts->emplace_back(key + "_indices", coo.indices_tensor_name());
    parts->emplace_back(key + "_values", coo.values_tensor_name());
    parts->emplace_back(key + "_dense_shape", coo.dense_shape_tensor_name());
    return;
  }
  if (!info.has_composite_tensor()) {
    parts->emplace_back(key, info.name());
    return;
  }
  int i = 0;
  for (const TensorInfo& part : info.composite_tensor().components()) {
    parts->emplace_back(absl::StrCat(key, "_component_", i++), part.name());
  }
}

void AddSpec(const std::string& name, const Edge& e, StructuredValue* value) {
  auto* spec = value->mutable_tensor_spec_value();
  spec->set_name(name);
  spec->set_dtype(TypeToProto(e.node->output_type(e.index)));
  ShapeToProto(e.node->output_shape(e.index), spec->mutable_shape());
}

// The spec of an entry of a signature that several tensors stand for.
void AddCompositeSpec(const TensorInfo& info, StructuredValue* value) {
  TypeSpecProto* spec = value->mutable_type_spec_value();
  if (info.has_composite_tensor()) {
    *spec = info.composite_tensor().type_spec();
    return;
  }
  spec->set_type_spec_class(TypeSpecProto::SPARSE_TENSOR_SPEC);
  spec->set_type_spec_class_name("SparseTensorSpec");
  spec->set_num_flat_components(3);
  auto* state = spec->mutable_type_state()->mutable_tuple_value();
  *state->add_values()->mutable_tensor_shape_value() = info.tensor_shape();
  state->add_values()->set_tensor_dtype_value(info.dtype());
}

// Graphs of before TensorFlow 1.9 say by their collections alone which
// variables are trainable.
bool SaysTrainable(StringView version) {
  const std::vector<StringView> numbers = absl::StrSplit(version, '.');
  int major = 0, minor = 0;
  if (numbers.size() < 2 || !absl::SimpleAtoi(numbers[0], &major) ||
      !absl::SimpleAtoi(numbers[1], &minor)) {
    return true;
  }
  return major > 1 || minor >= 9;
}

class SessionImporter {
 public:
  SessionImporter(MetaGraphDef* meta, const std::string& folder,
                  ImportedFunctions* made)
      : meta_(meta),
        objects_(meta->mutable_object_graph_def()),
        folder_(folder),
        made_(made) {}

  StatusOr<SessionGraph> Import() {
    GraphDef* def = meta_->mutable_graph_def();
    UseHandles(def);
    HR_RETURN_IF_ERROR(GiveNewNames(def, folder_));
    out_.graph = std::make_shared<Graph>();
    builder_ = std::make_unique<GraphBuilder>(out_.graph,
                                              GraphBuilder::Kind::kFunction);
    HR_RETURN_IF_ERROR(ImportGraphDef(*def, {}, out_.graph.get(), nullptr));
    meta_->clear_graph_def();
    made_->holder = out_.graph;
    AddUserObject("_generic_user_object");
    HR_RETURN_IF_ERROR(AddVariables());
    HR_RETURN_IF_ERROR(AddAssets());
    HR_RETURN_IF_ERROR(AddState());
    HR_RETURN_IF_ERROR(AddSignatures());
    HR_RETURN_IF_ERROR(AddRestore());
    HR_RETURN_IF_ERROR(AddInitializer());
    return std::move(out_);
  }

 private:
  template <typename... Args>
  Status Damaged(const Args&... args) const {
    return DataLoss("SavedModel ", folder_, ": ", args...);
  }

  // Makes variables that are found by name, whose nodes give references, ones
  // that are found by handles: functions take those from outside.
  static void UseHandles(GraphDef* def) {
    std::set<std::string> names;
    for (const NodeDef& n : def->node()) names.insert(n.name());
    std::vector<NodeDef> handles;
    for (NodeDef& n : *def->mutable_node()) {
      if (n.op() != "VariableV2" && n.op() != "Variable") continue;
      NodeDef handle = n;
      handle.set_op("VarHandleOp");
      handle.set_name(n.name() + "/handle");
      while (!names.insert(handle.name()).second) {
        handle.mutable_name()->append("_");
      }
      auto& attrs = *handle.mutable_attr();
      if (attrs["shared_name"].s().empty())
        attrs["shared_name"].set_s(n.name());
      NodeDef reference;
      reference.set_name(n.name());
      reference.set_op("_Reference");
      reference.add_input(handle.name());
      for (const char* kept : {"shape", "dtype"}) {
        (*reference.mutable_attr())[kept] = attrs[kept];
      }
      n.Swap(&reference);
      handles.push_back(std::move(handle));
    }
    for (NodeDef& n : handles) def->add_node()->Swap(&n);
  }

  // --- objects ---

  int AddObject() {
    objects_->add_nodes();
    return objects_->nodes_size() - 1;
  }
  int AddUserObject(const char* identifier) {
    const int id = AddObject();
    objects_->mutable_nodes(id)->mutable_user_object()->set_identifier(
        identifier);
    return id;
  }
  void AddChild(int id, const std::string& name, int child) {
    auto* edge = objects_->mutable_nodes(id)->add_children();
    edge->set_local_name(name);
    edge->set_node_id(child);
  }
  int AddChildOfRoot(const char* name, const char* identifier) {
    const int id = AddUserObject(identifier);
    AddChild(0, name, id);
    return id;
  }
  void Append(int list, int child) {
    AddChild(list, absl::StrCat(objects_->nodes(list).children_size()), child);
  }
  void Capture(Node* node, int id) {
    captured_.emplace(node, id);
    out_.captures.emplace_back(node, id);
  }

  static bool MakesVariable(const Node& n) {
    return n.def().name == "VarHandleOp";
  }
  // Whether the node makes state that is found by name, and gives its handle.
  static bool MakesState(const Node& n) {
    return n.num_outputs() == 1 && n.output_type(0) == DType::kResource &&
           n.def().FindAttr("shared_name") != nullptr &&
           n.def().FindAttr("container") != nullptr;
  }
  // Nodes of one such name make the same.
  static std::string StateKey(const Node& n) {
    return absl::StrCat(n.op().string_attr("container"), "/",
                        n.op().string_attr("shared_name"));
  }

  const CollectionDef* Collection(const char* key) const {
    auto it = meta_->collection_def().find(key);
    return it == meta_->collection_def().end() ? nullptr : &it->second;
  }

  StatusOr<std::vector<VariableDef>> VariablesIn(const char* key) const {
    std::vector<VariableDef> found;
    const CollectionDef* collection = Collection(key);
    if (collection == nullptr) return found;
    for (const std::string& bytes : collection->bytes_list().value()) {
      found.emplace_back();
      if (!found.back().ParseFromString(bytes)) {
        return Damaged("collection ", key, " holds no variables");
      }
    }
    return found;
  }

  // The node that makes a variable's handle.
  StatusOr<Node*> VariableNamed(const std::string& name) const {
    Node* n = out_.graph->FindNode(NodeOf(name));
    if (n != nullptr && n->num_inputs() == 1) n = n->input(0).node;
    if (n == nullptr || !MakesVariable(*n)) {
      return Damaged("there is no variable ", name);
    }
    return n;
  }

  StatusOr<int> AddVariable(const VariableDef& def, bool trainable) {
    HR_ASSIGN_OR_RETURN(Node * n, VariableNamed(def.variable_name()));
    auto [it, is_new] = state_.emplace(StateKey(*n), -1);
    if (!is_new) return -1;
    it->second = AddObject();
    auto* v = objects_->mutable_nodes(it->second)->mutable_variable();
    v->set_name(std::string(NodeOf(def.variable_name())));
    v->set_dtype(TypeToProto(n->op().type_attr("dtype")));
    ShapeToProto(n->op().attr<Shape>("shape"), v->mutable_shape());
    v->set_trainable(trainable);
    v->set_synchronization(def.synchronization());
    v->set_aggregation(def.aggregation());
    return it->second;
  }

  Status AddVariables() {
    const bool by_proto =
        SaysTrainable(meta_->meta_info_def().tensorflow_version());
    std::set<std::string> trainable;
    HR_ASSIGN_OR_RETURN(const auto listed, VariablesIn(kTrainable));
    for (const VariableDef& v : listed) trainable.insert(v.variable_name());
    const int list = AddChildOfRoot("variables", "trackable_list_wrapper");
    for (const char* key : kVariableCollections) {
      HR_ASSIGN_OR_RETURN(const auto found, VariablesIn(key));
      for (const VariableDef& v : found) {
        HR_ASSIGN_OR_RETURN(
            const int id,
            AddVariable(v, by_proto ? v.trainable()
                                    : trainable.contains(v.variable_name())));
        if (id >= 0) Append(list, id);
      }
    }
    return OkStatus();
  }

  Status AddAssets() {
    if (const CollectionDef* packed = Collection(kAssetsCollection)) {
      for (const auto& any : packed->any_list().value()) {
        if (!meta_->add_asset_file_def()->ParseFromString(any.value())) {
          return Damaged("collection ", kAssetsCollection, " holds no assets");
        }
      }
    }
    const int list = AddChildOfRoot("asset_paths", "trackable_list_wrapper");
    for (int i = 0; i < meta_->asset_file_def_size(); ++i) {
      const std::string& name = meta_->asset_file_def(i).tensor_info().name();
      HR_ASSIGN_OR_RETURN(const Edge path, OutputNamed(name));
      if (path.node->num_outputs() != 1 ||
          path.node->output_type(0) != DType::kString) {
        return Damaged("asset ", name, " is no path");
      }
      if (captured_.contains(path.node)) continue;
      const int id = AddObject();
      objects_->mutable_nodes(id)->mutable_asset()->set_asset_file_def_index(i);
      Append(list, id);
      Capture(path.node, id);
    }
    return OkStatus();
  }

  // Tables and the like; variables that no collection has.
  Status AddState() {
    const int list = AddChildOfRoot("_state", "trackable_list_wrapper");
    // Functions are added to the graph while it is walked.
    const int n = out_.graph->num_nodes();
    for (int i = 0; i < n; ++i) {
      Node* node = out_.graph->node(i);
      if (!MakesState(*node)) continue;
      auto known = state_.find(StateKey(*node));
      if (known != state_.end()) {
        Capture(node, known->second);
        continue;
      }
      HR_ASSIGN_OR_RETURN(const int id,
                          MakesVariable(*node)
                              ? AddVariable(Described(*node), false)
                              : AddResource(node));
      Append(list, id);
      Capture(node, id);
    }
    return OkStatus();
  }

  static VariableDef Described(const Node& n) {
    VariableDef def;
    def.set_variable_name(n.name());
    return def;
  }

  StatusOr<int> AddResource(Node* node) {
    const int id = AddObject();
    objects_->mutable_nodes(id)->mutable_resource();
    state_.emplace(StateKey(*node), id);
    HR_ASSIGN_OR_RETURN(const std::string name,
                        AddFunction("create", {}, {Edge{node, 0}}));
    last_resource_ = id;
    AddChild(id, "_create_resource", AddFunctionObject(name));
    return id;
  }

  int AddFunctionObject(const std::string& name) {
    const int id = AddObject();
    objects_->mutable_nodes(id)->mutable_function()->add_concrete_functions(
        name);
    return id;
  }

  // --- functions ---

  StatusOr<Edge> OutputNamed(const std::string& name) const {
    StatusOr<Edge> found = out_.graph->FindOutput(name);
    if (found.ok()) return *found;
    return Damaged("there is no tensor ", name);
  }

  // What a function of these arguments takes from outside, in the order of the
  // graph. InvalidArgument where a placeholder is left.
  StatusOr<std::vector<Node*>> Reach(const std::vector<Edge>& args,
                                     const std::vector<Edge>& results) {
    HashSet<const Node*> seen;
    std::map<int, Node*> captured;
    std::vector<Node*> todo;
    for (const Edge& e : args) seen.insert(e.node);
    const auto visit = [&](Node* n) {
      if (!seen.insert(n).second) return;
      todo.push_back(n);
    };
    for (const Edge& e : results) visit(e.node);
    while (!todo.empty()) {
      Node* n = todo.back();
      todo.pop_back();
      if (captured_.contains(n)) {
        captured.emplace(n->id(), n);
        continue;
      }
      if (n->def().Is(OpRole::kPlaceholder) && n->num_inputs() == 0) {
        return InvalidArgument("placeholder ", n->name(), " is not fed");
      }
      for (const Edge& e : n->inputs()) visit(e.node);
      for (Node* control : n->control_inputs()) visit(control);
    }
    std::vector<Node*> found;
    for (const auto& [id, n] : captured) found.push_back(n);
    return found;
  }

  // Adds the part of the graph that gives `results`, with the objects that it
  // captures, and returns its name.
  StatusOr<std::string> AddFunction(StringView what, std::vector<Edge> args,
                                    const std::vector<Edge>& results) {
    HR_ASSIGN_OR_RETURN(const std::vector<Node*> captured,
                        Reach(args, results));
    for (Node* n : captured) args.push_back({n, 0});
    std::vector<Value> takes, gives;
    for (const Edge& e : args) takes.push_back(out_.graph->Output(e));
    for (const Edge& e : results) gives.push_back(out_.graph->Output(e));
    FunctionPtr f = MakeFunction(
        FunctionLibrary::NewName(absl::StrCat("__inference_", what)), *builder_,
        takes, gives, /*keep_effects=*/false);
    // Calls find it by its name.
    HR_RETURN_IF_ERROR(GlobalFunctions().Add(f));
    auto& saved = (*objects_->mutable_concrete_functions())[f->name];
    for (Node* n : captured) saved.add_bound_inputs(captured_.at(n));
    auto* given =
        saved.mutable_canonicalized_input_signature()->mutable_tuple_value();
    given->add_values()->mutable_tuple_value();
    given->add_values()->mutable_dict_value();
    if (results.size() == 1) {
      AddSpec("", results[0], saved.mutable_output_signature());
    }
    made_->by_name.emplace(f->name, f);
    return f->name;
  }

  // The nodes that a function's arguments are. What is fed twice is a
  // placeholder the second time: a function's arguments are different nodes.
  StatusOr<std::vector<Edge>> ArgsOf(const std::vector<Named>& takes) {
    std::vector<Edge> args;
    std::set<const Node*> known;
    for (const auto& [name, tensor] : takes) {
      HR_ASSIGN_OR_RETURN(Edge e, OutputNamed(tensor));
      if (e.node->num_outputs() != 1) {
        return Unimplemented("SavedModel ", folder_, ": ", tensor,
                             " is fed, one of several outputs of its node");
      }
      if (!known.insert(e.node).second) {
        HR_ASSIGN_OR_RETURN(
            const Value unused,
            builder_->AddPlaceholder(name, e.node->output_type(0),
                                     e.node->output_shape(0), nullptr));
        e = EdgeOf(unused);
      }
      args.push_back(e);
    }
    return args;
  }

  Status AddSignatures() {
    const int map = AddChildOfRoot("signatures", "signature_map");
    const std::map<std::string, tensorflow::SignatureDef> sorted(
        meta_->signature_def().begin(), meta_->signature_def().end());
    for (const auto& [key, signature] : sorted) {
      if (key == kInitOpKey || key == kTrainKey) continue;
      HR_ASSIGN_OR_RETURN(const int id, AddSignature(key, signature));
      AddChild(map, key, id);
    }
    return OkStatus();
  }

  StatusOr<int> AddSignature(const std::string& key,
                             const tensorflow::SignatureDef& signature) {
    std::vector<Named> takes, gives;
    for (const auto& [name, info] : Sorted(signature.inputs())) {
      Flatten(name, info, &takes);
    }
    for (const auto& [name, info] : Sorted(signature.outputs())) {
      Flatten(name, info, &gives);
    }
    HR_ASSIGN_OR_RETURN(const std::vector<Edge> args, ArgsOf(takes));
    std::vector<Edge> results;
    for (const auto& [name, tensor] : gives) {
      HR_ASSIGN_OR_RETURN(const Edge e, OutputNamed(tensor));
      results.push_back(e);
    }
    for (const auto& [name, info] : signature.outputs()) LearnShape(info);
    StatusOr<std::string> made = AddFunction("pruned", args, results);
    if (absl::IsInvalidArgument(made.status())) {
      return InvalidArgument(
          "A SavedModel signature needs an input for each placeholder the "
          "signature's outputs use. An output for signature '",
          key,
          "' depends on a placeholder which is not an input (i.e. the "
          "placeholder is not fed a value): ",
          made.status().message());
    }
    HR_RETURN_IF_ERROR(made.status());
    auto& saved = objects_->mutable_concrete_functions()->at(*made);
    auto* by_name = saved.mutable_canonicalized_input_signature()
                        ->mutable_tuple_value()
                        ->mutable_values(1)
                        ->mutable_dict_value();
    for (size_t i = 0; i < takes.size(); ++i) {
      AddSpec(takes[i].first, args[i],
              &(*by_name->mutable_fields())[takes[i].first]);
    }
    auto* outputs = saved.mutable_output_signature()->mutable_dict_value();
    for (const auto& [name, info] : signature.outputs()) {
      StructuredValue* value = &(*outputs->mutable_fields())[name];
      if (info.has_coo_sparse() || info.has_composite_tensor()) {
        AddCompositeSpec(info, value);
      } else {
        HR_ASSIGN_OR_RETURN(const Edge e, OutputNamed(info.name()));
        AddSpec("", e, value);
      }
    }
    const int id = AddObject();
    auto* bare = objects_->mutable_nodes(id)->mutable_bare_concrete_function();
    bare->set_concrete_function_name(*made);
    bare->set_allowed_positional_arguments(static_cast<int>(takes.size()));
    for (const auto& [name, tensor] : takes) bare->add_argument_keywords(name);
    return id;
  }

  template <typename Map>
  static std::map<std::string, TensorInfo> Sorted(const Map& infos) {
    return {infos.begin(), infos.end()};
  }

  // A signature may know more of a shape than its graph.
  void LearnShape(const TensorInfo& info) {
    StatusOr<Edge> e = out_.graph->FindOutput(info.name());
    StatusOr<Shape> shape = ShapeFromProto(info.tensor_shape());
    if (!e.ok() || !shape.ok()) return;
    StatusOr<Shape> both = MergeShapes(e->node->output_shape(e->index), *shape);
    if (both.ok()) SetShape(out_.graph->Output(*e), *both);
  }

  // A tensor that is there when a node has run.
  StatusOr<Edge> DoneAfter(StringView name) {
    Node* node = out_.graph->FindNode(NodeOf(name));
    if (node == nullptr) return Damaged("there is no node ", name);
    const EmitterScope scope(builder_.get());
    OpScope s;
    std::vector<Node*> before = builder_->SetControlInputs({node});
    const Value done = s.Const(Tensor::Scalar<bool>(true));
    builder_->SetControlInputs(std::move(before));
    HR_RETURN_IF_ERROR(s.status());
    return EdgeOf(done);
  }

  Status AddRestore() {
    const auto& saver = meta_->saver_def();
    if (saver.restore_op_name().empty()) return OkStatus();
    HR_ASSIGN_OR_RETURN(const Edge done, DoneAfter(saver.restore_op_name()));
    HR_ASSIGN_OR_RETURN(const auto args,
                        ArgsOf({{"path", saver.filename_tensor_name()}}));
    HR_ASSIGN_OR_RETURN(out_.restore, AddFunction("restore", args, {done}));
    return OkStatus();
  }

  Status AddInitializer() {
    const auto name = InitOpOf(*meta_, folder_);
    if (!name.ok()) return Damaged(name.status().message());
    if (!*name || (*name)->empty()) return OkStatus();
    HR_ASSIGN_OR_RETURN(const Edge done, DoneAfter(**name));
    HR_ASSIGN_OR_RETURN(out_.initialize, AddFunction("initialize", {}, {done}));
    // So that it is run, too, where the objects are saved again.
    if (last_resource_ >= 0) {
      AddChild(last_resource_, "_initialize",
               AddFunctionObject(out_.initialize));
    }
    return OkStatus();
  }

  MetaGraphDef* meta_;
  tensorflow::SavedObjectGraph* objects_;
  const std::string& folder_;
  ImportedFunctions* made_;
  SessionGraph out_;
  std::unique_ptr<GraphBuilder> builder_;
  std::map<std::string, int> state_;  // by StateKey: the object
  HashMap<const Node*, int> captured_;
  int last_resource_ = -1;
};

}  // namespace

StatusOr<SessionGraph> MakeSessionObjects(MetaGraphDef* graph,
                                          const std::string& folder,
                                          ImportedFunctions* made) {
  return SessionImporter(graph, folder, made).Import();
}

}  // namespace headrace
