#include "saved_model/import_functions.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_join.h"
#include "autodiff/named_gradient.h"
#include "base/hash_map.h"
#include "graph/called_names.h"
#include "graph/import.h"
#include "op/absent_ops.h"
#include "op/registry.h"
#include "saved_model/function_names.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace headrace {
namespace {

using tensorflow::FunctionDef;
using tensorflow::FunctionDefLibrary;
using tensorflow::GraphDef;
using tensorflow::NodeDef;

class FunctionImporter {
 public:
  FunctionImporter(GraphDef* def, const std::string& folder)
      : def_(def), library_(def->mutable_library()), folder_(folder) {
    for (FunctionDef& f : *library_->mutable_function()) {
      by_name_.emplace(f.signature().name(), &f);
    }
    for (const auto& g : library_->gradient()) {
      gradients_.emplace(g.function_name(), g.gradient_func());
    }
    for (const auto& g : library_->registered_gradients()) {
      registered_.emplace(g.registered_op_type(), g.gradient_func());
    }
  }

  StatusOr<ImportedFunctions> Import(const std::vector<std::string>& roots) {
    for (const std::string& root : roots) {
      if (!by_name_.contains(root)) {
        return NotFound("SavedModel ", folder_, ": function ", root,
                        " is not there");
      }
      Reach(root);
    }
    def_->clear_node();
    HR_RETURN_IF_ERROR(RenameReached());
    ImportedFunctions made;
    made.holder = std::make_shared<Graph>();
    made.holder->is_body = true;  // its functions are found process-wide
    HR_RETURN_IF_ERROR(ImportGraphDef(*def_, {}, made.holder.get(), nullptr));
    for (const auto& [old, name] : names_) {
      made.by_name.emplace(old, made.holder->library()->Find(name));
    }
    made.gradients = std::move(named_);
    return made;
  }

  Status RenameReached() {
    for (NodeDef& n : *def_->mutable_node()) ReachFrom(&n);
    ReachAll();
    HR_RETURN_IF_ERROR(CheckOps());
    Rename();
    return OkStatus();
  }

 private:
  // Walking a function's nodes comes later: they may call each other as deep as
  // they like.
  void Reach(const std::string& name) {
    auto it = by_name_.find(name);
    if (it == by_name_.end() || names_.contains(name)) return;
    names_.emplace(name, FunctionLibrary::NewName(WithoutNumber(name)));
    reached_.push_back(it->second);
  }

  void ReachAll() {
    for (size_t i = 0; i < reached_.size(); ++i) {
      const std::string name = reached_[i]->signature().name();
      for (NodeDef& n : *reached_[i]->mutable_node_def()) ReachFrom(&n);
      auto gradient = gradients_.find(name);
      if (gradient != gradients_.end()) Reach(gradient->second);
    }
  }

  void ReachFrom(NodeDef* n) {
    EachCalledName(n, [this](std::string* name) { Reach(*name); });
  }

  Status CheckOps() const {
    std::set<StringView> missing;
    const auto check = [&](const auto& nodes) {
      for (const NodeDef& n : nodes) {
        if (names_.contains(n.op()) || FindOp(n.op()) != nullptr) continue;
        missing.insert(n.op());
      }
    };
    check(def_->node());
    for (const FunctionDef* f : reached_) check(f->node_def());
    if (missing.empty()) return OkStatus();
    const std::string why = WhyAbsent(missing);
    return Unimplemented("SavedModel ", folder_, " needs operations that are ",
                         "not supported: ", absl::StrJoin(missing, ", "),
                         why.empty() ? "" : ".", why);
  }

  // Of gradients whose functions are reached.
  void NameGradients() {
    for (const auto& [asked, function] : registered_) {
      if (!names_.contains(function)) continue;
      const std::string name = FunctionLibrary::NewName(asked);
      new_gradients_.emplace(asked, name);
      named_.push_back({name, function});
    }
  }

  // Gives what was reached its new names and drops the rest.
  void Rename() {
    const std::string suffix = FunctionLibrary::NewName("_load");
    NameGradients();
    for (NodeDef& n : *def_->mutable_node()) {
      // State that is given no name has its node's, which is that of many.
      const OpDef* op = FindOp(n.op());
      if (op != nullptr && op->FindAttr("shared_name") != nullptr) {
        std::string* name = (*n.mutable_attr())["shared_name"].mutable_s();
        if (name->empty()) *name = n.name();
      }
      RenameIn(&n, suffix);
    }
    for (FunctionDef* f : reached_) {
      for (NodeDef& n : *f->mutable_node_def()) RenameIn(&n, suffix);
      f->mutable_signature()->set_name(names_.at(f->signature().name()));
    }
    KeepReached();
    library_->clear_registered_gradients();
    library_->clear_gradient();
    for (const auto& [function, gradient] : gradients_) {
      if (!names_.contains(function) || !names_.contains(gradient)) continue;
      auto* g = library_->add_gradient();
      g->set_function_name(names_.at(function));
      g->set_gradient_func(names_.at(gradient));
    }
  }

  // Messages are moved, wherever they lie, not copied.
  void KeepReached() {
    auto* functions = library_->mutable_function();
    std::vector<FunctionDef*> all(functions->size());
    functions->UnsafeArenaExtractSubrange(0, functions->size(), all.data());
    for (FunctionDef* f : reached_) functions->UnsafeArenaAddAllocated(f);
    if (library_->GetArena() != nullptr) return;
    const HashSet<FunctionDef*> kept(reached_.begin(), reached_.end());
    for (FunctionDef* f : all) {
      if (!kept.contains(f)) delete f;
    }
  }

  void RenameIn(NodeDef* n, const std::string& suffix) {
    RenameCalls(names_, n);
    auto gradient = n->mutable_attr()->find(std::string(kGradientAttr));
    if (gradient != n->mutable_attr()->end()) {
      auto renamed = new_gradients_.find(gradient->second.s());
      if (renamed != new_gradients_.end()) {
        gradient->second.set_s(renamed->second);
      } else if (InSandbox()) {
        // The program's own gradient of that name is none of the model's.
        gradient->second.mutable_s()->append(" of a model in safe mode");
      }
    }
    auto name = n->mutable_attr()->find("shared_name");
    if (name != n->mutable_attr()->end() && !name->second.s().empty()) {
      name->second.mutable_s()->append(suffix);
    }
  }

  GraphDef* def_;
  FunctionDefLibrary* library_;
  const std::string& folder_;
  HashMap<std::string, FunctionDef*> by_name_;
  HashMap<std::string, std::string> gradients_;
  // By the name that nodes ask for a gradient: its function, its new name.
  HashMap<std::string, std::string> registered_, new_gradients_;
  std::vector<ImportedGradient> named_;
  FunctionNames names_;
  std::vector<FunctionDef*> reached_;
};

}  // namespace

StatusOr<ImportedFunctions> ImportFunctions(
    GraphDef* def, const std::vector<std::string>& roots,
    const std::string& folder) {
  return FunctionImporter(def, folder).Import(roots);
}

Status GiveNewNames(GraphDef* def, const std::string& folder) {
  return FunctionImporter(def, folder).RenameReached();
}

}  // namespace headrace
