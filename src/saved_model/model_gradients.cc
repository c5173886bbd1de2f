// Writes the gradients that nodes of a model's functions ask for by name.
#include <set>

#include "autodiff/gradient_function.h"
#include "saved_model/model_writer.h"
#include "saved_model/saved_gradients.h"

namespace headrace {

// Functions that objects name, those that these call, and from where.
class ModelWriter::GradientWriter {
 public:
  explicit GradientWriter(ModelWriter* writer) : w_(writer) {
    for (const FunctionPtr& f : w_->functions_) Reach(f, nullptr, nullptr);
    for (size_t i = 0; i < reached_.size(); ++i) ReachFrom(*reached_[i]);
  }

  StatusOr<std::vector<std::string>> Write() {
    for (const FunctionPtr& f : reached_) {
      for (int i = 0; i < f->body->num_nodes(); ++i) {
        const Node& n = *f->body->node(i);
        const std::string* name = GradientNameOf(n.op());
        if (name == nullptr || !FindNamedGradient(*name)) continue;
        HR_RETURN_IF_ERROR(WriteOne(*f, n, *name));
      }
    }
    return std::move(warnings_);
  }

 private:
  struct Call {
    const Function* caller;
    const Node* node;
  };

  void Reach(const FunctionPtr& f, const Function* caller, const Node* node) {
    if (!known_.insert(f.get()).second) return;
    reached_.push_back(f);
    if (caller != nullptr) calls_[f.get()] = {caller, node};
  }

  void ReachFrom(const Function& f) {
    for (int i = 0; i < f.body->num_nodes(); ++i) {
      const Node* n = f.body->node(i);
      for (const auto& [key, value] : n->op().attrs()) {
        if (const auto* ref = std::get_if<FuncRef>(&value)) {
          ReachNamed(f, n, ref->name);
        } else if (const auto* l = std::get_if<std::vector<FuncRef>>(&value)) {
          for (const FuncRef& ref : *l) ReachNamed(f, n, ref.name);
        }
      }
    }
  }

  void ReachNamed(const Function& f, const Node* n, const std::string& name) {
    auto found = FindFunction(f.body->library().get(), name);
    if (found.ok()) Reach(*found, &f, n);
  }

  Status WriteOne(const Function& f, const Node& n, const std::string& name) {
    auto gradient = AsGradientFunction(f, n, name);
    if (absl::IsInvalidArgument(gradient.status())) {
      warnings_.push_back(absl::StrCat(
          "Cannot save custom gradient ", name, " called in function ", f.name,
          " because SavedModel is unable to serialize the captured inputs: ",
          gradient.status().message()));
      return OkStatus();
    }
    HR_RETURN_IF_ERROR(gradient.status());
    tensorflow::SavedConcreteFunction saved;
    for (const Value& capture : gradient->captures) {
      HR_ASSIGN_OR_RETURN(const int id, ObjectOf(f, *gradient, capture));
      saved.add_bound_inputs(id);
    }
    DescribeGradient(*gradient, n.num_outputs(), &saved);
    const std::string& made = gradient->function->name;
    (*w_->objects_->mutable_concrete_functions())[made] = std::move(saved);
    w_->functions_.push_back(gradient->function);
    std::string asked = name;
    if (!asked_.insert(name).second) {
      // The same name, but captures of its own.
      asked = FunctionLibrary::NewName(name);
      w_->renamed_gradients_[{f.name, n.name()}] = asked;
    }
    w_->gradients_.emplace_back(std::move(asked), made);
    return OkStatus();
  }

  StatusOr<int> ObjectOf(const Function& f, const GradientFunction& gradient,
                         const Value& capture) {
    if (!capture.is_symbolic()) {
      return w_->ObjectOf(*gradient.function, capture,
                          gradient.function->args.size() - 1);
    }
    const Edge e = EdgeOf(capture);
    const int bound = BoundTo(f, e);
    if (bound >= 0) return bound;
    auto [it, added] = tensors_.emplace(e, 0);
    if (added) {
      tensorflow::SavedObject o;
      o.mutable_captured_tensor()->set_name(NameIn(f, e));
      o.mutable_captured_tensor()->set_concrete_function(f.name);
      it->second = w_->AddObject(std::move(o));
    }
    return it->second;
  }

  static std::string NameIn(const Function& f, const Edge& e) {
    for (size_t i = 0; i < f.args.size(); ++i) {
      if (f.args[i] == e.node && i < f.arg_names.size()) {
        return absl::StrCat(f.arg_names[i], ":0");
      }
    }
    return absl::StrCat(e.node->name(), ":", e.index);
  }

  // The object that an argument of `f` is bound to, by way of those who call
  // it; -1 for other tensors.
  int BoundTo(const Function& f, Edge e) const {
    const Function* in = &f;
    for (size_t steps = 0; steps <= reached_.size(); ++steps) {
      auto arg = std::find(in->args.begin(), in->args.end(), e.node);
      if (arg == in->args.end()) return -1;
      const int place = static_cast<int>(arg - in->args.begin());
      const int args = static_cast<int>(in->args.size());
      const auto& all = w_->objects_->concrete_functions();
      if (auto saved = all.find(in->name); saved != all.end()) {
        const auto& bound = saved->second.bound_inputs();
        const int first = args - bound.size();
        return place < first ? -1 : bound[place - first];
      }
      auto call = calls_.find(in);
      if (call == calls_.end()) return -1;
      const Node* n = call->second.node;
      const int before = n->num_inputs() - args;
      if (before < 0) return -1;
      e = n->input(place + before);
      // What goes round in a loop need not be what entered it.
      if (e.node->output_type(e.index) != DType::kResource) return -1;
      in = call->second.caller;
    }
    return -1;
  }

  ModelWriter* const w_;
  std::vector<FunctionPtr> reached_;
  std::set<const Function*> known_;
  HashMap<const Function*, Call> calls_;
  std::set<std::string> asked_;
  HashMap<Edge, int> tensors_;
  std::vector<std::string> warnings_;
};

StatusOr<std::vector<std::string>> ModelWriter::AddGradients() {
  // Those of functions that were loaded are functions already, but are written
  // anew: so are the functions.
  return GradientWriter(this).Write();
}

void ModelWriter::NameGradients(tensorflow::GraphDef* def) const {
  auto* library = def->mutable_library();
  for (const auto& [asked, function] : gradients_) {
    auto* g = library->add_registered_gradients();
    g->set_registered_op_type(asked);
    g->set_gradient_func(function);
  }
  if (renamed_gradients_.empty()) return;
  for (auto& f : *library->mutable_function()) {
    for (auto& n : *f.mutable_node_def()) {
      auto it = renamed_gradients_.find({f.signature().name(), n.name()});
      if (it == renamed_gradients_.end()) continue;
      (*n.mutable_attr())[std::string(kGradientAttr)].set_s(it->second);
    }
  }
}

}  // namespace headrace
