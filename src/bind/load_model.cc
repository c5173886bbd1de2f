// Loaded models: what their objects are, for Python to make its own of them.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bind/python/call_stops.h"
#include "bind/python/graph_object.h"
#include "bind/python/safe_mode.h"
#include "bind/python/serialized.h"
#include "bind/python/unlocked.h"
#include "bind/saved_model.h"
#include "bind/structured_value.h"
#include "bind/value/dtype_object.h"
#include "bind/value/tensor_object.h"
#include "saved_model/any_shapes.h"
#include "saved_model/fingerprint.h"
#include "saved_model/loaded_model.h"
#include "tensor/tensor_proto.h"

namespace nb = nanobind;

namespace headrace::bind {
namespace {

using ModelPtr = std::shared_ptr<LoadedModel>;

// Upstream's: no tf.errors, but Python's own.
[[noreturn]] void RaiseAs(PyObject* error, const Status& s) {
  PyErr_SetString(error, std::string(s.message()).c_str());
  nb::raise_python_error();
}

// Raises OSError where there is no such file or it is damaged.
ModelFile ReadModel(const std::string& folder) {
  // The program asks for the file, not a model: no safe mode that it is within
  // is asked.
  auto file = Unlocked([&] { return ReadSavedModel(folder); });
  if (absl::IsUnimplemented(file.status())) ThrowStatus(file.status());
  if (!file.ok()) RaiseAs(PyExc_OSError, file.status());
  return *std::move(file);
}

// Raises RuntimeError where there is no such graph, ValueError where it would
// be the only one.
tensorflow::MetaGraphDef* GraphOrRaise(
    StatusOr<tensorflow::MetaGraphDef*> graph) {
  if (graph.ok()) return *graph;
  RaiseAs(
      absl::IsNotFound(graph.status()) ? PyExc_RuntimeError : PyExc_ValueError,
      graph.status());
}

// The FingerprintDef of a folder; OSError where there is none.
nb::bytes FingerprintIn(const std::string& folder) {
  auto found = Unlocked([&] { return ReadFingerprint(folder); });
  if (found.ok()) return Serialized(*found);
  RaiseAs(absl::IsNotFound(found.status()) ? PyExc_FileNotFoundError
                                           : PyExc_RuntimeError,
          found.status());
}

nb::bytes SerializedModel(const std::string& folder) {
  return Serialized(*ReadModel(folder));
}

// A SavedModel in chunks, in a folder that exists.
void WriteInChunks(const std::string& folder, nb::bytes bytes) {
  auto model =
      ParseSavedModel(StringView(bytes.c_str(), bytes.size()), false, folder);
  if (!model.ok()) ThrowStatus(model.status());
  std::string local;
  auto fs = FileSystemFor(folder, &local);
  if (!fs.ok()) ThrowStatus(fs.status());
  const Status s =
      Unlocked([&] { return WriteSavedModel(model->get(), *fs, local, true); });
  if (!s.ok()) ThrowStatus(s);
}

// The MetaGraphDef of these tags.
nb::bytes SerializedGraph(const std::string& folder, const Tags& tags) {
  auto model = ReadModel(folder);
  return Serialized(*GraphOrRaise(MetaGraphOfTags(model.get(), tags)));
}

// Each model has limits of its own.
SandboxPtr OfModel(const PySafeMode& mode, const std::string& folder) {
  auto made = MakeSandbox(mode.sandbox->policy(),
                          absl::StrCat("the model in ", folder));
  if (!made.ok()) ThrowStatus(made.status());
  return *std::move(made);
}

// Raises as ReadModel and GraphOrRaise do, else what went wrong.
ModelPtr LoadModel(const std::string& folder, std::optional<Tags> tags,
                   bool allow_partial_checkpoint, bool skip_checkpoint,
                   const PySafeMode* mode) {
  LoadedModel::Options options;
  options.tags = std::move(tags);
  options.allow_partial_checkpoint = allow_partial_checkpoint;
  options.skip_checkpoint = skip_checkpoint;
  auto file = ReadModel(folder);
  auto* graph = GraphOrRaise(FindMetaGraph(file.get(), options.tags, folder));
  StatusOr<ModelPtr> model;
  {
    const CallStops stops;
    options.sandbox = CurrentSandbox();
    if (mode != nullptr) options.sandbox = OfModel(*mode, folder);
    // Files may be slow: other threads of Python run on.
    WithoutGil unlocked;
    model = LoadedModel::Make(std::move(file), graph, folder, options);
  }
  if (!model.ok()) ThrowStatus(model.status());
  return *std::move(model);
}

nb::object FunctionSpecOf(const tensorflow::FunctionSpec& spec) {
  return nb::make_tuple(ToPython(spec.fullargspec()), spec.is_method(),
                        ToPython(spec.input_signature()),
                        static_cast<int>(spec.jit_compile()));
}

nb::object SavedFunctionOf(const tensorflow::SavedFunction& f) {
  nb::list names;
  for (const std::string& name : f.concrete_functions()) names.append(name);
  return nb::make_tuple(names, FunctionSpecOf(f.function_spec()));
}

nb::object BareOf(const tensorflow::SavedBareConcreteFunction& f) {
  nb::list keywords;
  for (const std::string& name : f.argument_keywords()) keywords.append(name);
  return nb::make_tuple(
      f.concrete_function_name(), keywords, f.allowed_positional_arguments(),
      f.has_function_spec() ? FunctionSpecOf(f.function_spec()) : nb::none());
}

nb::object SavedVariableOf(const tensorflow::SavedVariable& v) {
  StatusOr<Shape> shape = ShapeFromProto(v.shape());
  if (!shape.ok()) ThrowStatus(shape.status());
  return nb::make_tuple(
      v.name(), nb::steal(DTypeObject(static_cast<DType>(v.dtype()))),
      nb::steal(ShapeObject(*shape)), v.trainable(),
      static_cast<int>(v.synchronization()), static_cast<int>(v.aggregation()));
}

// (kind, what there is to say of it).
nb::object KindOf(const tensorflow::SavedObject& o) {
  using tensorflow::SavedObject;
  switch (o.kind_case()) {
    case SavedObject::kUserObject:
      return nb::make_tuple("user_object", o.user_object().identifier());
    case SavedObject::kAsset:
      return nb::make_tuple("asset", nb::none());
    case SavedObject::kFunction:
      return nb::make_tuple("function", SavedFunctionOf(o.function()));
    case SavedObject::kVariable:
      return nb::make_tuple("variable", SavedVariableOf(o.variable()));
    case SavedObject::kBareConcreteFunction:
      return nb::make_tuple("bare_concrete_function",
                            BareOf(o.bare_concrete_function()));
    case SavedObject::kConstant:
      return nb::make_tuple("constant", nb::none());
    case SavedObject::kResource:
      return nb::make_tuple("resource", nb::none());
    case SavedObject::kCapturedTensor:
      return nb::make_tuple("captured_tensor", nb::none());
    case SavedObject::KIND_NOT_SET:
      break;
  }
  return nb::make_tuple("", nb::none());
}

void CheckObject(const LoadedModel& model, int id) {
  if (id < 0 || id >= model.num_objects()) throw nb::index_error();
}

// (kind, what there is to say, [(name, child), ...], [(variable, name, slot),
// ...], {name: (save function, restore function)}).
nb::tuple ObjectOf(const LoadedModel& model, int id) {
  CheckObject(model, id);
  const tensorflow::SavedObject& o = model.object(id);
  nb::list children, slots;
  nb::dict saveables;
  for (const auto& child : o.children()) {
    children.append(nb::make_tuple(child.local_name(), child.node_id()));
  }
  for (const auto& slot : o.slot_variables()) {
    slots.append(nb::make_tuple(slot.original_variable_node_id(),
                                slot.slot_name(),
                                slot.slot_variable_node_id()));
  }
  for (const auto& [name, saveable] : o.saveable_objects()) {
    saveables[name.c_str()] =
        nb::make_tuple(saveable.save_function(), saveable.restore_function());
  }
  const nb::object kind = KindOf(o);
  return nb::make_tuple(kind[0], kind[1], children, slots, saveables);
}

// (core, what it takes, what it gives).
nb::tuple FunctionNamed(const LoadedModel& model, const std::string& name) {
  auto f = model.function(name);
  if (f == nullptr) throw nb::key_error(name.c_str());
  const auto& signature = model.signature_of(name);
  return nb::make_tuple(ConcreteCore{f},
                        ToPython(signature.canonicalized_input_signature()),
                        ToPython(signature.output_signature()));
}

bool IsOfSession(const LoadedModel& model) {
  return model.session().graph != nullptr;
}

// The graph of a model of TensorFlow 1, with its captures.
nb::object GraphOf(const LoadedModel& model) {
  const SessionGraph& session = model.session();
  if (!session.graph) throw nb::type_error("a model of objects has no graph");
  PyGraph graph(session.graph);
  graph.Finalize(false);  // functions are cut out of it
  for (const auto& [node, object] : session.captures) {
    graph.builder().AddCapture(model.value(object),
                               session.graph->Output(node, 0));
  }
  return nb::cast(std::move(graph));
}

std::vector<Value> TensorsIn(nb::sequence tensors) {
  std::vector<Value> values;
  for (nb::handle t : tensors) values.push_back(ValueOrHandle(t));
  return values;
}

// The function for tensors of other shapes; None where it takes these.
nb::object CoreForShapes(const ConcreteCore& core, nb::sequence tensors) {
  if (!HasOtherShapes(*core.function, TensorsIn(tensors))) return nb::none();
  auto made = ForAnyShapes(*core.function);
  if (!made.ok()) ThrowStatus(made.status());
  return nb::cast(ConcreteCore{*std::move(made)});
}

nb::list CallInPlainGraph(const ConcreteCore& core, nb::sequence tensors) {
  ValueList outputs;
  RaiseUnlessOk(
      CallWithConstants(*core.function, TensorsIn(tensors), &outputs));
  nb::list out;
  for (Value& v : outputs) out.append(WrapObject(std::move(v)));
  return out;
}

// {name of a concrete function: alias}.
nb::dict FunctionAliases(const LoadedModel& model) {
  nb::dict out;
  const auto& info = model.meta_graph().meta_info_def();
  for (const auto& [function, alias] : info.function_aliases()) {
    out[nb::str(function.data(), function.size())] =
        nb::str(alias.data(), alias.size());
  }
  return out;
}

nb::object ValueOfObject(const LoadedModel& model, int id) {
  CheckObject(model, id);
  return WrapObject(model.value(id));
}

}  // namespace

void AddSavedModel(nb::module_& m) {
  nb::class_<LoadedModel>(m, "LoadedModel")
      .def_prop_ro("num_objects", &LoadedModel::num_objects)
      .def_prop_ro("versions",
                   [](const LoadedModel& model) {
                     const auto& info = model.meta_graph().meta_info_def();
                     return nb::make_tuple(info.tensorflow_version(),
                                           info.tensorflow_git_version());
                   })
      .def_prop_ro("function_aliases", &FunctionAliases)
      .def_prop_ro("is_of_session", &IsOfSession)
      .def("graph", &GraphOf)
      .def_prop_ro(
          "restore",
          [](const LoadedModel& model) { return model.session().restore; })
      .def("object", &ObjectOf)
      .def("value", &ValueOfObject)
      .def("function", &FunctionNamed);
  m.def("load_saved_model", &LoadModel, nb::arg("folder"),
        nb::arg("tags").none(), nb::arg("allow_partial_checkpoint"),
        nb::arg("skip_checkpoint"), nb::arg("safe_mode").none());
  m.def("core_for_shapes", &CoreForShapes);
  m.def("call_in_plain_graph", &CallInPlainGraph);
  m.def("contains_saved_model", &ContainsSavedModel);
  m.def("write_model_in_chunks", &WriteInChunks);
  m.def("read_saved_model", &SerializedModel);
  m.def("read_meta_graph", &SerializedGraph);
  m.def("read_fingerprint", &FingerprintIn);
  m.def("encode_structure", [](nb::handle value) {
    tensorflow::StructuredValue proto;
    FromPython(value, &proto);
    return Serialized(proto);
  });
  m.def("decode_structure", [](nb::bytes bytes) {
    tensorflow::StructuredValue proto;
    if (!proto.ParseFromArray(bytes.c_str(), static_cast<int>(bytes.size()))) {
      ThrowStatus(DataLoss("no StructuredValue"));
    }
    return ToPython(proto);
  });
}

}  // namespace headrace::bind
