#include "command/graph/freeze_variables.h"

#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/hash_map.h"
#include "command/show/graph_facts.h"
#include "op/registry.h"
#include "tensor/dtype_proto.h"
#include "tensor/tensor_proto.h"

namespace headrace::command {
namespace {

using tensorflow::DataType;
using tensorflow::FunctionDef;
using tensorflow::GraphDef;
using tensorflow::NodeDef;

// Which outputs hold a value where there was a handle: by node and place.
using FrozenOutputs = std::map<std::pair<std::string, int>, DataType>;
// Positions of a function's arguments that do.
using FrozenArgs = std::map<int, DataType>;

constexpr int kDeepestCalls = 100;

// What an op that reads a variable by its handle becomes.
struct Reader {
  const char* op;
  const char* becomes;
  const char* dtype_attr;  // of the value, in what it becomes
};
constexpr Reader kReaders[] = {
    {"ReadVariableOp", "Identity", "T"},
    {"_ReadReference", "Identity", "T"},
    {"_Reference", "Identity", "T"},
    {"VariableShape", "Shape", "T"},
    // GatherV2 would need a node more, for the axis.
    {"ResourceGather", "Gather", "Tparams"},
    {"ResourceGatherNd", "GatherNd", "Tparams"},
};
// Ops that hand a handle on, the dtype in "T".
constexpr StringView kHandsOn[] = {
    "Identity",      "Enter",    "Exit",        "Switch",    "Merge",
    "NextIteration", "RefEnter", "RefIdentity", "RefSwitch", "StopGradient"};

// Of the GraphDef form "node:1" and that of bodies, "node:output:1".
std::pair<std::string, int> OutputOf(const std::string& input) {
  const size_t first = input.find(':');
  if (first == std::string::npos) return {input, 0};
  int index = 0;
  if (!absl::SimpleAtoi(input.substr(input.rfind(':') + 1), &index)) index = 0;
  return {input.substr(0, first), index};
}

class VariableFreezer {
 public:
  explicit VariableFreezer(GraphDef* graph) : graph_(graph) {
    for (const FunctionDef& f : graph->library().function()) {
      functions_.emplace(f.signature().name(), f);
    }
  }

  Status Freeze(const std::map<std::string, Tensor>& values) {
    FrozenOutputs frozen;
    for (NodeDef& n : *graph_->mutable_node()) {
      auto it = values.find(n.name());
      if (it == values.end()) continue;
      const DataType dtype = TypeToProto(it->second.dtype());
      frozen[{n.name(), 0}] = dtype;
      n.set_op("Const");
      n.clear_input();
      n.clear_attr();
      (*n.mutable_attr())["dtype"].set_type(dtype);
      HR_RETURN_IF_ERROR(TensorToProto(
          it->second, (*n.mutable_attr())["value"].mutable_tensor()));
    }
    std::set<std::string> renamed;
    HR_RETURN_IF_ERROR(
        FreezeNodes(graph_->mutable_node(), std::move(frozen), 0, &renamed));
    for (auto& [name, f] : written_) {
      *graph_->mutable_library()->add_function() = std::move(f);
    }
    return OkStatus();
  }

 private:
  using Nodes = google::protobuf::RepeatedPtrField<NodeDef>;

  // Nodes may come in any order, loops among them: until nothing new is known.
  // `renamed`: those whose output has the name "output" now.
  Status FreezeNodes(Nodes* nodes, FrozenOutputs frozen, int depth,
                     std::set<std::string>* renamed) {
    std::set<const NodeDef*> done;
    for (bool changed = true; changed;) {
      changed = false;
      for (NodeDef& n : *nodes) {
        if (done.contains(&n) || !Reads(n, frozen)) continue;
        const std::string op = n.op();
        HR_RETURN_IF_ERROR(FreezeNode(&n, &frozen, depth));
        if (n.op() != op && n.op() != "Switch") renamed->insert(n.name());
        done.insert(&n);
        changed = true;
      }
    }
    return OkStatus();
  }

  static bool Reads(const NodeDef& n, const FrozenOutputs& frozen) {
    for (const std::string& input : n.input()) {
      if (!input.starts_with('^') && frozen.contains(OutputOf(input))) {
        return true;
      }
    }
    return false;
  }

  static FrozenArgs InputsThatAre(const NodeDef& n, const FrozenOutputs& frozen,
                                  int begin) {
    FrozenArgs args;
    for (int i = begin; i < n.input_size(); ++i) {
      if (n.input(i).starts_with('^')) continue;
      auto it = frozen.find(OutputOf(n.input(i)));
      if (it != frozen.end()) args[i - begin] = it->second;
    }
    return args;
  }

  Status FreezeNode(NodeDef* n, FrozenOutputs* frozen, int depth) {
    const FrozenArgs args = InputsThatAre(*n, *frozen, 0);
    auto& attrs = *n->mutable_attr();
    auto type = attrs.find("T");
    for (StringView op : kHandsOn) {
      if (n->op() != op) continue;
      // Values, too, are handed on by these; only handles change.
      if (n->op().starts_with("Ref")) n->set_op(n->op().substr(3));
      if (type != attrs.end()) type->second.set_type(args.begin()->second);
      for (int i = 0; i < 2; ++i) {
        (*frozen)[{n->name(), i}] = args.begin()->second;
      }
      return OkStatus();
    }
    for (const Reader& reader : kReaders) {
      if (n->op() == reader.op) {
        return FreezeReader(reader, args.begin()->second, n);
      }
    }
    if (n->op() == "DisableCopyOnRead") return MakeControl(n);
    if (n->op() == "VarIsInitializedOp" || n->op() == "IsVariableInitialized") {
      return MakeTrue(n);
    }
    const OpDef* op = FindOp(n->op());
    if (op != nullptr && CallsFunctions(*op)) {
      return FreezeCall(*op, n, frozen, depth);
    }
    // Constants that were no variables are read by ops of all kinds.
    for (const auto& [place, dtype] : args) {
      if (TakesHandle(*n, op, place)) return Refuse(*n);
    }
    return OkStatus();
  }

  static bool TakesHandle(const NodeDef& n, const OpDef* op, int place) {
    if (op == nullptr) return true;
    int begin = 0;
    for (const ArgDef& arg : op->inputs) {
      if (arg.is_list()) return false;  // calls alone have lists of handles
      if (begin++ == place) return arg.type == DType::kResource || arg.is_ref;
    }
    return false;
  }

  static Status Refuse(const NodeDef& n) {
    return InvalidArgument("node ", n.name(), " (", n.op(),
                           ") does more with a variable than read it: the "
                           "graph cannot be frozen");
  }

  static Status FreezeReader(const Reader& reader, DataType dtype, NodeDef* n) {
    auto& attrs = *n->mutable_attr();
    if (auto dims = attrs.find("batch_dims");
        dims != attrs.end() && dims->second.i() != 0) {
      return InvalidArgument("node ", n->name(),
                             ": ResourceGather with batch_dims is not frozen");
    }
    n->set_op(reader.becomes);
    for (const char* gone :
         {"dtype", "validate_indices", "batch_dims", "shape", "_class"}) {
      attrs.erase(gone);
    }
    attrs[reader.dtype_attr].set_type(dtype);
    return OkStatus();
  }

  static Status MakeControl(NodeDef* n) {
    n->set_op("NoOp");
    for (std::string& input : *n->mutable_input()) {
      if (!input.starts_with('^')) input = "^" + NodeOfInput(input);
    }
    n->clear_attr();
    return OkStatus();
  }

  static Status MakeTrue(NodeDef* n) {
    HR_RETURN_IF_ERROR(MakeControl(n));
    n->set_op("Const");
    (*n->mutable_attr())["dtype"].set_type(tensorflow::DT_BOOL);
    return TensorToProto(Tensor::Scalar<bool>(true),
                         (*n->mutable_attr())["value"].mutable_tensor());
  }

  Status FreezeCall(const OpDef& op, NodeDef* n, FrozenOutputs* frozen,
                    int depth) {
    if (depth > kDeepestCalls) {
      return InvalidArgument("node ", n->name(),
                             ": functions call each other too deep");
    }
    const bool branches = op.Is(OpRole::kBranch);
    const bool loop = op.Is(OpRole::kLoop);
    if (!branches && !loop && !op.Is(OpRole::kCall)) return Refuse(*n);
    const FrozenArgs args = InputsThatAre(*n, *frozen, branches ? 1 : 0);
    auto& attrs = *n->mutable_attr();
    auto* types = attrs[loop ? "T" : "Tin"].mutable_list();
    for (const auto& [place, dtype] : args) {
      if (place >= types->type_size()) return Refuse(*n);
      types->set_type(place, dtype);
      if (!loop) continue;
      (*frozen)[{n->name(), place}] = dtype;
    }
    attrs.erase("output_shapes");
    for (auto& [key, value] : attrs) {
      if (value.has_func()) {
        HR_RETURN_IF_ERROR(FreezeFunction(args, loop && key == "body", *n,
                                          depth, value.mutable_func()));
      }
      if (!value.has_list()) continue;
      for (auto& f : *value.mutable_list()->mutable_func()) {
        HR_RETURN_IF_ERROR(FreezeFunction(args, false, *n, depth, &f));
      }
    }
    return OkStatus();
  }

  // Points `ref` at the function with values in place of handles.
  Status FreezeFunction(const FrozenArgs& args, bool is_body,
                        const NodeDef& caller, int depth,
                        tensorflow::NameAttrList* ref) {
    const std::string old = ref->name();
    auto it = functions_.find(old);
    if (it == functions_.end()) {
      return NotFound("node ", caller.name(), " calls ", old,
                      ", which is not there");
    }
    std::string key = absl::StrCat(old, "/", is_body);
    for (const auto& [place, dtype] : args) {
      absl::StrAppend(&key, ",", place, ":", static_cast<int>(dtype));
    }
    auto [known, added] = names_.emplace(key, "");
    if (!added) {
      ref->set_name(known->second);
      return OkStatus();
    }
    known->second = NewName(old);
    ref->set_name(known->second);
    FunctionDef f = it->second;
    f.mutable_signature()->set_name(ref->name());
    FrozenOutputs frozen;
    for (const auto& [place, dtype] : args) {
      if (place >= f.signature().input_arg_size()) return Refuse(caller);
      auto* arg = f.mutable_signature()->mutable_input_arg(place);
      arg->set_type(dtype);
      arg->clear_handle_data();
      frozen[{arg->name(), 0}] = dtype;
      f.mutable_arg_attr()->erase(place);
      if (!is_body) continue;
      // A loop hands its handles on as they are.
      if (place >= f.signature().output_arg_size()) return Refuse(caller);
      auto* result = f.mutable_signature()->mutable_output_arg(place);
      result->set_type(dtype);
      result->clear_handle_data();
    }
    std::set<std::string> renamed;
    HR_RETURN_IF_ERROR(FreezeNodes(f.mutable_node_def(), std::move(frozen),
                                   depth + 1, &renamed));
    RenameOutputs(renamed, &f);
    written_.emplace(ref->name(), std::move(f));
    return OkStatus();
  }

  // Bodies name the output of a node that they read: "read:value:0".
  static void RenameOutputs(const std::set<std::string>& renamed,
                            FunctionDef* f) {
    const auto rename = [&](std::string* input) {
      const std::vector<std::string> parts = absl::StrSplit(*input, ':');
      if (parts.size() != 3 || !renamed.contains(parts[0])) return;
      *input = absl::StrCat(parts[0], ":output:", parts[2]);
    };
    for (NodeDef& n : *f->mutable_node_def()) {
      for (std::string& input : *n.mutable_input()) rename(&input);
    }
    for (auto& [name, result] : *f->mutable_ret()) rename(&result);
  }

  std::string NewName(const std::string& old) {
    for (int i = 0;; ++i) {
      std::string name = absl::StrCat(old, "_frozen", i ? absl::StrCat(i) : "");
      if (!functions_.contains(name) && taken_.insert(name).second) return name;
    }
  }

  GraphDef* graph_;
  HashMap<std::string, FunctionDef> functions_;
  std::map<std::string, FunctionDef> written_;
  std::map<std::string, std::string> names_;  // by old name and arguments
  std::set<std::string> taken_;
};

}  // namespace

Status FreezeVariables(const std::map<std::string, Tensor>& values,
                       GraphDef* graph) {
  return VariableFreezer(graph).Freeze(values);
}

}  // namespace headrace::command
