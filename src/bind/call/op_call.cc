#include "bind/call/op_call.h"

#include <cctype>

#include "base/hash_map.h"
#include "bind/python/status.h"
#include "bind/value/argument_scope.h"
#include "bind/value/attr_value.h"
#include "bind/value/convert.h"
#include "bind/value/dtype_object.h"
#include "bind/value/numpy_array.h"
#include "bind/value/tensor_object.h"
#include "bind/value/traced_errors.h"
#include "bind/value/variable_object.h"
#include "graph/graph.h"
#include "op/registry.h"

namespace headrace::bind {
namespace {

// Resolved ops that a call site keeps: programs call an op with few
// combinations of types, and the look goes through all.
constexpr size_t kMostCached = 8;

// Raises what asking an op that is gone from new graphs raises. Graphs of old
// versions are imported past this.
bool IsRemoved(const OpDef& def, PyObject* name) {
  const Deprecation& d = def.deprecation;
  // The version says since when the op is gone: a definition may announce an
  // end to come.
  if (d.version <= 0 || d.version > kGraphVersion) return false;
  const Status s = Unimplemented(
      "Op ", def.name, " is not available in GraphDef version ", kGraphVersion,
      ". It has been removed in version ", d.version, ". ", d.explanation, ".");
  // Eagerly it is the error of an op that failed; in graphs Python's own, as
  // upstream has it.
  if (CurrentEmitter()->is_eager()) {
    RaiseOpError(s, name, def.name);
  } else {
    PyErr_SetString(PyExc_NotImplementedError,
                    std::string(s.message()).c_str());
  }
  return true;
}

// Values of immutable Python types that compare equal mean the same attribute.
bool SameAttr(PyObject* a, PyObject* b) {
  if (a == b) return true;
  // 1, 1.0 and True are equal but different attributes.
  if (a == nullptr || b == nullptr || Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyLong_CheckExact(a) || PyUnicode_CheckExact(a) ||
      PyFloat_CheckExact(a)) {
    // (NaN equals nothing: such an attribute is resolved at each call.)
    int same = PyObject_RichCompareBool(a, b, Py_EQ);
    if (same < 0) PyErr_Clear();
    return same == 1;
  }
  if (IsShapeObject(a)) {
    Ref dims_a(PyObject_GetAttrString(a, "_dims"));
    Ref dims_b(PyObject_GetAttrString(b, "_dims"));
    if (!dims_a || !dims_b) return PyErr_Clear(), false;
    return SameAttr(dims_a.get(), dims_b.get());
  }
  if (!PyTuple_CheckExact(a) || PyTuple_Size(a) != PyTuple_Size(b)) {
    return false;
  }
  for (Py_ssize_t i = 0; i < PyTuple_Size(a); ++i) {
    if (!SameAttr(PyTuple_GetItem(a, i), PyTuple_GetItem(b, i))) return false;
  }
  return true;
}

constexpr int kDeepestAttr = 16;  // deeper tuples are not remembered
bool IsImmutable(PyObject* o, int depth = 0) {
  // What can change after the call must not be found again by its address: it
  // would pass for what it was.
  if (o == nullptr || o == Py_None || PyLong_Check(o) || PyUnicode_Check(o) ||
      PyFloat_CheckExact(o) || PyBytes_Check(o) || IsDTypeObject(o) ||
      IsShapeObject(o)) {
    return true;
  }
  if (!PyTuple_CheckExact(o) || depth > kDeepestAttr) return false;
  for (Py_ssize_t i = 0; i < PyTuple_Size(o); ++i) {
    if (!IsImmutable(PyTuple_GetItem(o, i), depth + 1)) return false;
  }
  return true;
}

}  // namespace

std::string PythonName(StringView op) {
  std::string out;
  for (size_t i = 0; i < op.size(); ++i) {
    unsigned char c = op[i];
    // As upstream names its generated functions: a capital begins a word where
    // a small letter stands before or behind it, so that runs of capitals stay
    // together, and behind a digit none begins ("conv2d").
    bool starts = std::isupper(c) && i > 0 && op[i - 1] != '_' &&
                  (std::islower(static_cast<unsigned char>(op[i - 1])) ||
                   (i + 1 < op.size() &&
                    std::islower(static_cast<unsigned char>(op[i + 1])))) &&
                  !(std::isdigit(static_cast<unsigned char>(op[i - 1])));
    if (starts) out += '_';
    out += static_cast<char>(std::tolower(c));
  }
  return out;
}

// The inputs as values, flattened.
struct OpCaller::Arguments {
  absl::InlinedVector<Value, 8> values;
  absl::InlinedVector<DType, 8> types;
  absl::InlinedVector<int, 4> lists;  // lengths, of ops with several lists
  bool had_sequence = false;  // errors then carry no name, as upstream's
  ArgumentScope* names = nullptr;
  void Add(Value v) {
    types.push_back(v.dtype());
    values.push_back(std::move(v));
  }
};

OpCaller::OpCaller(const OpDef& def)
    : def_(def), python_name_(PythonName(def.name)), simple_(true) {
  int lists = 0;
  for (const ArgDef& a : def.inputs) lists += a.is_list();
  simple_ = lists == 0;
  several_lists_ = lists > 1;
  // Python's + goes by a road of its own upstream.
  adds_ = def.Is(OpRole::kAdd);
  cache_.reserve(kMostCached);
}

DType OpCaller::DefaultType(const std::string& attr) const {
  const AttrDef* a = def_.FindAttr(attr);
  const DType* d =
      a && a->has_default ? std::get_if<DType>(&a->default_value) : nullptr;
  return d ? *d : DType::kInvalid;
}

DType OpCaller::KnownType(const std::string& attr, PyObject* const* inputs,
                          PyObject* const* attrs) const {
  for (size_t i = 0; i < def_.inputs.size(); ++i) {
    if (def_.inputs[i].type_attr != attr) continue;
    PyObject* o = inputs[i];
    if (IsTensor(o)) return ValueOf(o).dtype();
    if (IsVariable(o) && HandleOf(o)) {
      Ref d(PyObject_GetAttrString(o, "dtype"));
      if (d && IsDTypeObject(d.get())) return DTypeOfObject(d.get());
      PyErr_Clear();
    }
    if (!def_.inputs[i].is_list() || !IsSequence(o)) continue;
    for (Py_ssize_t j = 0, n = PySequence_Size(o); j < n; ++j) {
      Ref item(PySequence_GetItem(o, j));
      if (item && IsTensor(item.get())) return ValueOf(item.get()).dtype();
    }
  }
  for (size_t i = 0; i < def_.attrs.size(); ++i) {
    if (def_.attrs[i].name == attr && attrs[i] && attrs[i] != Py_None) {
      return AsDType(attrs[i]);
    }
  }
  return DType::kInvalid;
}

bool OpCaller::ConvertOne(int arg, PyObject* o, PyObject* const* attrs,
                          Arguments* out) const {
  const ArgDef& a = def_.inputs[arg];
  WantedType wanted;
  if (a.type != DType::kInvalid) {
    wanted.required = a.type;
  } else if (!a.type_attr.empty()) {
    // An input converted before this one decides, then the default.
    wanted.hint = DefaultType(a.type_attr);
    // A default of int32 gives way to numbers that do not fit it.
    if (wanted.hint == DType::kInt32 && NeedsInt64(o)) {
      wanted.hint = DType::kInt64;
    } else if (IsFloating(wanted.hint)) {
      // A default of float32 gives way to what arrays bring with them, if the
      // op takes it: np.float64 stays float64.
      const auto& allowed = def_.FindAttr(a.type_attr)->allowed_types;
      const DType own = OwnDType(o);
      if (std::find(allowed.begin(), allowed.end(), own) != allowed.end()) {
        wanted.hint = own;
      }
    }
  }
  // Upstream's fast path takes neither lists nor text nor data for a fixed
  // type.
  if (IsSequence(o) || PyUnicode_Check(o) || PyBytes_Check(o) ||
      (a.type != DType::kInvalid && !IsVariable(o))) {
    out->had_sequence = true;
  }
  Value v;
  out->names->Argument(a.name, o);
  // A variable given for a reference or resource is meant itself, not its
  // value.
  Ref reference;
  if (a.is_ref && !IsTensor(o)) {
    const Ref method(PyObject_GetAttrString(o, "_ref"));
    PyErr_Clear();
    if (method) reference = Ref(Called<PyObject_CallNoArgs>(method.get()));
    if (method && !reference) return false;
    if (reference) o = reference.get();
  }
  if (a.type == DType::kResource && IsVariable(o)) {
    v = HandleOf(o);
    if (!v) return ReadVariable(o, &v);
  } else if (!ToValue(o, wanted, &v)) {
    NameUnfitArgument(def_, a, o, wanted.required);
    return false;
  }
  out->Add(std::move(v));
  return true;
}

bool OpCaller::ConvertList(int arg, PyObject* o, PyObject* const* attrs,
                           Arguments* out) const {
  const ArgDef& a = def_.inputs[arg];
  // A tensor or an array is taken apart along its first dimension.
  if (!IsSequence(o) && !IsTensor(o) && !IsArray(o)) {
    if (a.number_attr.empty()) {
      Ref type(PyType_GetName(Py_TYPE(o)));
      PyErr_Format(PyExc_TypeError, "'%U' object is not iterable", type.get());
      return false;
    }
    PyErr_Format(PyExc_TypeError,
                 "Expected list for '%s' argument to '%s' Op, not %R.",
                 a.name.c_str(), python_name_.c_str(), o);
    return false;
  }
  Ref items(PySequence_Fast(o, "a list input must be a sequence"));
  if (!items) return false;
  Py_ssize_t n = PySequence_Size(items.get());
  // A first pass for the dtype that tensors among the items give the others.
  // All items of a list share one dtype: a tensor's is not up for discussion,
  // that of Python numbers is.
  WantedType wanted;
  wanted.required = a.type;
  if (!a.type_attr.empty()) {
    for (Py_ssize_t i = 0; i < n; ++i) {
      Ref item(PySequence_GetItem(items.get(), i));
      if (item && IsTensor(item.get())) {
        wanted.required = ValueOf(item.get()).dtype();
        break;
      }
    }
    if (wanted.required == DType::kInvalid) {
      for (size_t k = 0; k < def_.attrs.size(); ++k) {
        if (def_.attrs[k].name == a.type_attr && attrs[k] &&
            attrs[k] != Py_None) {
          wanted.required = AsDType(attrs[k]);
        }
      }
    }
  }
  for (Py_ssize_t i = 0; i < n; ++i) {
    Ref item(PySequence_GetItem(items.get(), i));
    Value v;
    if (!item) return false;
    if (!IsTensor(item.get())) {
      out->names->Argument(absl::StrCat(a.name, "_", i), item.get());
      if (!IsVariable(item.get())) out->had_sequence = true;
    }
    if (a.type == DType::kResource && IsVariable(item.get())) {
      v = HandleOf(item.get());
    } else if (!ToValue(item.get(), wanted, &v)) {
      return false;
    }
    if (!a.type_attr.empty() && wanted.required == DType::kInvalid) {
      wanted.required = v.dtype();
    }
    out->Add(std::move(v));
  }
  return true;
}

[[gnu::hot]] bool OpCaller::Convert(PyObject* const* inputs,
                                    PyObject* const* attrs, PyObject* name,
                                    Arguments* out) const {
  size_t n = def_.inputs.size();
  if (simple_) {
    // Nothing to convert and no errors to word: the common call of small
    // programs.
    bool all = true;
    for (size_t i = 0; i < n && all; ++i) all = IsTensor(inputs[i]);
    if (all) {
      for (size_t i = 0; i < n; ++i) out->Add(ValueOf(inputs[i]));
      return true;
    }
  }
  ArgumentScope names(name, def_.name);
  out->names = &names;
  for (size_t i = 0; i < n; ++i) {
    const ArgDef& a = def_.inputs[i];
    PyObject* o = inputs[i];
    if (a.is_list()) {
      // Lengths are kept only for ops with several lists: with one, it follows
      // from the number of inputs.
      const size_t before = out->types.size();
      if (!ConvertList(i, o, attrs, out)) return false;
      if (several_lists_) {
        out->lists.push_back(static_cast<int>(out->types.size() - before));
        if (!CheckListLength(i, out->lists)) return false;
      }
      continue;
    }
    if (IsTensor(o)) {
      out->Add(ValueOf(o));
      continue;
    }
    DType known = a.type_attr.empty() ? DType::kInvalid
                                      : KnownType(a.type_attr, inputs, attrs);
    if (known == DType::kInvalid && !a.type_attr.empty()) {
      // (With lists types[j] is not the j-th input's.)
      for (size_t j = 0; j < i && simple_; ++j) {
        // A reference's type is that of what it refers to.
        if (def_.inputs[j].type_attr == a.type_attr) {
          known = BaseType(out->types[j]);
        }
      }
    }
    if (known == DType::kInvalid) {
      if (!ConvertOne(i, o, attrs, out)) return false;
      continue;
    }
    if (IsSequence(o) || PyUnicode_Check(o)) out->had_sequence = true;
    Value v;
    out->names->Argument(a.name, o);
    WantedType wanted{known, DType::kInvalid};
    // The second operand of + is converted with a hint, so that its own type
    // may stand and the op words the refusal.
    if (adds_ && i == 1) wanted = {DType::kInvalid, known};
    if (!ToValue(o, wanted, &v)) {
      NameUnfitArgument(def_, a, o, known);
      return false;
    }
    out->Add(std::move(v));
  }
  return true;
}

// Lists that share an attribute for their length are of one length.
bool OpCaller::CheckListLength(size_t arg, absl::Span<const int> lists) const {
  const ArgDef& mine = def_.inputs[arg];
  if (mine.number_attr.empty()) return true;
  size_t list = 0;
  for (size_t i = 0; i < arg; ++i) {
    const ArgDef& other = def_.inputs[i];
    if (!other.is_list()) continue;
    const int n = lists[list++];
    // lists.back() is the list just converted.
    if (other.number_attr != mine.number_attr || n == lists.back()) continue;
    PyErr_Format(PyExc_ValueError,
                 "List argument '%s' to '%s' Op with length %d must match "
                 "length %d of argument '%s'.",
                 mine.name.c_str(), python_name_.c_str(), lists.back(), n,
                 other.name.c_str());
    return false;
  }
  return true;
}

bool OpCaller::ToAttrs(PyObject* const* attrs, AttrMap* out) const {
  for (size_t i = 0; i < def_.attrs.size(); ++i) {
    const AttrDef& a = def_.attrs[i];
    PyObject* o = attrs[i];
    // None means the default, as in upstream's generated functions; where there
    // is none it goes on, and is refused as a value.
    if (o == nullptr ||
        (o == Py_None && (a.has_default || def_.IsInferred(a.name)))) {
      continue;
    }
    AttrValue value;
    if (!ToAttr(a, o, python_name_, &value)) return false;
    out->Set(a.name, std::move(value));
  }
  return true;
}

void OpCaller::SetListAttrs(const Arguments& a, AttrMap* out) const {
  size_t at = 0, list = 0;
  for (const ArgDef& arg : def_.inputs) {
    if (!arg.is_list()) {
      ++at;
      continue;
    }
    const size_t n = a.lists[list++];
    if (arg.type_list_attr.empty()) {
      out->Set(arg.number_attr, static_cast<int64_t>(n));
    } else {
      out->Set(
          arg.type_list_attr,
          std::vector<DType>(a.types.begin() + at, a.types.begin() + at + n));
    }
    at += n;
  }
}

[[gnu::hot]] const OpCaller::Cached* OpCaller::Find(
    const Arguments& a, PyObject* const* attrs) const {
  // Ops resolved before ForgetResolvedOps hold kernels with the state of then.
  uint64_t epoch = ResolvedOpEpoch();
  size_t n = def_.attrs.size();
  for (const Cached& c : cache_) {
    if (c.epoch != epoch || c.types.size() != a.types.size() ||
        !std::equal(c.types.begin(), c.types.end(), a.types.begin()) ||
        c.lists != a.lists) {
      continue;
    }
    bool same = true;
    for (size_t i = 0; i < n && same; ++i) {
      same = SameAttr(c.attrs[i], attrs[i]);
    }
    if (same) return &c;
  }
  return nullptr;
}

ResolvedOpPtr OpCaller::Resolve(const Arguments& a, PyObject* const* attrs,
                                PyObject* name) {
  AttrMap map;
  if (IsRemoved(def_, name) || !ToAttrs(attrs, &map)) return nullptr;
  if (several_lists_) SetListAttrs(a, &map);
  StatusOr<ResolvedOpPtr> op = ResolveOp(def_, a.types, map);
  if (!op.ok()) {
    // In graphs upstream checks types in Python, which has words of its own;
    // eagerly its runtime does.
    if (!CurrentEmitter()->is_eager() &&
        RaiseUnfitTypes(def_, a.types, a.lists, attrs)) {
      return nullptr;
    }
    RaiseOpError(op.status(), name, def_.name);
    return nullptr;
  }
  for (size_t i = 0; i < def_.attrs.size(); ++i) {
    // One that can change is never kept, see IsImmutable.
    if (!IsImmutable(attrs[i])) return *op;
  }
  bool grows = cache_.size() < kMostCached;
  if (grows) cache_.emplace_back();
  // Round about: with more combinations than places the oldest goes.
  Cached& c = grows ? cache_.back() : cache_[next_++ % kMostCached];
  // Compared by value later, so the objects are held: the address of one that
  // died may belong to another.
  for (PyObject* o : c.attrs) Py_XDECREF(o);
  c.epoch = ResolvedOpEpoch();
  c.types.assign(a.types.begin(), a.types.end());
  c.lists = a.lists;
  c.attrs.assign(attrs, attrs + def_.attrs.size());
  for (PyObject* o : c.attrs) Py_XINCREF(o);
  c.op = *op;
  return *op;
}

[[gnu::hot]] PyObject* OpCaller::operator()(PyObject* const* inputs,
                                            PyObject* const* attrs,
                                            PyObject* name) {
  Arguments a;
  if (!Convert(inputs, attrs, name, &a)) return nullptr;
  bool named = name && name != Py_None;
  // Upstream converts the operands of + before the op, which then sees tensors:
  // its errors show the name.
  a.had_sequence = a.had_sequence && !adds_;
  for (size_t i = 0; i < def_.attrs.size() && !a.had_sequence; ++i) {
    // Nor does upstream's fast path take dtypes as text.
    a.had_sequence = attrs[i] && def_.attrs[i].kind == AttrKind::kType &&
                     PyUnicode_Check(attrs[i]);
  }
  // Null leaves "name: " out of the message; None shows it with nothing behind
  // it.
  PyObject* shown = !named && a.had_sequence ? nullptr : named ? name : Py_None;
  const Cached* found = Find(a, attrs);
  ResolvedOpPtr op = found ? found->op : Resolve(a, attrs, shown);
  if (!op) return nullptr;
  ValueList outputs;
  if (!EmitResolved(op, a.values, &outputs, shown)) return nullptr;
  return Pack(std::move(outputs), op);
}

bool OpCaller::Call(PyObject* const* inputs, PyObject* const* attrs,
                    PyObject* name, ValueList* outputs) {
  Arguments a;
  if (!Convert(inputs, attrs, name, &a)) return false;
  const Cached* found = Find(a, attrs);
  ResolvedOpPtr op = found ? found->op : Resolve(a, attrs, name);
  return op && EmitResolved(op, a.values, outputs, name);
}

PyObject* OpCaller::TupleType() {
  // Made at first use, as most ops have one output and namedtuple compiles a
  // class of Python.
  if (tuple_type_) return tuple_type_;
  Ref module(PyImport_ImportModule("collections"));
  if (!module) return nullptr;
  Ref names(PyList_New(0));
  for (const ArgDef& a : def_.outputs) {
    Ref name(PyUnicode_FromString(a.name.c_str()));
    if (!name || PyList_Append(names.get(), name.get()) < 0) return nullptr;
  }
  Ref type(Called<PyObject_CallMethod>(module.get(), "namedtuple", "sO",
                                       def_.name.c_str(), names.get()));
  // (Else it takes the module of whoever calls the op first.)
  Ref home(PyUnicode_FromString("headrace.raw_ops"));
  if (!type || !home ||
      PyObject_SetAttrString(type.get(), "__module__", home.get()) < 0) {
    return nullptr;
  }
  tuple_type_ = type.release();
  return tuple_type_;
}

[[gnu::hot]] PyObject* OpCaller::Pack(ValueList outputs,
                                      const ResolvedOpPtr& op) {
  const auto& defs = def_.outputs;
  if (defs.size() == 1 && !defs[0].is_list()) {
    return WrapValue(std::move(outputs[0]));
  }
  if (defs.empty()) {
    // In graphs a call without results gives its Operation, for control
    // dependencies and sessions.
    if (CurrentEmitter()->is_eager()) Py_RETURN_NONE;
    static PyObject* last_operation = nullptr;
    if (last_operation == nullptr) {
      last_operation = Import("context.stack", "last_operation").release();
      if (last_operation == nullptr) return nullptr;
    }
    return Called<PyObject_CallNoArgs>(last_operation);
  }
  Ref tuple(PyTuple_New(defs.size()));
  if (!tuple) return nullptr;
  for (size_t i = 0; i < defs.size(); ++i) {
    ArgRange range = op->output_range(i);
    PyObject* item;
    if (defs[i].is_list()) {
      item = PyList_New(range.size());
      for (int j = 0; item && j < range.size(); ++j) {
        PyObject* t = WrapValue(std::move(outputs[range.begin + j]));
        if (t == nullptr)
          Py_CLEAR(item);
        else
          PyList_SetItem(item, j, t);
      }
    } else {
      item = WrapValue(std::move(outputs[range.begin]));
    }
    if (item == nullptr) return nullptr;
    // A single list goes without a tuple around it.
    if (defs.size() == 1) return item;
    PyTuple_SetItem(tuple.get(), i, item);
  }
  PyObject* type = TupleType();
  return type ? Called<PyObject_Call>(type, tuple.get(), nullptr) : nullptr;
}

OpCaller* CallerOf(const char* op) {
  // Under the GIL, as all of this room; call sites keep the pointer, so that
  // callers are never freed.
  static auto* callers = new HashMap<std::string, OpCaller*>;
  OpCaller*& caller = (*callers)[op];
  if (caller == nullptr) {
    const OpDef* def = FindOp(op);
    if (def == nullptr) {
      callers->erase(op);
      RaiseStatus(LookUpOp(op).status());
      return nullptr;
    }
    caller = new OpCaller(*def);
  }
  return caller;
}

}  // namespace headrace::bind
