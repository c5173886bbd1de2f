#include "bind/call/op_function.h"

#include <structmember.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "bind/call/op_call.h"
#include "bind/call/operators.h"
#include "bind/python/status.h"
#include "bind/value/attr_value.h"
#include "op/absent_ops.h"
#include "op/added_op.h"
#include "op/registry.h"

namespace headrace::bind {
namespace {

struct OpParameter {
  PyObject* name;  // interned
  enum { kInput, kAttr, kName } target;
  int index = 0;                      // among inputs or attrs
  PyObject* given_default = nullptr;  // null: required
};

// What a call needs to know; lives for ever.
struct Face {
  OpCaller* caller;
  std::string name;
  std::string doc;
  bool keyword_only;
  std::vector<OpParameter> parameters;
  OpCaller* for_text = nullptr;  // an op of the same form that takes strings
  std::string module = "headrace";
};

struct OpFunctionObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  Face* face;
  PyObject* dict;
};

PyTypeObject* function_type = nullptr;
// Arguments are gathered in an array on the stack; no op has as many.
constexpr int kMostParameters = 64;

Face* FaceOf(PyObject* o) {
  return reinterpret_cast<OpFunctionObject*>(o)->face;
}

int FindOpParameter(const Face& f, PyObject* name) {
  // Names of parameters and the keywords of compiled code are interned: their
  // addresses decide nearly always.
  int n = static_cast<int>(f.parameters.size());
  for (int i = 0; i < n; ++i) {
    if (f.parameters[i].name == name) return i;
  }
  for (int i = 0; i < n; ++i) {
    // A keyword that comes from a dict (**) need not be interned.
    if (PyUnicode_Compare(f.parameters[i].name, name) == 0) return i;
  }
  return -1;
}

bool MissingArguments(const Face& f, PyObject* const* slots) {
  std::vector<std::string> missing;
  for (size_t i = 0; i < f.parameters.size(); ++i) {
    if (slots[i] || f.parameters[i].given_default) continue;
    const char* n = Utf8Of(f.parameters[i].name);
    missing.push_back(std::string("'") + (n ? n : "?") + "'");
  }
  std::string list;
  for (size_t i = 0; i < missing.size(); ++i) {
    if (i)
      list += i + 1 == missing.size() ? (i > 1 ? ", and " : " and ") : ", ";
    list += missing[i];
  }
  PyErr_Format(PyExc_TypeError,
               "%s() missing %d required positional argument%s: %s",
               f.name.c_str(), static_cast<int>(missing.size()),
               missing.size() == 1 ? "" : "s", list.c_str());
  return false;
}

bool TooManyArguments(const Face& f, Py_ssize_t given) {
  if (f.keyword_only) {
    std::string keys;
    for (const OpParameter& p : f.parameters) {
      const char* n = Utf8Of(p.name);
      keys += std::string(keys.empty() ? "'" : ", '") + (n ? n : "") + "'";
    }
    PyErr_Format(PyExc_TypeError,
                 "%s only takes keyword args (possible keys: [%s]). Please "
                 "pass these args as kwargs instead.",
                 f.name.c_str(), keys.c_str());
    return false;
  }
  int required = 0, n = static_cast<int>(f.parameters.size());
  for (const OpParameter& p : f.parameters) required += !p.given_default;
  // The words of Python itself, as upstream's generated functions are plain
  // Python.
  if (required == n) {
    PyErr_Format(PyExc_TypeError,
                 "%s() takes %d positional argument%s but %zd were given",
                 f.name.c_str(), n, n == 1 ? "" : "s", given);
  } else {
    PyErr_Format(
        PyExc_TypeError,
        "%s() takes from %d to %d positional arguments but %zd were given",
        f.name.c_str(), required, n, given);
  }
  return false;
}

// Puts every argument into its parameter's slot.
bool BindArguments(const Face& f, PyObject* const* args, Py_ssize_t positional,
                   PyObject* keywords, PyObject** slots) {
  Py_ssize_t n = f.parameters.size();
  if (positional > n || (positional && f.keyword_only)) {
    return TooManyArguments(f, positional);
  }
  for (Py_ssize_t i = 0; i < positional; ++i) slots[i] = args[i];
  Py_ssize_t named = keywords ? PyTuple_Size(keywords) : 0;
  for (Py_ssize_t k = 0; k < named; ++k) {
    PyObject* key = PyTuple_GetItem(keywords, k);
    int at = FindOpParameter(f, key);
    if (at < 0) {
      PyErr_Format(PyExc_TypeError,
                   "%s() got an unexpected keyword argument '%U'",
                   f.name.c_str(), key);
      return false;
    }
    if (slots[at]) {
      PyErr_Format(PyExc_TypeError,
                   "%s() got multiple values for argument '%U'", f.name.c_str(),
                   key);
      return false;
    }
    slots[at] = args[positional + k];
  }
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (slots[i] == nullptr) slots[i] = f.parameters[i].given_default;
    if (slots[i] == nullptr) return MissingArguments(f, slots);
  }
  return true;
}

PyObject* CallFunction(PyObject* self, PyObject* const* args, size_t nargsf,
                       PyObject* keywords) {
  const Face& f = *FaceOf(self);
  // All borrowed: the caller holds its arguments for as long as the call lasts.
  PyObject* slots[kMostParameters];
  std::fill_n(slots, f.parameters.size(), nullptr);
  if (!BindArguments(f, args, PyVectorcall_NARGS(nargsf), keywords, slots)) {
    return nullptr;
  }
  PyObject* inputs[kMostParameters];
  PyObject* attrs[kMostParameters];
  std::fill_n(attrs, f.caller->def().attrs.size(), nullptr);
  PyObject* name = nullptr;
  for (size_t i = 0; i < f.parameters.size(); ++i) {
    const OpParameter& p = f.parameters[i];
    if (p.target == OpParameter::kInput) {
      inputs[p.index] = slots[i];
    } else if (p.target == OpParameter::kAttr) {
      attrs[p.index] = slots[i];
    } else {
      name = slots[i];
    }
  }
  if (f.for_text && IsText(inputs[0])) [[unlikely]] {
    return (*f.for_text)(inputs, attrs, name);
  }
  // Upstream's tf.add names its node by the older op, though the node is an
  // AddV2.
  if (f.for_text && (name == nullptr || name == Py_None) && f.name == "add" &&
      !CurrentEmitter()->is_eager()) {
    static PyObject* added =  // in graphs
        PyUnicode_InternFromString(f.for_text->def().name.c_str());
    name = added;
  }
  return (*f.caller)(inputs, attrs, name);
}

PyObject* GetOpName(PyObject* self, void*) {
  return PyUnicode_FromString(FaceOf(self)->name.c_str());
}
PyObject* GetDoc(PyObject* self, void*) {
  return PyUnicode_FromString(FaceOf(self)->doc.c_str());
}
PyObject* GetOp(PyObject* self, void*) {
  return PyUnicode_FromString(FaceOf(self)->caller->def().name.c_str());
}
PyObject* GetModule(PyObject* self, void*) {
  return PyUnicode_FromString(FaceOf(self)->module.c_str());
}

PyObject* GetSignature(PyObject* self, void*) {
  static PyObject* inspect = PyImport_ImportModule("inspect");
  if (inspect == nullptr) return nullptr;
  Ref make(PyObject_GetAttrString(inspect, "Parameter"));
  Ref kind(
      make ? PyObject_GetAttrString(make.get(), FaceOf(self)->keyword_only
                                                    ? "KEYWORD_ONLY"
                                                    : "POSITIONAL_OR_KEYWORD")
           : nullptr);
  Ref list(PyList_New(0));
  if (!kind || !list) return nullptr;
  for (const OpParameter& p : FaceOf(self)->parameters) {
    Ref args(Py_BuildValue("(OO)", p.name, kind.get()));
    Ref kwargs(p.given_default
                   ? Py_BuildValue("{sO}", "default", p.given_default)
                   : PyDict_New());
    Ref one(args && kwargs
                ? Called<PyObject_Call>(make.get(), args.get(), kwargs.get())
                : nullptr);
    if (!one || PyList_Append(list.get(), one.get()) < 0) return nullptr;
  }
  return Called<PyObject_CallMethod>(inspect, "Signature", "O", list.get());
}

PyObject* Repr(PyObject* self) {
  return PyUnicode_FromFormat("<function %s at %p>", FaceOf(self)->name.c_str(),
                              self);
}

PyGetSetDef op_function_getset[] = {
    {"__name__", Shield<GetOpName>, nullptr, nullptr, nullptr},
    {"__qualname__", Shield<GetOpName>, nullptr, nullptr, nullptr},
    {"__module__", Shield<GetModule>, nullptr, nullptr, nullptr},
    {"__doc__", Shield<GetDoc>, nullptr, nullptr, nullptr},
    {"__signature__", Shield<GetSignature>, nullptr, nullptr, nullptr},
    {"op_name", Shield<GetOp>, nullptr, nullptr, nullptr},
    {}};
PyMemberDef op_function_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(OpFunctionObject, vectorcall),
     READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(OpFunctionObject, dict), READONLY,
     nullptr},
    {}};
PyType_Slot op_function_slots[] = {
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_repr, reinterpret_cast<void*>(Shield<Repr>)},
    {Py_tp_getset, op_function_getset},
    {Py_tp_members, op_function_members},
    {0, nullptr}};
PyType_Spec op_function_spec = {
    "headrace.OpFunction", sizeof(OpFunctionObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, op_function_slots};

PyObject* MakeFunction(Face* face) {
  auto* o = PyObject_New(OpFunctionObject, function_type);
  if (o == nullptr) return nullptr;
  o->vectorcall = Shield<CallFunction>;
  o->face = face;
  o->dict = nullptr;
  return reinterpret_cast<PyObject*>(o);
}

std::string DocOf(const OpDef& def) {
  std::string doc = def.doc.empty() ? def.name : def.doc;
  if (!def.inputs.empty()) doc += "\n\nInputs: ";
  for (size_t i = 0; i < def.inputs.size(); ++i) {
    doc += (i ? ", " : "") + def.inputs[i].name;
  }
  return doc;
}

// The name under which tf.raw_ops takes an input or attribute: a few were
// given better ones than they have on the wire.
const char* RawName(const OpDef& def, const std::string& name) {
  for (const auto& [wire, raw] : def.raw_names) {
    if (name == wire) return raw.c_str();
  }
  return name.c_str();
}

OpParameter InputParameter(const OpDef& def, int i) {
  return {PyUnicode_InternFromString(RawName(def, def.inputs[i].name)),
          OpParameter::kInput, i, nullptr};
}

// Inputs, attributes without a default, those with one, name.
std::vector<OpParameter> RawParameters(const OpDef& def) {
  std::vector<OpParameter> out;
  for (size_t i = 0; i < def.inputs.size(); ++i) {
    out.push_back(InputParameter(def, static_cast<int>(i)));
  }
  for (bool defaulted : {false, true}) {
    for (size_t i = 0; i < def.attrs.size(); ++i) {
      const AttrDef& a = def.attrs[i];
      if (a.has_default != defaulted || def.IsInferred(a.name)) continue;
      PyObject* value = nullptr;
      if (defaulted) {
        value = FromAttr(a.default_value);
        // Defaults that Python cannot show (functions, shapes of graphs) are
        // None: ToAttrs takes this for the default.
        if (value == nullptr) PyErr_Clear();
        // Attributes are bytes; signatures show text. latin1 cannot fail and
        // keeps each byte.
        if (value && PyBytes_Check(value)) {
          Ref text(PyUnicode_FromEncodedObject(value, "latin1", "replace"));
          Replace(&value, text.release());
        }
        if (value == nullptr) value = Ref::Borrow(Py_None).release();
      }
      out.push_back({PyUnicode_InternFromString(RawName(def, a.name)),
                     OpParameter::kAttr, static_cast<int>(i), value});
    }
  }
  out.push_back({PyUnicode_InternFromString("name"), OpParameter::kName, 0,
                 Ref::Borrow(Py_None).release()});
  return out;
}

// Made once a name and kept in `made` for ever, as code asks for them again.
PyObject* RawOpIn(PyObject* made, PyObject* arg, bool keyword_only) {
  PyObject* kept = PyDict_GetItemWithError(made, arg);
  if (kept || PyErr_Occurred()) return Ref::Borrow(kept).release();
  const char* name = Utf8Of(arg);
  if (name == nullptr) return nullptr;
  OpCaller* caller = CallerOf(name);
  if (caller == nullptr) return nullptr;
  const OpDef& def = caller->def();
  auto* face = new Face{caller, caller->python_name(), DocOf(def), keyword_only,
                        RawParameters(def)};
  // Checked here once, so that calls may fill arrays of that size unchecked.
  if (face->parameters.size() > kMostParameters ||
      def.attrs.size() > kMostParameters) {
    delete face;
    PyErr_Format(PyExc_NotImplementedError, "%s has too many parameters", name);
    return nullptr;
  }
  PyObject* function = MakeFunction(face);
  if (function && PyDict_SetItem(made, arg, function) < 0) return nullptr;
  return function;
}

PyObject* RawOp(PyObject*, PyObject* arg) {
  static PyObject* made = PyDict_New();
  return RawOpIn(made, arg, true);
}

// The package's own code gives inputs by place, too.
PyObject* OpByPlace(PyObject*, PyObject* arg) {
  static PyObject* made = PyDict_New();
  return RawOpIn(made, arg, false);
}

int FindAttr(const OpDef& def, const char* name) {
  for (size_t i = 0; i < def.attrs.size(); ++i) {
    if (def.attrs[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

bool AddParameter(PyObject* item, Face* face) {
  const char *name, *target;
  PyObject* value = nullptr;
  if (!PyArg_ParseTuple(item, "ss|O", &name, &target, &value)) return false;
  const OpDef& def = face->caller->def();
  OpParameter p{PyUnicode_InternFromString(name), OpParameter::kName, 0, value};
  Py_XINCREF(value);
  if (std::string(target) != "name") {
    p.target = OpParameter::kInput;
    p.index = def.FindInput(target);
    if (p.index < 0) {
      p.target = OpParameter::kAttr;
      p.index = FindAttr(def, target);
    }
    if (p.index < 0) {
      PyErr_Format(PyExc_ValueError, "op %s has no input or attr '%s'",
                   def.name.c_str(), target);
      return false;
    }
  }
  face->parameters.push_back(p);
  return true;
}

bool TakesText(const OpDef& def) {
  return std::all_of(def.inputs.begin(), def.inputs.end(), [&](auto& in) {
    const AttrDef* type = def.FindAttr(in.type_attr);
    if (type == nullptr) return in.type == DType::kString;
    const auto& allowed = type->allowed_types;
    return allowed.empty() || std::find(allowed.begin(), allowed.end(),
                                        DType::kString) != allowed.end();
  });
}

PyObject* MakeOpFunction(PyObject*, PyObject* args) {
  const char *op, *name, *doc, *module = "headrace";
  PyObject* parameters;
  if (!PyArg_ParseTuple(args, "ssOs|s", &op, &name, &parameters, &doc,
                        &module)) {
    return nullptr;
  }
  OpCaller* caller = CallerOf(op);
  if (caller == nullptr) return nullptr;
  auto* face = new Face{caller, name, doc, false, {}};
  face->module = module;
  if (caller->def().Is(OpRole::kAdd) && !TakesText(caller->def())) {
    face->for_text = CallerOf("Add");
  }
  if (face->doc.empty()) face->doc = DocOf(caller->def());
  Py_ssize_t n = PySequence_Size(parameters);
  // One bit an input.
  uint64_t bound = 0;
  for (Py_ssize_t i = 0; i < n && i < kMostParameters; ++i) {
    Ref item(PySequence_GetItem(parameters, i));
    if (!item || !AddParameter(item.get(), face)) return nullptr;
    const OpParameter& p = face->parameters.back();
    // Only inputs are counted: attributes that a public function leaves out
    // take their defaults.
    if (p.target == OpParameter::kInput) bound |= uint64_t{1} << p.index;
  }
  if (bound + 1 != uint64_t{1} << caller->def().inputs.size()) {
    PyErr_Format(PyExc_ValueError, "%s leaves out inputs of op %s", name, op);
    return nullptr;
  }
  return MakeFunction(face);
}

template <bool kVectorized>
PyObject* OpNames(PyObject*, PyObject*) {
  Ref list(PyList_New(0));
  const std::vector<const OpDef*> users = OpsAdded();
  for (const OpDef* def : AllOps()) {
    if (kVectorized && !def->vectorize) continue;
    if (std::find(users.begin(), users.end(), def) != users.end()) continue;
    Ref name(PyUnicode_FromString(def->name.c_str()));
    if (!name || PyList_Append(list.get(), name.get()) < 0) return nullptr;
  }
  return list.release();
}

// why_absent(name): empty for names of other things than absent ops.
PyObject* WhyAbsentOp(PyObject*, PyObject* name) {
  const char* text = Utf8Of(name);
  if (text == nullptr) return nullptr;
  return PyUnicode_FromString(WhyAbsent(text).c_str());
}

// [(mark, why, names)]
PyObject* ListAbsentOps(PyObject*, PyObject*) {
  Ref list(PyList_New(0));
  for (const AbsentOps& row : AllAbsentOps()) {
    Ref item(Py_BuildValue("(sss)", row.mark, row.why, row.names));
    if (!item || PyList_Append(list.get(), item.get()) < 0) return nullptr;
  }
  return list.release();
}

PyMethodDef op_function_functions[] = {
    {"raw_op", Shield<RawOp>, METH_O,
     "raw_op(name): the function of tf.raw_ops."},
    {"op_by_place", Shield<OpByPlace>, METH_O,
     "op_by_place(name): the same, also called with arguments by place."},
    {"op_function", Shield<MakeOpFunction>, METH_VARARGS,
     "op_function(op, name, parameters, doc, module='headrace'): a public face "
     "of an op."},
    {"op_names", Shield<OpNames<false>>, METH_NOARGS,
     "The names of all ops but those of users' libraries."},
    {"why_absent_op", Shield<WhyAbsentOp>, METH_O,
     "why_absent_op(name): a sentence about an op of TensorFlow that is not "
     "there, or an empty string."},
    {"absent_ops", Shield<ListAbsentOps>, METH_NOARGS,
     "The ops of TensorFlow that are not there: [(mark, why, names)]."},
    {"vectorized_op_names", Shield<OpNames<true>>, METH_NOARGS,
     "The names of the ops that have a rule for tf.vectorized_map."},
    {}};

}  // namespace

bool AddOpFunctions(PyObject* module) {
  PyObject* type = PyType_FromSpec(&op_function_spec);
  if (type == nullptr) return false;
  function_type = reinterpret_cast<PyTypeObject*>(type);
  return PyModule_AddObjectRef(module, "OpFunction", type) == 0 &&
         PyModule_AddFunctions(module, op_function_functions) == 0;
}

}  // namespace headrace::bind
