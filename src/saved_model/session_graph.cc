// The graph of a SavedModel: what a session, or a server, runs of it.
#include "absl/container/flat_hash_map.h"
#include "op/emitter.h"
#include "saved_model/model_writer.h"
#include "tensor/dtype_proto.h"
#include "tensor/tensor_proto.h"
#include "train/variable_node.h"

namespace headrace {
namespace {

using tensorflow::SavedObject;
using tensorflow::TensorInfo;

constexpr char kPredict[] = "tensorflow/serving/predict";
constexpr char kInitOp[] = "__saved_model_init_op";
constexpr char kMainOp[] = "saved_model_main_op";

std::string NameOf(const Value& v) {
  return absl::StrCat(v.node()->name(), ":", v.index());
}

void Describe(const Value& v, TensorInfo* info) {
  info->set_name(NameOf(v));
  info->set_dtype(TypeToProto(v.dtype()));
  ShapeToProto(v.shape(), info->mutable_tensor_shape());
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
    return s("VarHandleOp", {},
             {{"shared_name", name},
              {"dtype", static_cast<DType>(v.dtype())},
              {"shape", shape},
              {"debug_name", name + "/"}});
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
  const Tensor& tensor = values_[id].tensor();
  if (o.has_constant()) {
    const Value constant =
        s("Const", {}, {{"value", tensor}, {"dtype", tensor.dtype()}});
    HR_RETURN_IF_ERROR(s.status());
    o.mutable_constant()->set_operation(constant.node()->name());
    return constant;
  }
  // Loaders feed the path of the copy; no path of this machine is kept.
  const int index = o.asset().asset_file_def_index();
  const Tensor name = Tensor::Scalar<std::string>(assets_[index].second);
  const Value path =
      s("Const", {}, {{"value", name}, {"dtype", DType::kString}});
  HR_RETURN_IF_ERROR(s.status());
  while (graph_def_->asset_file_def_size() <= index) {
    graph_def_->add_asset_file_def();
  }
  auto* def = graph_def_->mutable_asset_file_def(index);
  def->set_filename(assets_[index].second);
  def->mutable_tensor_info()->set_name(NameOf(path));
  return path;
}

StatusOr<ValueList> ModelWriter::CallInGraph(const ConcreteFunction& f,
                                             std::vector<Value> args) {
  for (const Value& capture : f.captures()) {
    auto it = by_value_.find(capture.id());
    if (it == by_value_.end()) {
      return Internal("function ", f.function()->name, " was not added");
    }
    HR_ASSIGN_OR_RETURN(Value v, InGraph(it->second));
    args.push_back(std::move(v));
  }
  HR_ASSIGN_OR_RETURN(const ResolvedOpPtr call, CallOf(*f.function()));
  ValueList outputs;
  HR_RETURN_IF_ERROR(Emit(call, args, &outputs));
  return outputs;
}

Status ModelWriter::MakeSignature(const Signature& signature) {
  const Function& f = *signature.function->function();
  auto& def = (*graph_def_->mutable_signature_def())[signature.key];
  def.set_method_name(kPredict);
  std::vector<Value> args;
  for (size_t i = 0; i < signature.inputs.size(); ++i) {
    HR_ASSIGN_OR_RETURN(
        Value arg,
        builder_->AddPlaceholder(
            absl::StrCat(signature.key, "_", signature.inputs[i]),
            f.args[i]->output_type(0), f.args[i]->output_shape(0), nullptr));
    Describe(arg, &(*def.mutable_inputs())[signature.inputs[i]]);
    args.push_back(std::move(arg));
  }
  HR_ASSIGN_OR_RETURN(const ValueList outputs,
                      CallInGraph(*signature.function, std::move(args)));
  for (size_t i = 0; i < signature.outputs.size(); ++i) {
    Describe(outputs[i], &(*def.mutable_outputs())[signature.outputs[i]]);
  }
  return OkStatus();
}

Status ModelWriter::MakeInitializers() {
  std::vector<Node*> calls;
  for (const int id : resource_order_) {
    const auto& initialize = resources_[id].initialize;
    if (!initialize) continue;
    HR_RETURN_IF_ERROR(CallInGraph(*initialize, {}).status());
    calls.push_back(graph_->node(graph_->num_nodes() - 1));
  }
  HR_ASSIGN_OR_RETURN(const Node* all, Grouped(builder_.get(), "NoOp", calls));
  auto& init = (*graph_def_->mutable_signature_def())[kInitOp];
  auto& info = (*init.mutable_outputs())[kInitOp];
  info.set_name(all->name());
  info.mutable_tensor_shape()->set_unknown_rank(true);
  (*graph_def_->mutable_collection_def())[kMainOp]
      .mutable_node_list()
      ->add_value(all->name());
  return OkStatus();
}

// Sessions restore and save variables alone.
Status ModelWriter::MakeSaver(const GraphValues& values) {
  absl::flat_hash_map<const Resource*, int> by_resource;
  for (int id = 0; id < num_objects(); ++id) {
    if (!objects_->nodes(id).has_variable()) continue;
    by_resource[values_[id].tensor().data<ResourceHandle>()->resource.get()] =
        id;
  }
  std::vector<std::string> keys;
  std::vector<Value> handles;
  std::vector<DType> dtypes;
  for (size_t i = 0; i < values.values().size(); ++i) {
    const auto* node =
        dynamic_cast<const VariableNode*>(values.owners()[i].get());
    if (node == nullptr) continue;
    auto it = by_resource.find(node->variable().get());
    if (it == by_resource.end()) continue;
    keys.push_back(values.values()[i].first);
    dtypes.push_back(node->variable()->dtype());
    handles.push_back(in_graph_[it->second]);
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
