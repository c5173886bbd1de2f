#include "bind/trackable_object.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include "bind/python/status.h"
#include "bind/value/convert.h"
#include "bind/value/dtype_object.h"
#include "bind/value/tensor_object.h"
#include "bind/value/variable_object.h"
#include "graph/builder.h"
#include "op/emitter.h"
#include "op/resource.h"
#include "train/remote_variable_node.h"
#include "train/variable_node.h"

namespace nb = nanobind;

namespace headrace::bind {
namespace {

// A weak reference to the Python object that keeps a node.
class Owner {
 public:
  explicit Owner(nb::handle object)
      : reference_(object.is_none()
                       ? Ref()
                       : Ref(PyWeakref_NewRef(object.ptr(), nullptr))) {
    if (!object.is_none() && !reference_) nb::raise_python_error();
  }
  // Nodes may end on any thread.
  ~Owner() { DropAnywhere(reference_.release()); }
  nb::object get() const {
    if (!reference_) return nb::none();
    // Gives None for an object that is gone.
    return nb::borrow(PyWeakref_GetObject(reference_.get()));
  }

 private:
  Ref reference_;
};

class WithOwner {
 public:
  virtual ~WithOwner() = default;
  virtual nb::object owner() const = 0;
};

// Runs Python code; what it raises stays set, for RaiseTrackable.
template <typename F>
Status InPython(F&& f) {
  WithGil locked;
  try {
    return OrPark(f);
  } catch (nb::python_error& e) {
    // See RaiseTrackable: the exception is raised when the status arrives
    // there.
    e.restore();
    return Unknown("Python raised");
  }
}

// Calls a function of framework/trackable.py.
template <typename... Args>
nb::object Ask(const char* function, Args&&... args) {
  const Ref callee = Import("framework.trackable", function);
  if (!callee) throw nb::python_error();
  return nb::handle(callee.get())(args...);
}

// An object with `_serialize_to_tensors` and `_restore_from_tensors` has the
// values that these name; one with `_check_savable` may refuse to be saved.
// Classes with a `_trackable_children` of their own are asked for their
// children, those with a `_lookup_dependency` too for what a restored
// checkpoint has.
class PythonNode : public Trackable, public WithOwner {
 public:
  PythonNode(nb::handle owner, bool has_values, bool has_check, bool has_lookup,
             bool has_children)
      : owner_(owner),
        has_values_(has_values),
        has_check_(has_check),
        has_lookup_(has_lookup),
        has_children_(has_children) {}

  nb::object owner() const override { return owner_.get(); }

  bool has_values() const override { return has_values_; }
  StatusOr<std::vector<ValueSpec>> Specs() const override {
    std::vector<ValueSpec> specs;
    // Left from a Specs() whose Read() never came.
    values_.clear();
    if (!has_values_) return specs;
    HR_RETURN_IF_ERROR(InPython([&]() -> Status {
      const nb::object owner = owner_.get();
      const nb::object dict = OwnTensors(owner);
      // The words that Python itself would have.
      if (!nb::isinstance<nb::dict>(dict)) {
        PyErr_Format(PyExc_AttributeError,
                     "'%s' object has no attribute 'items'",
                     NameOfType(dict.ptr()).c_str());
        throw nb::python_error();
      }
      // What the object graph calls all of them, where that is one name.
      const std::string attribute = nb::cast<std::string>(
          nb::getattr(owner, "_checkpoint_attribute", nb::str("")));
      for (const auto& [name, value] : nb::cast<nb::dict>(dict)) {
        Value v;
        if (!ToValue(value.ptr(), {}, &v)) throw nb::python_error();
        // A value inside of a function exists only while the function runs.
        if (v.is_symbolic() && v.graph()->is_body) {
          return Unimplemented("a checkpoint of values inside a function");
        }
        specs.push_back({.name = nb::cast<std::string>(nb::str(name))});
        // Of several values the names only begin with the attribute's.
        if (specs.back().name.rfind(attribute, 0) == 0) {
          specs.back().attribute = attribute;
        }
        // One of a graph is read by its session, when nodes save it.
        values_.push_back(v.is_symbolic() ? Tensor() : v.tensor());
      }
      return OkStatus();
    }));
    return specs;
  }
  StatusOr<std::vector<Tensor>> Read() const override {
    return std::move(values_);
  }
  Status Write(absl::Span<const Tensor> values) override {
    HR_ASSIGN_OR_RETURN(const auto specs, Specs());
    return InPython([&]() -> Status {
      // A value that the checkpoint lacks is left out, so that the object keeps
      // its own.
      nb::dict dict;
      for (size_t i = 0; i < std::min(values.size(), specs.size()); ++i) {
        if (!values[i].has_buffer()) continue;
        dict[specs[i].name.c_str()] = nb::steal(WrapValue(Value(values[i])));
      }
      owner_.get().attr("_restore_from_tensors")(dict);
      return OkStatus();
    });
  }
  // In a plain graph nodes save and restore, as they do for its variables.
  bool reads_itself() const override {
    return has_values_ && !CurrentEmitter()->is_eager();
  }
  Status ReadFrom(const std::string& prefix,
                  absl::Span<const std::string> keys) override {
    HR_ASSIGN_OR_RETURN(const auto specs, Specs());
    return InPython([&] {
      nb::list names, places;
      for (const ValueSpec& spec : specs) names.append(spec.name);
      for (const std::string& key : keys) places.append(key);
      // Looked up at each call: train stands on a higher floor and may not be
      // loaded yet.
      Ref restore = Import("train.graph_checkpoint", "restored_object");
      if (!restore) throw nb::python_error();
      nb::handle(restore.get())(owner_.get(), prefix, names, places);
      return OkStatus();
    });
  }
  StatusOr<std::vector<TrackablePtr>> Lookup(
      absl::Span<const std::string> names) override {
    if (!has_lookup_ && !has_children_) return Trackable::Lookup(names);
    std::vector<TrackablePtr> found(names.size());
    HR_RETURN_IF_ERROR(InPython([&] {
      nb::list wanted;
      for (const std::string& name : names) wanted.append(name);
      const nb::object nodes = Ask("looked_up", owner_.get(), wanted);
      for (size_t i = 0; i < names.size(); ++i) {
        if (!nodes[i].is_none()) found[i] = nb::cast<TrackablePtr>(nodes[i]);
      }
      return OkStatus();
    }));
    return found;
  }
  Status Refresh() override {
    if (!has_children_) return OkStatus();
    std::vector<std::pair<std::string, TrackablePtr>> found;
    HR_RETURN_IF_ERROR(InPython([&] {
      for (const nb::handle pair : Ask("found_children", owner_.get())) {
        found.emplace_back(nb::cast<std::string>(pair[0]),
                           nb::cast<TrackablePtr>(pair[1]));
      }
      return OkStatus();
    }));
    SetFound(found);
    return OkStatus();
  }
  Status BeforeSave() const override {
    if (!has_check_) return OkStatus();
    return InPython([&] {
      owner_.get().attr("_check_savable")();
      return OkStatus();
    });
  }

 private:
  static nb::object OwnTensors(const nb::object& owner) {
    if (CurrentEmitter()->is_eager()) {
      return owner.attr("_serialize_to_tensors")();
    }
    Ref in_graph = Import("train.graph_checkpoint", "own_tensors");
    if (!in_graph) throw nb::python_error();
    return nb::handle(in_graph.get())(owner);
  }

  const Owner owner_;
  const bool has_values_, has_check_, has_lookup_, has_children_;
  // Of the last Specs(): Read() follows it at once.
  mutable std::vector<Tensor> values_;
};

class PythonVariableNode : public VariableNode, public WithOwner {
 public:
  PythonVariableNode(nb::handle owner, std::shared_ptr<Variable> variable,
                     std::string name)
      : VariableNode(std::move(variable), std::move(name)), owner_(owner) {}
  nb::object owner() const override { return owner_.get(); }

 private:
  const Owner owner_;
};

class PythonRemoteNode : public RemoteVariableNode, public WithOwner {
 public:
  PythonRemoteNode(nb::handle owner, Tensor handle, ValueSpec spec)
      : RemoteVariableNode(std::move(handle), std::move(spec)), owner_(owner) {}
  nb::object owner() const override { return owner_.get(); }

 private:
  const Owner owner_;
};

// A variable of a graph: sessions have its values, so it is saved and restored
// by nodes, which Python adds (`_restored_from`).
class GraphVariableNode : public Trackable, public WithOwner {
 public:
  // `handle`: its id, 0 where operations take the variable by reference.
  GraphVariableNode(nb::handle owner, ValueSpec spec, uint64_t handle)
      : owner_(owner), spec_(std::move(spec)), handle_(handle) {}
  nb::object owner() const override { return owner_.get(); }

  bool has_values() const override { return true; }
  uint64_t graph_handle() const override { return handle_; }
  StatusOr<std::vector<ValueSpec>> Specs() const override {
    return std::vector<ValueSpec>{spec_};
  }
  // Without a buffer where its session saves it, as it does a checkpoint's.
  StatusOr<std::vector<Tensor>> Read() const override {
    std::vector<Tensor> values(1);
    HR_RETURN_IF_ERROR(InPython([&] {
      const nb::object found = Ask("value_of_session", owner_.get());
      if (!found.is_none()) values[0] = ValueOrHandle(found).tensor();
      return OkStatus();
    }));
    return values;
  }
  bool reads_itself() const override { return true; }
  Status ReadFrom(const std::string& prefix,
                  absl::Span<const std::string> keys) override {
    return InPython([&] {
      owner_.get().attr("_restored_from")(prefix, keys[0]);
      return OkStatus();
    });
  }

 private:
  const Owner owner_;
  const ValueSpec spec_;
  const uint64_t handle_;
};

TrackablePtr NewNode(nb::object owner, bool has_values, bool has_check,
                     bool has_lookup, bool has_children) {
  return std::make_shared<PythonNode>(owner, has_values, has_check, has_lookup,
                                      has_children);
}

TrackablePtr NewVariableNode(nb::object variable, const std::string& name) {
  if (!IsVariable(variable.ptr())) throw nb::type_error("not a variable");
  const Value& handle = HandleOf(variable.ptr());
  if (!handle) throw nb::type_error("the variable is not set up");
  const auto spec = [&] {
    const VariableTraits traits = TraitsOf(variable.ptr());
    return ValueSpec{kVariableValue, name, traits.dtype, *traits.shape};
  };
  // The resource is made when the graph runs.
  if (handle.is_symbolic()) {
    return std::make_shared<GraphVariableNode>(variable, spec(), handle.id());
  }
  if (RemoteNameOf(handle.tensor()) != nullptr) {
    return std::make_shared<PythonRemoteNode>(variable, handle.tensor(),
                                              spec());
  }
  auto resource =
      ValueOrRaise(ResourceAs<Variable>(handle.tensor(), &DefaultResources()));
  return std::make_shared<PythonVariableNode>(variable, std::move(resource),
                                              name);
}

// Of a variable that operations take by reference.
TrackablePtr NewReferenceNode(nb::object variable, const std::string& name,
                              nb::handle dtype, nb::handle shape) {
  ValueSpec spec{kVariableValue, name};
  spec.dtype = AsDType(dtype.ptr());
  if (spec.dtype == DType::kInvalid) throw nb::type_error("no dtype");
  if (!AsShape(shape.ptr(), &spec.shape)) nb::raise_python_error();
  return std::make_shared<GraphVariableNode>(variable, std::move(spec), 0);
}

nb::list PairsOf(
    const std::vector<std::pair<std::string, TrackablePtr>>& children) {
  nb::list out;
  for (const auto& [name, child] : children) {
    out.append(nb::make_tuple(name, child));
  }
  return out;
}

}  // namespace

nb::object OwnerOf(const TrackablePtr& node) {
  const auto* with_owner = dynamic_cast<const WithOwner*>(node.get());
  return with_owner ? with_owner->owner() : nb::none();
}

void RaiseTrackable(const Status& status) {
  if (!PyErr_Occurred()) {
    // Upstream checks shapes in Python while restoring, and raises ValueError
    // there.
    const bool of_shape =
        status.message().rfind("Received incompatible tensor", 0) == 0;
    RaiseStatus(status, /*in_graph=*/of_shape);
  }
  nb::raise_python_error();
}

void AddTrackable(nb::module_& m) {
  // Children are borrowed: Python objects keep each other alive.
  nb::class_<Trackable>(m, "TrackableNode")
      .def("attach",
           [](Trackable& self, const std::string& name,
              const TrackablePtr& child) {
             RaiseUnlessOk(self.Attach(name, child, Trackable::kBorrowed));
           })
      .def("detach",
           [](Trackable& self, const std::string& name) { self.Detach(name); })
      .def("detach_all", &Trackable::DetachAll)
      .def(
          "child",
          [](Trackable& self, const std::string& name) {
            return ValueOrRaise(self.Lookup({name}))[0];
          },
          nb::sig("def child(self, name: str) -> TrackableNode | None"))
      .def("children",
           [](Trackable& self) {
             RaiseUnlessOk(self.Refresh());
             return PairsOf(self.Children());
           })
      .def("attached",
           [](Trackable& self) { return PairsOf(self.AttachedChildren()); })
      .def("take_waiting",
           [](Trackable& self, const std::string& name,
              const TrackablePtr& child) {
             RaiseUnlessOk(self.TakeWaiting(name, child));
           })
      .def("awaits", [](const Trackable& self,
                        const std::string& name) { return self.Awaits(name); })
      .def("set_optional", &Trackable::set_optional)
      .def("unsave",
           [](Trackable& self, const std::string& name) { self.Unsave(name); })
      .def("unsave_slots", &Trackable::UnsaveSlots)
      .def("attach_slot",
           [](Trackable& self, const TrackablePtr& variable,
              const std::string& name, const TrackablePtr& slot) {
             RaiseUnlessOk(
                 self.AttachSlot(variable, name, slot, Trackable::kBorrowed));
           })
      .def("slots",
           [](const Trackable& self) {
             nb::list found;
             for (const Trackable::Slot& s : self.Slots()) {
               if (!s.variable || !s.slot) continue;
               found.append(nb::make_tuple(OwnerOf(s.variable), s.name,
                                           OwnerOf(s.slot)));
             }
             return found;
           })
      .def("owner", [](const TrackablePtr& self) { return OwnerOf(self); })
      // A copy or pickle of an object makes itself a node of its own.
      .def("__reduce__", [](Trackable&) {
        return nb::make_tuple(
            nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(Py_None))),
            nb::make_tuple());
      });
  m.def("new_node", NewNode, nb::arg("owner").none(), nb::arg("has_values"),
        nb::arg("has_check"), nb::arg("has_lookup"), nb::arg("has_children"));
  m.def("new_variable_node", NewVariableNode);
  m.def("new_reference_node", NewReferenceNode);
}

}  // namespace headrace::bind
