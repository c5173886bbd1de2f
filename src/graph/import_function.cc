// FunctionDef -> Function.
#include "base/hash_map.h"
#include "graph/attr_proto.h"
#include "graph/builder.h"
#include "graph/import.h"
#include "graph/node_importer.h"
#include "op/registry.h"
#include "tensor/tensor_proto.h"
#include "tensorflow/core/framework/function.pb.h"

namespace headrace {
namespace {

using tensorflow::FunctionDef;
using SignatureArg = tensorflow::OpDef::ArgDef;

// The shape that an argument's attribute "_output_shapes" tells.
Shape ArgShape(const FunctionDef& def, int i) {
  auto attrs = def.arg_attr().find(i);
  if (attrs == def.arg_attr().end()) return Shape::UnknownRank();
  auto shapes = attrs->second.attr().find("_output_shapes");
  if (shapes == attrs->second.attr().end() ||
      shapes->second.list().shape_size() != 1) {
    return Shape::UnknownRank();
  }
  StatusOr<Shape> s = ShapeFromProto(shapes->second.list().shape(0));
  // A note, not part of the signature: one that is damaged only costs knowledge
  // of the shape.
  return s.ok() ? *std::move(s) : Shape::UnknownRank();
}

std::shared_ptr<const HandleData> ArgHandle(const SignatureArg& arg) {
  if (arg.handle_data_size() == 0) return nullptr;
  auto data = std::make_shared<HandleData>();
  for (const auto& part : arg.handle_data()) {
    StatusOr<Shape> s = ShapeFromProto(part.shape());
    data->push_back({DTypeIsValid(part.dtype())
                         ? static_cast<DType>(part.dtype())
                         : DType::kInvalid,
                     s.ok() ? *std::move(s) : Shape::UnknownRank()});
  }
  return data;
}

StatusOr<DType> ArgType(const FunctionDef& def, const SignatureArg& arg) {
  if (!arg.type_attr().empty() || !arg.type_list_attr().empty() ||
      !arg.number_attr().empty()) {
    return Unimplemented("Function ", def.signature().name(), ": argument ",
                         arg.name(),
                         " has a type that depends on an attribute");
  }
  if (!DTypeIsValid(arg.type()) || arg.type() > kRefOffset) {
    return InvalidArgument("Function ", def.signature().name(), ": argument ",
                           arg.name(), " has no valid type");
  }
  return static_cast<DType>(arg.type());
}

Status AddArgs(const FunctionDef& def, Function* f, NodeImporter* importer) {
  for (int i = 0; i < def.signature().input_arg_size(); ++i) {
    const SignatureArg& arg = def.signature().input_arg(i);
    HR_ASSIGN_OR_RETURN(DType type, ArgType(def, arg));
    HR_ASSIGN_OR_RETURN(ResolvedOpPtr resolved,
                        PlaceholderOf(type, ArgShape(def, i)));
    HR_ASSIGN_OR_RETURN(Node * node,
                        f->body->AddNode(arg.name(), std::move(resolved), {}));
    HR_RETURN_IF_ERROR(InferNode(node));
    if (auto handle = ArgHandle(arg)) {
      node->set_output_handle(0, std::move(handle));
    }
    // Nodes of the body name the argument, not the placeholder.
    importer->Define(arg.name(), node);
    f->args.push_back(node);
    f->arg_names.push_back(arg.name());
  }
  return OkStatus();
}

Status AddResults(const FunctionDef& def, const NodeImporter& importer,
                  Function* f) {
  for (const SignatureArg& arg : def.signature().output_arg()) {
    HR_ASSIGN_OR_RETURN(DType type, ArgType(def, arg));
    auto it = def.ret().find(arg.name());
    if (it == def.ret().end()) {
      return InvalidArgument("Return ", arg.name(), " missing.");
    }
    HR_ASSIGN_OR_RETURN(Edge e, importer.FindOutput(it->second));
    if (BaseType(e.node->output_type(e.index)) != type) {
      return InvalidArgument("Return ", arg.name(), " is a ",
                             DTypeName(e.node->output_type(e.index)),
                             " tensor, the signature says ", DTypeName(type));
    }
    f->results.push_back(e);
    f->result_names.push_back(arg.name());
  }
  return OkStatus();
}

// Nodes with effects run always; so does what the function names.
Status AddControlOutputs(const FunctionDef& def, const NodeImporter& importer,
                         Function* f) {
  HashSet<StringView> named;
  for (const auto& [name, node_name] : def.control_ret()) {
    if (importer.Find(node_name) == nullptr) {
      return InvalidArgument("Control output ", name, " names node ", node_name,
                             ", which is not there");
    }
    named.insert(node_name);
  }
  for (int i = 0; i < f->body->num_nodes(); ++i) {
    Node* n = f->body->node(i);
    // Functions of older programs name no control outputs, and their effects
    // run all the same.
    if (HasSideEffect(n->def()) || named.contains(n->name())) {
      f->control_outputs.push_back(n);
    }
  }
  return OkStatus();
}

}  // namespace

StatusOr<FunctionPtr> ImportFunctionDef(const FunctionDef& def, int producer,
                                        const FunctionLibrary* library,
                                        std::string gradient) {
  if (def.signature().attr_size() > 0) {
    return Unimplemented("Function ", def.signature().name(),
                         " has attributes, which are not supported");
  }
  auto f = std::make_shared<Function>();
  f->name = def.signature().name();
  f->gradient = std::move(gradient);
  f->body = std::make_shared<Graph>();
  f->body->is_body = true;
  NodeImporter importer(f->body.get(), producer, library);
  importer.in_function = true;
  HR_RETURN_IF_ERROR(AddArgs(def, f.get(), &importer));
  NodeTexts nodes;
  for (const auto& n : def.node_def()) nodes.Add(n);
  HR_RETURN_IF_ERROR(importer.Add(nodes));
  HR_RETURN_IF_ERROR(AddResults(def, importer, f.get()));
  HR_RETURN_IF_ERROR(AddControlOutputs(def, importer, f.get()));
  for (const auto& [name, proto] : def.attr()) {
    HR_ASSIGN_OR_RETURN(AttrValue v, AttrFromProto(proto, AttrKind::kNone));
    f->attrs.Set(name, std::move(v));
  }
  return f;
}

}  // namespace headrace
