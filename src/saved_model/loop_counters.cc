#include "saved_model/loop_counters.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/hash_map.h"
#include "graph/called_names.h"
#include "op/registry.h"
#include "tensorflow/core/framework/function.pb.h"

namespace headrace {
namespace {

using tensorflow::FunctionDef;
using tensorflow::NodeDef;

constexpr int kAdded = 2;  // the counter and the bound
// TensorFlow's note of how many results a loop had before its gradients asked
// for more. It has one on each of its loops, and so do those counted here.
constexpr char kResults[] = "_num_original_outputs";

bool IsUncounted(const NodeDef& node) {
  const OpDef* op = FindOp(node.op());
  return op != nullptr && op->Is(OpRole::kLoop) &&
         !node.attr().contains(kResults) && node.attr().contains("cond") &&
         node.attr().contains("body");
}

template <typename Field>
void LastComeFirst(Field* field) {
  std::rotate(field->begin(), field->end() - kAdded, field->end());
}

// The number of an argument, by which maps of functions know it, is greater.
template <typename Map>
void ShiftKeys(Map* map) {
  Map shifted;
  for (auto& [key, value] : *map) shifted[key + kAdded] = std::move(value);
  map->swap(shifted);
}

// Adds a scalar int32 of that name.
void AddConstant(const std::string& name, int value, NodeDef* node) {
  node->set_name(name);
  node->set_op("Const");
  (*node->mutable_attr())["dtype"].set_type(tensorflow::DT_INT32);
  auto* tensor = (*node->mutable_attr())["value"].mutable_tensor();
  tensor->set_dtype(tensorflow::DT_INT32);
  tensor->mutable_tensor_shape();
  tensor->add_int_val(value);
}

// The names of arguments, results and nodes of a function.
class NamesOf {
 public:
  explicit NamesOf(const FunctionDef& f) {
    for (const auto& arg : f.signature().input_arg()) taken_.insert(arg.name());
    for (const auto& arg : f.signature().output_arg()) {
      taken_.insert(arg.name());
    }
    for (const NodeDef& node : f.node_def()) taken_.insert(node.name());
  }
  // "name", "name_1", ...: one that is free, and taken now.
  std::string New(const std::string& name) {
    std::string free = name;
    for (int i = 1; !taken_.insert(free).second; ++i) {
      free = absl::StrCat(name, "_", i);
    }
    return free;
  }

 private:
  HashSet<std::string> taken_;
};

// A loop's condition or body, which takes the two, and gives the body's on.
void AddVariables(bool is_body, FunctionDef* f) {
  NamesOf names(*f);
  auto* signature = f->mutable_signature();
  std::string args[kAdded];
  ShiftKeys(f->mutable_arg_attr());
  ShiftKeys(f->mutable_resource_arg_unique_id());
  for (int i = 0; i < kAdded; ++i) {
    args[i] = names.New(i == 0 ? "loop_counter" : "maximum_iterations");
    auto* arg = signature->add_input_arg();
    arg->set_name(args[i]);
    arg->set_type(tensorflow::DT_INT32);
    (*(*f->mutable_arg_attr())[i].mutable_attr())["_output_shapes"]
        .mutable_list()
        ->add_shape();
  }
  LastComeFirst(signature->mutable_input_arg());
  if (!is_body) return;
  const std::string one = names.New("loop_counter/one");
  const std::string next = names.New("loop_counter/next");
  AddConstant(one, 1, f->add_node_def());
  NodeDef* sum = f->add_node_def();
  sum->set_name(next);
  sum->set_op("AddV2");
  sum->add_input(args[0]);
  sum->add_input(one + ":output:0");
  (*sum->mutable_attr())["T"].set_type(tensorflow::DT_INT32);
  for (int i = 0; i < kAdded; ++i) {
    auto* arg = signature->add_output_arg();
    arg->set_name(names.New(args[i] + "_out"));
    arg->set_type(tensorflow::DT_INT32);
    (*f->mutable_ret())[arg->name()] = i == 0 ? next + ":z:0" : args[i];
  }
  LastComeFirst(signature->mutable_output_arg());
}

// The node's attributes and inputs; `count` and `bound` are nodes before it.
void AddInputs(const std::string& count, const std::string& bound,
               NodeDef* loop) {
  loop->add_input(count + ":output:0");
  loop->add_input(bound + ":output:0");
  LastComeFirst(loop->mutable_input());
  auto* types = (*loop->mutable_attr())["T"].mutable_list()->mutable_type();
  for (int i = 0; i < kAdded; ++i) types->Add(tensorflow::DT_INT32);
  LastComeFirst(types);
  (*loop->mutable_attr())[kResults].set_i(types->size());
  const auto known = loop->mutable_attr()->find("output_shapes");
  if (known == loop->mutable_attr()->end()) return;
  auto* shapes = known->second.mutable_list()->mutable_shape();
  if (shapes->empty()) return;                     // none is known
  for (int i = 0; i < kAdded; ++i) shapes->Add();  // scalars
  LastComeFirst(shapes);
}

// "loop:output:3" -> "loop:output:5" where `loop` is one of `counted`.
void ShiftOutput(const HashSet<std::string>& counted, std::string* name) {
  const std::vector<std::string> parts = absl::StrSplit(*name, ':');
  int index = 0;
  if (parts.size() != 3 || !counted.contains(parts[0]) ||
      !absl::SimpleAtoi(parts[2], &index)) {
    return;
  }
  *name = absl::StrCat(parts[0], ":", parts[1], ":", index + kAdded);
}

class LoopCounter {
 public:
  explicit LoopCounter(tensorflow::MetaGraphDef* model)
      : library_(model->mutable_graph_def()->mutable_library()),
        objects_(model->mutable_object_graph_def()) {
    for (int i = 0; i < library_->function_size(); ++i) {
      index_[library_->function(i).signature().name()] = i;
    }
    for (NodeDef& node : *model->mutable_graph_def()->mutable_node()) {
      NoteNames(&node);
    }
    HashSet<std::string> conditions, bodies;
    for (FunctionDef& f : *library_->mutable_function()) {
      for (NodeDef& node : *f.mutable_node_def()) {
        if (!IsUncounted(node)) {
          NoteNames(&node);
          continue;
        }
        conditions.insert(node.attr().at("cond").func().name());
        bodies.insert(node.attr().at("body").func().name());
      }
    }
    for (const std::string& name : conditions) {
      if (bodies.contains(name)) others_.insert(name);  // is both
    }
    for (const auto& entry : model->object_graph_def().concrete_functions()) {
      others_.insert(entry.first);
    }
    for (const auto& g : library_->gradient()) {
      others_.insert(g.function_name());
      others_.insert(g.gradient_func());
    }
    for (const auto& g : library_->registered_gradients()) {
      others_.insert(g.gradient_func());
    }
  }

  void Run() {
    // Copies of functions are added at the end meanwhile.
    for (int i = 0; i < library_->function_size(); ++i) CountIn(i);
    RenameCaptured();
  }

 private:
  // Of a node that is no loop to be counted.
  void NoteNames(NodeDef* node) {
    EachCalledName(node, [&](std::string* name) {
      if (index_.contains(*name)) others_.insert(*name);
    });
  }

  void CountIn(int i) {
    const FunctionDef& before = library_->function(i);
    HashSet<std::string> counted;
    for (const NodeDef& node : before.node_def()) {
      if (IsUncounted(node) && HasParts(node)) counted.insert(node.name());
    }
    if (counted.empty()) return;
    NamesOf names(before);
    google::protobuf::RepeatedPtrField<NodeDef> nodes;
    nodes.Swap(library_->mutable_function(i)->mutable_node_def());
    google::protobuf::RepeatedPtrField<NodeDef> written;
    for (NodeDef& node : nodes) {
      for (std::string& input : *node.mutable_input()) {
        ShiftOutput(counted, &input);
      }
      if (counted.contains(node.name())) {
        const std::string count = names.New(node.name() + "/loop_counter");
        const std::string bound =
            names.New(node.name() + "/maximum_iterations");
        AddConstant(count, 0, written.Add());
        AddConstant(bound, -1, written.Add());
        AddInputs(count, bound, &node);
        auto& attrs = *node.mutable_attr();
        std::string* cond = attrs["cond"].mutable_func()->mutable_name();
        std::string* body = attrs["body"].mutable_func()->mutable_name();
        *cond = CountedPart(*cond, /*is_body=*/false);
        *body = CountedPart(*body, /*is_body=*/true);
      }
      *written.Add() = std::move(node);
    }
    FunctionDef* f = library_->mutable_function(i);
    f->mutable_node_def()->Swap(&written);
    for (auto& [name, value] : *f->mutable_ret()) ShiftOutput(counted, &value);
  }

  bool HasParts(const NodeDef& loop) const {
    return index_.contains(loop.attr().at("cond").func().name()) &&
           index_.contains(loop.attr().at("body").func().name());
  }

  // The name of the condition or body with the two variables more: the function
  // itself, or a copy where it serves as something else as well. The name is a
  // new one, as the process may know another function by the old one.
  std::string CountedPart(const std::string& name, bool is_body) {
    std::string& counted = (is_body ? bodies_ : conditions_)[name];
    if (!counted.empty()) return counted;
    counted = name + "_counted";
    for (int i = 1; index_.contains(counted); ++i) {
      counted = absl::StrCat(name, "_counted_", i);
    }
    int place = index_.at(name);
    if (others_.contains(name)) {
      place = library_->function_size();
      *library_->add_function() = library_->function(index_.at(name));
    }
    index_[counted] = place;
    FunctionDef* f = library_->mutable_function(place);
    f->mutable_signature()->set_name(counted);
    AddVariables(is_body, f);
    return counted;
  }

  // Objects that are tensors of such functions, which custom gradients capture.
  void RenameCaptured() {
    for (auto& object : *objects_->mutable_nodes()) {
      if (!object.has_captured_tensor()) continue;
      std::string* of =
          object.mutable_captured_tensor()->mutable_concrete_function();
      for (const auto* parts : {&conditions_, &bodies_}) {
        auto it = parts->find(*of);
        if (it == parts->end()) continue;
        *of = it->second;
        break;
      }
    }
  }

  tensorflow::FunctionDefLibrary* library_;
  tensorflow::SavedObjectGraph* objects_;
  HashMap<std::string, int> index_;  // of functions, by name
  HashSet<std::string> others_;      // what else than those loops names
  HashMap<std::string, std::string> conditions_, bodies_;  // counted, by name
};

}  // namespace

void CountLoops(tensorflow::MetaGraphDef* model) { LoopCounter(model).Run(); }

}  // namespace headrace
