// The graph of a SavedModel: what a session, or a server, runs of it.
#include "absl/strings/ascii.h"
#include "base/hash_map.h"
#include "op/emitter.h"
#include "saved_model/model_file.h"
#include "saved_model/model_writer.h"
#include "tensor/dtype_proto.h"
#include "tensor/tensor_proto.h"
#include "train/remote_variable_node.h"
#include "train/variable_node.h"

namespace headrace {
namespace {

using tensorflow::SavedObject;
using tensorflow::TensorInfo;

constexpr char kPredict[] = "tensorflow/serving/predict";

std::string NameOf(const Value& v) {
  return absl::StrCat(v.node()->name(), ":", v.index());
}

void Describe(const Value& v, TensorInfo* info) {
  info->set_name(NameOf(v));
  info->set_dtype(TypeToProto(v.dtype()));
  ShapeToProto(v.shape(), info->mutable_tensor_shape());
}

// A name that nodes may have.
std::string NodeName(std::string name) {
  for (char& c : name) {
    if (!absl::ascii_isalnum(c) && c != '.' && c != '-') c = '_';
  }
  return name;
}

// One output of a signature, of the next results of its function.
Status DescribeOutput(const tensorflow::StructuredValue& spec,
                      absl::Span<const Value>* rest, TensorInfo* info) {
  const bool composite = spec.has_type_spec_value();
  const auto& type = spec.type_spec_value();
  const size_t parts = composite ? type.num_flat_components() : 1;
  if (parts > rest->size()) {
    return Internal("a signature has more outputs than its function results");
  }
  const absl::Span<const Value> own = rest->first(parts);
  rest->remove_prefix(parts);
  if (!composite) {
    Describe(own[0], info);
    return OkStatus();
  }
  if (type.type_spec_class() == tensorflow::TypeSpecProto::SPARSE_TENSOR_SPEC &&
      parts == 3) {
    auto* sparse = info->mutable_coo_sparse();
    sparse->set_indices_tensor_name(NameOf(own[0]));
    sparse->set_values_tensor_name(NameOf(own[1]));
    sparse->set_dense_shape_tensor_name(NameOf(own[2]));
    info->set_dtype(TypeToProto(own[1].dtype()));
    const auto& state = type.type_state().tuple_value();
    if (state.values_size() > 0 && state.values(0).has_tensor_shape_value()) {
      *info->mutable_tensor_shape() = state.values(0).tensor_shape_value();
    }
    return OkStatus();
  }
  *info->mutable_composite_tensor()->mutable_type_spec() = type;
  for (const Value& v : own) {
    Describe(v, info->mutable_composite_tensor()->add_components());
  }
  return OkStatus();
}

// A node that waits for others.
StatusOr<Node*> Grouped(GraphBuilder* builder, StringView name,
                        std::vector<Node*> after) {
  builder->SetNextName(name);
  std::vector<Node*> before = builder->SetControlInputs(std::move(after));
  OpScope s;
  s.All("NoOp", {});
  builder->SetControlInputs(std::move(before));
  HR_RETURN_IF_ERROR(s.status());
  return builder->graph()->node(builder->graph()->num_nodes() - 1);
}

// Of an object that is a variable of this process or of another task: what its
// handle leads to, and its dtype. Null of others.
std::pair<const Resource*, DType> VariableOf(const Trackable& object) {
  if (const auto* here = dynamic_cast<const VariableNode*>(&object)) {
    return {here->variable().get(), here->variable()->dtype()};
  }
  if (const auto* away = dynamic_cast<const RemoteVariableNode*>(&object)) {
    return {away->handle().data<ResourceHandle>()->resource.get(),
            away->spec().dtype};
  }
  return {nullptr, DType::kInvalid};
}

Tensor Strings(const std::vector<std::string>& values) {
  return Tensor::Vector<std::string>(values);
}

}  // namespace

Status ModelWriter::MakeGraph(const GraphValues& values) {
  graph_ = std::make_shared<Graph>();
  builder_ = std::make_unique<GraphBuilder>(graph_, GraphBuilder::Kind::kPlain);
  in_graph_.resize(num_objects());
  under_way_.resize(num_objects());
  for (const FunctionPtr& f : functions_) {
    HR_RETURN_IF_ERROR(graph_->library()->Add(f));
  }
  const EmitterScope scope(builder_.get());
  for (int id = 0; id < num_objects(); ++id) {
    if (values_[id]) HR_RETURN_IF_ERROR(InGraph(id).status());
  }
  for (const Signature& s : signatures_) HR_RETURN_IF_ERROR(MakeSignature(s));
  HR_RETURN_IF_ERROR(MakeInitializers());
  return MakeSaver(values);
}

StatusOr<Value> ModelWriter::InGraph(int id) {
  if (in_graph_[id]) return in_graph_[id];
  if (under_way_[id]) {
    return FailedPrecondition("object ", id,
                              " is made by a function that captures it");
  }
  under_way_[id] = true;
  HR_ASSIGN_OR_RETURN(in_graph_[id], MakeInGraph(id));
  return in_graph_[id];
}

StatusOr<Value> ModelWriter::MakeInGraph(int id) {
  SavedObject& o = *objects_->mutable_nodes(id);
  OpScope s;
  if (o.has_variable()) {
    const auto& v = o.variable();
    HR_ASSIGN_OR_RETURN(const Shape shape, ShapeFromProto(v.shape()));
    const std::string name = graph_->UniqueName(v.name());
    builder_->SetNextName(name + "/");
    const std::string before = builder_->device();
    builder_->set_device(v.device());
    const Value handle = s("VarHandleOp", {},
                           {{"shared_name", name},
                            {"dtype", static_cast<DType>(v.dtype())},
                            {"shape", shape},
                            {"debug_name", name + "/"}});
    builder_->set_device(before);
    HR_RETURN_IF_ERROR(s.status());
    return handle;
  }
  if (auto it = resources_.find(id); it != resources_.end()) {
    HR_ASSIGN_OR_RETURN(ValueList made, CallInGraph(*it->second.create, {}));
    return made[0];
  }
  if (!o.has_constant() && !o.has_asset()) {
    return Unimplemented(
        "a graph for sessions with a resource that no "
        "function makes: object ",
        id);
  }
  if (o.has_constant()) {
    const Tensor& tensor = values_[id].tensor();
    const Value constant =
        s("Const", {}, {{"value", tensor}, {"dtype", tensor.dtype()}});
    HR_RETURN_IF_ERROR(s.status());
    o.mutable_constant()->set_operation(constant.node()->name());
    return constant;
  }
  return AssetInGraph(id);
}

// Loaders feed the path of the copy when they initialize the graph: a variable
// keeps it. No path of this machine is written.
StatusOr<Value> ModelWriter::AssetInGraph(int id) {
  const int index = objects_->nodes(id).asset().asset_file_def_index();
  if (auto it = asset_values_.find(index); it != asset_values_.end()) {
    asset_paths_[id] = it->second.first;
    return it->second.second;
  }
  HR_ASSIGN_OR_RETURN(const Value path, builder_->AddPlaceholder(
                                            "asset_path_initializer",
                                            DType::kString, Shape(), nullptr));
  OpScope s;
  const std::string name = graph_->UniqueName("asset_path");
  builder_->SetNextName(name + "/");
  const Value handle = s("VarHandleOp", {},
                         {{"shared_name", name},
                          {"dtype", DType::kString},
                          {"shape", Shape()},
                          {"debug_name", name + "/"}});
  s.All("AssignVariableOp", {handle, path});
  HR_RETURN_IF_ERROR(s.status());
  assets_set_.push_back(graph_->node(graph_->num_nodes() - 1));
  asset_paths_[id] = path;
  const Value kept = s("ReadVariableOp", {handle}, {{"dtype", DType::kString}});
  HR_RETURN_IF_ERROR(s.status());
  asset_values_[index] = {path, kept};
  while (graph_def_->asset_file_def_size() <= index) {
    graph_def_->add_asset_file_def();
  }
  auto* def = graph_def_->mutable_asset_file_def(index);
  def->set_filename(assets_[index].second);
  def->mutable_tensor_info()->set_name(NameOf(path));
  def->mutable_tensor_info()->set_dtype(tensorflow::DT_STRING);
  def->mutable_tensor_info()->mutable_tensor_shape();
  return kept;
}

StatusOr<ValueList> ModelWriter::CallInGraph(const ConcreteFunction& f,
                                             std::vector<Value> args,
                                             bool initializes) {
  for (const Value& capture : f.captures()) {
    auto it = by_value_.find(capture.id());
    if (it == by_value_.end()) {
      return Internal("function ", f.function()->name, " was not added");
    }
    HR_ASSIGN_OR_RETURN(Value v, InGraph(it->second));
    const auto path = asset_paths_.find(it->second);
    // Initializers run beside what keeps the path.
    if (initializes && path != asset_paths_.end()) v = path->second;
    args.push_back(std::move(v));
  }
  HR_ASSIGN_OR_RETURN(const ResolvedOpPtr call, CallOf(*f.function()));
  ValueList outputs;
  HR_RETURN_IF_ERROR(Emit(call, args, &outputs));
  return outputs;
}

StatusOr<Value> ModelWriter::MakeInput(const Signature& signature, size_t i) {
  const Function& f = *signature.function->function();
  const std::string& input = signature.inputs[i];
  const std::string name = NodeName(absl::StrCat(signature.key, "_", input));
  const DType dtype = f.args[i]->output_type(0);
  const Shape shape = f.args[i]->output_shape(0);
  auto it = signature.defaults.find(input);
  if (it == signature.defaults.end()) {
    return builder_->AddPlaceholder(name, dtype, shape, nullptr);
  }
  if (it->second.dtype() != dtype) {
    return InvalidArgument("signature ", signature.key, ": the default of ",
                           input, " is a ", DTypeName(it->second.dtype()),
                           " tensor, not ", DTypeName(dtype));
  }
  OpScope s;
  builder_->SetNextName(name + "/input");
  const Value value = s("Const", {}, {{"value", it->second}, {"dtype", dtype}});
  builder_->SetNextName(name);
  Value arg = s("PlaceholderWithDefault", {value},
                {{"dtype", dtype}, {"shape", shape}});
  HR_RETURN_IF_ERROR(s.status());
  return arg;
}

Status ModelWriter::MakeSignature(const Signature& signature) {
  auto& def = (*graph_def_->mutable_signature_def())[signature.key];
  def.set_method_name(kPredict);
  std::vector<Value> args;
  for (size_t i = 0; i < signature.inputs.size(); ++i) {
    HR_ASSIGN_OR_RETURN(Value arg, MakeInput(signature, i));
    Describe(arg, &(*def.mutable_inputs())[signature.inputs[i]]);
    args.push_back(std::move(arg));
  }
  for (const auto& [name, value] : signature.defaults) {
    HR_RETURN_IF_ERROR(TensorToProto(value, &(*def.mutable_defaults())[name]));
  }
  HR_ASSIGN_OR_RETURN(const ValueList outputs,
                      CallInGraph(*signature.function, std::move(args)));
  const auto& fields = objects_->concrete_functions()
                           .at(signature.function->function()->name)
                           .output_signature()
                           .dict_value()
                           .fields();
  absl::Span<const Value> rest = absl::MakeConstSpan(outputs);
  for (const std::string& name : signature.outputs) {
    const auto field = fields.find(name);
    if (field == fields.end()) {
      return Internal("signature ", signature.key, " has no output ", name);
    }
    HR_RETURN_IF_ERROR(
        DescribeOutput(field->second, &rest, &(*def.mutable_outputs())[name]));
  }
  return OkStatus();
}

Status ModelWriter::MakeInitializers() {
  std::vector<Node*> calls = assets_set_;
  for (const int id : resource_order_) {
    const auto& initialize = resources_[id].initialize;
    if (!initialize) continue;
    HR_RETURN_IF_ERROR(
        CallInGraph(*initialize, {}, /*initializes=*/true).status());
    calls.push_back(graph_->node(graph_->num_nodes() - 1));
  }
  HR_ASSIGN_OR_RETURN(const Node* all, Grouped(builder_.get(), "NoOp", calls));
  auto& init = (*graph_def_->mutable_signature_def())[kInitOpKey];
  auto& info = (*init.mutable_outputs())[kInitOpKey];
  info.set_name(all->name());
  info.mutable_tensor_shape()->set_unknown_rank(true);
  (*graph_def_->mutable_collection_def())[kMainOpKey]
      .mutable_node_list()
      ->add_value(all->name());
  return OkStatus();
}

// Sessions restore and save variables alone.
Status ModelWriter::MakeSaver(const GraphValues& values) {
  HashMap<const Resource*, int> by_resource;
  HashMap<uint64_t, int> by_handle;  // of variables of a graph
  for (int id = 0; id < num_objects(); ++id) {
    if (!objects_->nodes(id).has_variable()) continue;
    const Value& handle = values_[id];
    if (handle.is_symbolic()) {
      by_handle[handle.id()] = id;
    } else {
      by_resource[handle.tensor().data<ResourceHandle>()->resource.get()] = id;
    }
  }
  std::vector<std::string> keys;
  std::vector<Value> handles;
  std::vector<DType> dtypes;
  for (size_t i = 0; i < values.values().size(); ++i) {
    const Trackable& owner = *values.owners()[i];
    const ShardPiece& value = values.values()[i];
    auto [variable, dtype] = VariableOf(owner);
    int id = -1;
    if (auto it = by_resource.find(variable); it != by_resource.end()) {
      id = it->second;
    }
    if (auto it = by_handle.find(owner.graph_handle()); it != by_handle.end()) {
      id = it->second;
      dtype = value.tensor.dtype();
    }
    if (id < 0) continue;
    keys.push_back(value.key);
    dtypes.push_back(dtype);
    handles.push_back(in_graph_[id]);
  }
  const Value path = *builder_->AddPlaceholder("saver_filename", DType::kString,
                                               Shape(), nullptr);
  OpScope s;
  std::vector<Node*> assigned;
  std::vector<Node*> saved;
  if (!keys.empty()) {
    const Value names = s.Const(Strings(keys));
    const Value slices =
        s.Const(Strings(std::vector<std::string>(keys.size())));
    const ValueList restored =
        s.All("RestoreV2", {path, names, slices}, {{"dtypes", dtypes}});
    HR_RETURN_IF_ERROR(s.status());
    std::vector<Value> inputs = {path, names, slices};
    for (size_t i = 0; i < keys.size(); ++i) {
      s.All("AssignVariableOp", {handles[i], restored[i]});
      assigned.push_back(graph_->node(graph_->num_nodes() - 1));
      inputs.push_back(
          s("ReadVariableOp", {handles[i]}, {{"dtype", dtypes[i]}}));
    }
    HR_RETURN_IF_ERROR(s.status());
    s.All("SaveV2", inputs);
    HR_RETURN_IF_ERROR(s.status());
    saved.push_back(graph_->node(graph_->num_nodes() - 1));
  }
  HR_ASSIGN_OR_RETURN(const Node* restore,
                      Grouped(builder_.get(), "restore_all", assigned));
  std::vector<Node*> before = builder_->SetControlInputs(std::move(saved));
  const Value done = s("Identity", {path});
  builder_->SetControlInputs(std::move(before));
  HR_RETURN_IF_ERROR(s.status());
  auto* saver = graph_def_->mutable_saver_def();
  saver->set_filename_tensor_name(NameOf(path));
  saver->set_save_tensor_name(NameOf(done));
  saver->set_restore_op_name(restore->name());
  saver->set_version(tensorflow::SaverDef::V2);
  return OkStatus();
}

}  // namespace headrace
