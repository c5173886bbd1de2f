// Models about to be saved: Python says what its objects are.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bind/python/graph_object.h"
#include "bind/saved_model.h"
#include "bind/structured_value.h"
#include "bind/trackable_object.h"
#include "bind/value/dtype_object.h"
#include "bind/value/tensor_object.h"
#include "bind/value/variable_object.h"
#include "saved_model/model_writer.h"
#include "tensor/dtype_proto.h"
#include "tensor/tensor_proto.h"

namespace nb = nanobind;

namespace headrace::bind {
namespace {

using tensorflow::SavedObject;

// The version of the kinds of user objects that upstream registers.
constexpr int kUserObjectVersion = 1;

int AddUserObject(ModelWriter& w, const std::string& identifier) {
  SavedObject o;
  o.mutable_user_object()->set_identifier(identifier);
  auto* version = o.mutable_user_object()->mutable_version();
  version->set_producer(kUserObjectVersion);
  version->set_min_consumer(kUserObjectVersion);
  return w.AddObject(std::move(o));
}

int AddVariable(ModelWriter& w, nb::object variable, const std::string& name,
                int synchronization, int aggregation,
                const std::string& device) {
  if (!IsVariable(variable.ptr())) throw nb::type_error("not a variable");
  const VariableTraits traits = TraitsOf(variable.ptr());
  SavedObject o;
  auto* v = o.mutable_variable();
  v->set_name(name);
  v->set_device(device);
  v->set_dtype(TypeToProto(traits.dtype));
  ShapeToProto(*traits.shape, v->mutable_shape());
  v->set_trainable(traits.trainable);
  v->set_synchronization(
      static_cast<tensorflow::VariableSynchronization>(synchronization));
  v->set_aggregation(static_cast<tensorflow::VariableAggregation>(aggregation));
  return w.AddObject(std::move(o), HandleOf(variable.ptr()));
}

int AddConstant(ModelWriter& w, nb::handle value) {
  SavedObject o;
  o.mutable_constant();
  return ValueOrRaise(w.AddKnown(std::move(o), ValueOrHandle(value)));
}

int AddResource(ModelWriter& w, nb::handle value) {
  SavedObject o;
  o.mutable_resource();
  return w.AddObject(std::move(o), ValueOrHandle(value));
}

int AddAsset(ModelWriter& w, nb::handle path) {
  return ValueOrRaise(w.AddAsset(ValueOrHandle(path)));
}

void SetFunctionSpec(nb::handle from, tensorflow::FunctionSpec* spec) {
  FromPython(from[0], spec->mutable_fullargspec());
  spec->set_is_method(nb::cast<bool>(from[1]));
  FromPython(from[2], spec->mutable_input_signature());
  spec->set_jit_compile(static_cast<tensorflow::FunctionSpec::JitCompile>(
      nb::cast<int>(from[3])));
}

int AddFunctionObject(ModelWriter& w) {
  SavedObject o;
  o.mutable_function();
  return w.AddObject(std::move(o));
}

void SetFunction(ModelWriter& w, int id, std::vector<std::string> names,
                 nb::handle spec) {
  auto* f = w.object(id)->mutable_function();
  for (std::string& name : names) f->add_concrete_functions(std::move(name));
  SetFunctionSpec(spec, f->mutable_function_spec());
}

int AddBareFunction(ModelWriter& w) {
  SavedObject o;
  o.mutable_bare_concrete_function();
  return w.AddObject(std::move(o));
}

void SetBareFunction(ModelWriter& w, int id, const std::string& name,
                     std::vector<std::string> keywords, int positional,
                     nb::handle spec) {
  auto* f = w.object(id)->mutable_bare_concrete_function();
  f->set_concrete_function_name(name);
  for (std::string& k : keywords) f->add_argument_keywords(std::move(k));
  f->set_allowed_positional_arguments(positional);
  SetFunctionSpec(spec, f->mutable_function_spec());
}

void CheckAdded(ModelWriter& w, int id) {
  if (id < 0 || id >= w.num_objects()) throw nb::index_error();
}

void AddChild(ModelWriter& w, int id, const std::string& name, int child) {
  CheckAdded(w, id);
  CheckAdded(w, child);
  auto* edge = w.object(id)->add_children();
  edge->set_local_name(name);
  edge->set_node_id(child);
}

// What optimizer `id` keeps for a variable.
void AddSlot(ModelWriter& w, int id, int variable, const std::string& name,
             int slot) {
  for (const int i : {id, variable, slot}) CheckAdded(w, i);
  auto* edge = w.object(id)->add_slot_variables();
  edge->set_original_variable_node_id(variable);
  edge->set_slot_name(name);
  edge->set_slot_variable_node_id(slot);
}

void AddSaveable(ModelWriter& w, int id, const std::string& name, int save,
                 int restore) {
  CheckAdded(w, id);
  auto& saveable = (*w.object(id)->mutable_saveable_objects())[name];
  saveable.set_save_function(save);
  saveable.set_restore_function(restore);
}

// AssertionError where it captures what no object has, as upstream.
void AddFunction(ModelWriter& w, const ConcreteCore& core, nb::handle inputs,
                 nb::handle outputs) {
  tensorflow::StructuredValue takes, gives;
  FromPython(inputs, &takes);
  FromPython(outputs, &gives);
  const Status s =
      w.AddFunction(*core.function, std::move(takes), std::move(gives));
  if (absl::IsFailedPrecondition(s)) {
    PyErr_SetString(PyExc_AssertionError, std::string(s.message()).c_str());
    nb::raise_python_error();
  }
  if (!s.ok()) ThrowStatus(s);
}

void SetResourceFunctions(ModelWriter& w, int id, const ConcreteCore& create,
                          const ConcreteCore* initialize) {
  CheckAdded(w, id);
  w.SetResourceFunctions(id, create.function,
                         initialize ? initialize->function : nullptr);
}

// `defaults`: {name of an input: tensor}.
void AddSignature(ModelWriter& w, const std::string& key,
                  const ConcreteCore& core, std::vector<std::string> inputs,
                  std::vector<std::string> outputs, nb::dict defaults) {
  ModelWriter::Signature signature{key, core.function, std::move(inputs),
                                   std::move(outputs)};
  for (const auto& [name, value] : defaults) {
    signature.defaults.emplace(nb::cast<std::string>(name),
                               ValueOrHandle(value).tensor());
  }
  w.AddSignature(std::move(signature));
}

// Warnings. Gradients are code of the user's, which may raise: ValueError from
// that, as upstream.
std::vector<std::string> AddGradients(ModelWriter& w) {
  auto warnings = w.AddGradients();
  if (warnings.ok()) return *std::move(warnings);
  if (absl::IsFailedPrecondition(warnings.status())) {
    PyErr_SetString(PyExc_AssertionError,
                    std::string(warnings.status().message()).c_str());
    nb::raise_python_error();
  }
  if (!PyErr_Occurred()) ThrowStatus(warnings.status());
  nb::python_error cause;
  nb::raise_from(
      cause, PyExc_ValueError,
      "Error when tracing gradients for SavedModel.\n\nCheck the error log to "
      "see the error that was raised when converting a gradient function to a "
      "concrete function. You may need to update the custom gradient, or "
      "disable saving gradients with the option "
      "tf.saved_model.SaveOptions(experimental_custom_gradients=False).\n\t%s",
      cause.what());
}

void Write(ModelWriter& w, const std::string& folder, const TrackablePtr& root,
           Tags tags, const std::string& version,
           const std::string& git_version,
           std::vector<std::pair<std::string, std::string>> aliases,
           bool in_chunks) {
  // Python's objects are asked for their values: the GIL stays.
  RaiseUnlessOk(w.Write(
      folder, root,
      {std::move(tags), version, git_version, std::move(aliases), in_chunks}));
}

}  // namespace

void AddModelWriter(nb::module_& m) {
  nb::class_<ModelWriter>(m, "ModelWriter")
      .def(nb::init<>())
      .def("add_user_object", &AddUserObject)
      .def("add_variable", &AddVariable)
      .def("add_constant", &AddConstant)
      .def("add_resource", &AddResource)
      .def("add_asset", &AddAsset)
      .def("add_function_object", &AddFunctionObject)
      .def("add_bare_function", &AddBareFunction)
      .def("set_function", &SetFunction)
      .def("set_bare_function", &SetBareFunction)
      .def("add_child", &AddChild)
      .def("add_slot", &AddSlot)
      .def("add_saveable", &AddSaveable)
      .def("add_function", &AddFunction, nb::arg("core"), nb::arg("inputs"),
           nb::arg("outputs").none())
      .def("set_resource_functions", &SetResourceFunctions, nb::arg("id"),
           nb::arg("create"), nb::arg("initialize").none())
      .def("add_signature", &AddSignature)
      .def("add_gradients", &AddGradients)
      .def("write", &Write);
}

}  // namespace headrace::bind
