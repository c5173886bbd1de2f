#include "saved_model/saved_gradients.h"

#include <set>

#include "base/mutex.h"
#include "tensor/dtype_proto.h"
#include "tensor/tensor_proto.h"

namespace headrace {
namespace {

using tensorflow::SavedConcreteFunction;
using tensorflow::SavedObjectGraph;
using tensorflow::StructuredValue;
using Places = FunctionGradient::Places;

// Which node of which function asks for a gradient.
struct Asking {
  FunctionPtr function;
  const Node* node;
};

void SetSpec(const Node& n, int output, StringView name,
             StructuredValue* value) {
  auto* spec = value->mutable_tensor_spec_value();
  spec->set_name(std::string(name));
  spec->set_dtype(TypeToProto(BaseType(n.output_type(output))));
  ShapeToProto(n.output_shape(output), spec->mutable_shape());
}

// IndexedSlicesSpec's state: shape, dtype, that of the indices, whether the
// dense shape is known and that of the indices.
void SetSlices(const Function& f, const Places& p, StructuredValue* value) {
  auto* spec = value->mutable_type_spec_value();
  spec->set_type_spec_class(tensorflow::TypeSpecProto::INDEXED_SLICES_SPEC);
  spec->set_type_spec_class_name("IndexedSlicesSpec");
  spec->set_num_flat_components(p.dense_shape < 0 ? 2 : 3);
  auto* state = spec->mutable_type_state()->mutable_tuple_value();
  const Edge& values = f.results[p.values];
  const Edge& indices = f.results[p.indices];
  ShapeToProto(Shape::UnknownRank(),
               state->add_values()->mutable_tensor_shape_value());
  state->add_values()->set_tensor_dtype_value(
      TypeToProto(values.node->output_type(values.index)));
  state->add_values()->set_tensor_dtype_value(
      TypeToProto(indices.node->output_type(indices.index)));
  if (p.dense_shape < 0) {
    state->add_values()->mutable_none_value();
  } else {
    const Edge& dense = f.results[p.dense_shape];
    state->add_values()->set_tensor_dtype_value(
        TypeToProto(dense.node->output_type(dense.index)));
  }
  ShapeToProto(indices.node->output_shape(indices.index),
               state->add_values()->mutable_tensor_shape_value());
}

// Reads what stands where among the results of gradient functions.
class PlaceReader {
 public:
  PlaceReader(const std::string& name, const Function& f)
      : name_(name), f_(f) {}

  StatusOr<std::vector<Places>> Read(const StructuredValue& outputs) {
    std::vector<Places> places;
    if (outputs.has_list_value()) {
      for (const StructuredValue& v : outputs.list_value().values()) {
        HR_RETURN_IF_ERROR(ReadOne(v, &places.emplace_back()));
      }
    } else if (outputs.has_tuple_value()) {
      for (const StructuredValue& v : outputs.tuple_value().values()) {
        HR_RETURN_IF_ERROR(ReadOne(v, &places.emplace_back()));
      }
    } else {
      return DataLoss("gradient function ", name_, " gives no list");
    }
    if (next_ != f_.results.size()) return WrongCount();
    return places;
  }

 private:
  Status ReadOne(const StructuredValue& v, Places* places) {
    if (v.has_tensor_spec_value()) return Take(&places->dense);
    if (v.has_none_value()) return OkStatus();
    if (!v.has_type_spec_value() ||
        v.type_spec_value().type_spec_class() !=
            tensorflow::TypeSpecProto::INDEXED_SLICES_SPEC) {
      return DataLoss("gradient function ", name_,
                      " gives what is neither a tensor nor slices");
    }
    HR_RETURN_IF_ERROR(Take(&places->values));
    HR_RETURN_IF_ERROR(Take(&places->indices));
    const auto& state = v.type_spec_value().type_state().tuple_value();
    const bool dense =
        state.values_size() > 3 && state.values(3).has_tensor_dtype_value();
    return dense ? Take(&places->dense_shape) : OkStatus();
  }

  Status Take(int* place) {
    if (next_ == f_.results.size()) return WrongCount();
    *place = static_cast<int>(next_++);
    return OkStatus();
  }

  Status WrongCount() const {
    return DataLoss("gradient function ", name_, " has ", f_.results.size(),
                    " results, which is not what its signature says");
  }

  const std::string& name_;
  const Function& f_;
  size_t next_ = 0;
};

class GradientRegistrar {
 public:
  GradientRegistrar(const ImportedFunctions& made,
                    const SavedObjectGraph& objects,
                    const std::function<StatusOr<Value>(int)>& value_of)
      : made_(made), objects_(objects), value_of_(value_of) {}

  Status Register() {
    HashMap<std::string, std::vector<Asking>> asking;
    for (const auto& [name, f] : made_.by_name) {
      file_name_.emplace(f.get(), name);
      for (int i = 0; i < f->body->num_nodes(); ++i) {
        const Node* n = f->body->node(i);
        if (const std::string* gradient = GradientNameOf(n->op())) {
          asking[*gradient].push_back({f, n});
        }
      }
    }
    for (const ImportedGradient& g : made_.gradients) {
      auto it = asking.find(g.name);
      if (it == asking.end()) continue;
      HR_RETURN_IF_ERROR(RegisterOne(g, it->second));
    }
    for (auto& [f, tokens] : tokens_) {
      MutexLock lock(f->derived_mutex);
      f->derived.kept = std::make_shared<Tokens>(std::move(tokens));
    }
    return OkStatus();
  }

 private:
  using Tokens = std::vector<std::shared_ptr<void>>;

  Status RegisterOne(const ImportedGradient& g,
                     const std::vector<Asking>& asking) {
    HR_ASSIGN_OR_RETURN(GradientFunction made, Made(g, asking[0]));
    const auto token =
        KeepNamedGradient(g.name, GradientCalling(std::move(made)));
    std::set<const Function*> holders;
    for (const Asking& a : asking) {
      // A gradient that asks for itself would keep itself.
      if (a.function->name == made_.by_name.at(g.function)->name) continue;
      if (holders.insert(a.function.get()).second) {
        tokens_[a.function].push_back(token);
      }
    }
    return OkStatus();
  }

  StatusOr<GradientFunction> Made(const ImportedGradient& g,
                                  const Asking& asking) {
    GradientFunction made;
    made.function = made_.by_name.at(g.function);
    auto it = objects_.concrete_functions().find(g.function);
    if (it == objects_.concrete_functions().end()) {
      return DataLoss("gradient function ", g.function, " has no signature");
    }
    const SavedConcreteFunction& saved = it->second;
    HR_ASSIGN_OR_RETURN(
        made.places,
        PlaceReader(g.function, *made.function).Read(saved.output_signature()));
    const size_t own = asking.node->num_outputs();
    if (made.places.size() != static_cast<size_t>(asking.node->num_inputs()) ||
        made.function->args.size() != own + saved.bound_inputs_size()) {
      return DataLoss("gradient function ", g.function, " does not fit node ",
                      asking.node->name());
    }
    for (int i = 0; i < saved.bound_inputs_size(); ++i) {
      HR_ASSIGN_OR_RETURN(Value v, CaptureOf(asking, saved.bound_inputs(i)));
      const DType wanted = made.function->args[own + i]->output_type(0);
      if (!v || v.dtype() != wanted) {
        return DataLoss("gradient function ", g.function, " captures object ",
                        saved.bound_inputs(i), " as ", DTypeName(wanted),
                        ", which it is not");
      }
      made.captures.push_back(std::move(v));
    }
    return made;
  }

  StatusOr<Value> CaptureOf(const Asking& asking, int id) {
    const auto& o = objects_.nodes(id);
    if (!o.has_captured_tensor()) return ObjectIn(asking.function, id);
    auto it = made_.by_name.find(o.captured_tensor().concrete_function());
    if (it == made_.by_name.end()) {
      return DataLoss("object ", id, " is a tensor of function ",
                      o.captured_tensor().concrete_function(),
                      ", which is not there");
    }
    HR_ASSIGN_OR_RETURN(Value v,
                        TensorNamed(it->second, o.captured_tensor().name()));
    return Within(asking.function, it->second, std::move(v));
  }

  // An object as an argument of `f`, where that captures it: gradients of the
  // gradient go there.
  StatusOr<Value> ObjectIn(const FunctionPtr& f, int id) {
    auto it = objects_.concrete_functions().find(file_name_.at(f.get()));
    if (it != objects_.concrete_functions().end()) {
      const auto& bound = it->second.bound_inputs();
      for (int i = 0; i < bound.size(); ++i) {
        const size_t arg = f->args.size() - bound.size() + i;
        if (bound[i] == id && arg < f->args.size()) {
          return f->body->Output(f->args[arg], 0);
        }
      }
    }
    return value_of_(id);
  }

  // A tensor of a function around `f`, which hands it on in a branch, a loop or
  // a call: the argument that it becomes.
  static Value Within(const FunctionPtr& f, const FunctionPtr& around,
                      Value v) {
    if (f == around) return v;
    const Edge wanted = EdgeOf(v);
    for (int i = 0; i < around->body->num_nodes(); ++i) {
      const Node* n = around->body->node(i);
      if (!Calls(*n, f->name)) continue;
      // Branches have an input of their own before those that they hand on.
      const int before = n->num_inputs() - static_cast<int>(f->args.size());
      for (int k = std::max(before, 0); k < n->num_inputs(); ++k) {
        if (n->input(k) == wanted && k - before < n->num_inputs()) {
          return f->body->Output(f->args[k - before], 0);
        }
      }
    }
    return v;  // out of reach: an error where the gradient is asked for
  }

  static bool Calls(const Node& n, const std::string& name) {
    for (const auto& [key, value] : n.op().attrs()) {
      if (const auto* f = std::get_if<FuncRef>(&value)) {
        if (f->name == name) return true;
      } else if (const auto* l = std::get_if<std::vector<FuncRef>>(&value)) {
        for (const FuncRef& f : *l) {
          if (f.name == name) return true;
        }
      }
    }
    return false;
  }

  const ImportedFunctions& made_;
  const SavedObjectGraph& objects_;
  const std::function<StatusOr<Value>(int)>& value_of_;
  HashMap<const Function*, std::string> file_name_;
  HashMap<FunctionPtr, Tokens> tokens_;
};

}  // namespace

void DescribeGradient(const GradientFunction& gradient, int num_outputs,
                      SavedConcreteFunction* saved) {
  const Function& f = *gradient.function;
  auto* given =
      saved->mutable_canonicalized_input_signature()->mutable_tuple_value();
  auto* args = given->add_values()->mutable_tuple_value();
  given->add_values()->mutable_dict_value();
  // Upstream hands its gradient functions the operation first.
  args->add_values()->mutable_none_value();
  for (int i = 0; i < num_outputs; ++i) {
    SetSpec(*f.args[i], 0, absl::StrCat("result_grads_", i),
            args->add_values());
  }
  auto* results = saved->mutable_output_signature()->mutable_list_value();
  for (size_t i = 0; i < gradient.places.size(); ++i) {
    const Places& p = gradient.places[i];
    StructuredValue* value = results->add_values();
    if (p.dense >= 0) {
      const Edge& e = f.results[p.dense];
      SetSpec(*e.node, e.index, absl::StrCat("tensor_", i), value);
    } else if (p.values >= 0) {
      SetSlices(f, p, value);
    } else {
      value->mutable_none_value();
    }
  }
}

StatusOr<Value> TensorNamed(const FunctionPtr& f, const std::string& name) {
  StatusOr<Edge> e = f->body->FindOutput(name);
  if (!e.ok()) {
    return DataLoss("function ", f->name, " has no tensor ", name);
  }
  return f->body->Output(*e);
}

Status RegisterGradients(const ImportedFunctions& made,
                         const SavedObjectGraph& objects,
                         const std::function<StatusOr<Value>(int)>& value_of) {
  if (made.gradients.empty()) return OkStatus();
  return GradientRegistrar(made, objects, value_of).Register();
}

}  // namespace headrace
