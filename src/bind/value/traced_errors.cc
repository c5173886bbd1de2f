#include "bind/value/traced_errors.h"

#include <string>

#include "absl/strings/str_join.h"
#include "base/hash_map.h"
#include "bind/value/dtype_object.h"
#include "op/emitter.h"

namespace headrace::bind {
namespace {

std::string Names(absl::Span<const DType> types) {
  return absl::StrJoin(types, ", ", [](std::string* out, DType d) {
    // A reference passes for what it refers to.
    absl::StrAppend(out, DTypePythonName(BaseType(d)));
  });
}

bool IsAllowed(const AttrDef& a, DType d) {
  return a.allowed_types.empty() ||
         std::find(a.allowed_types.begin(), a.allowed_types.end(),
                   BaseType(d)) != a.allowed_types.end();
}

bool Refuse(const std::string& text) {
  PyErr_SetString(PyExc_TypeError, text.c_str());
  return true;
}

bool RefuseValue(const std::string& parameter, const AttrDef& a, DType d) {
  return Refuse(
      absl::StrCat("Value passed to parameter '", parameter, "' has DataType ",
                   DTypePythonName(BaseType(d)),
                   " not in list of allowed values: ", Names(a.allowed_types)));
}

// How many of the flattened inputs argument `i` has.
size_t LengthOf(const OpDef& def, size_t i, size_t inputs,
                absl::Span<const int> lists) {
  if (!def.inputs[i].is_list()) return 1;
  size_t before = 0, others = 0;
  for (size_t k = 0; k < def.inputs.size(); ++k) {
    before += k < i && def.inputs[k].is_list();
    others += !def.inputs[k].is_list();
  }
  // With one list, its length is what the others leave.
  if (!lists.empty()) return before < lists.size() ? lists[before] : 0;
  return inputs >= others ? inputs - others : 0;
}

// The types that attributes have by the arguments so far, and who gave them.
using Known = HashMap<std::string, std::pair<DType, std::string>>;

bool RaiseUnfitList(const OpDef& def, const ArgDef& arg,
                    absl::Span<const DType> types) {
  const std::string start =
      absl::StrCat("Tensors in list passed to '", arg.name, "' of '", def.name,
                   "' Op have types [", Names(types), "] that ");
  for (DType d : types) {
    if (arg.type != DType::kInvalid && BaseType(d) != arg.type) {
      return Refuse(absl::StrCat(start, "do not match expected type ",
                                 DTypePythonName(arg.type), "."));
    }
    if (arg.type == DType::kInvalid && BaseType(d) != BaseType(types[0])) {
      return Refuse(start + "don't all match.");
    }
  }
  return false;
}

bool RaiseUnfitInput(const OpDef& def, const ArgDef& arg, DType d,
                     Known* known) {
  const std::string start =
      absl::StrCat("Input '", arg.name, "' of '", def.name, "' Op has type ",
                   DTypePythonName(BaseType(d)), " that does not match ");
  if (arg.type != DType::kInvalid) {
    if (BaseType(d) == arg.type) return false;
    return Refuse(absl::StrCat(start, "expected type of ",
                               DTypePythonName(arg.type), "."));
  }
  if (arg.type_attr.empty()) return false;
  // The first argument with the attribute decides, and the message names it.
  auto [it, first] = known->try_emplace(arg.type_attr, d, arg.name);
  if (!first) {
    if (BaseType(d) == BaseType(it->second.first)) return false;
    return Refuse(absl::StrCat(start, "type ",
                               DTypePythonName(BaseType(it->second.first)),
                               " of argument '", it->second.second, "'."));
  }
  const AttrDef* a = def.FindAttr(arg.type_attr);
  return a && !IsAllowed(*a, d) && RefuseValue(arg.name, *a, d);
}

bool RaiseUnfitAttr(const OpDef& def, const AttrDef& a, PyObject* o) {
  if (a.kind == AttrKind::kType) {
    const DType d = AsDType(o);
    if (d != DType::kInvalid) {
      return !IsAllowed(a, d) && RefuseValue(a.name, a, d);
    }
    PyErr_Clear();
    return false;
  }
  if (a.kind != AttrKind::kString || a.allowed_strings.empty()) return false;
  const char* s = PyUnicode_Check(o) ? Utf8Of(o) : nullptr;
  if (s == nullptr) return PyErr_Clear(), false;
  for (const std::string& ok : a.allowed_strings) {
    if (ok == s) return false;
  }
  std::string allowed = absl::StrJoin(a.allowed_strings, "\", \"");
  PyErr_Format(PyExc_ValueError,
               "Attr '%s' of '%s' Op passed string '%s' not in: \"%s\".",
               a.name.c_str(), def.name.c_str(), s, allowed.c_str());
  return true;
}

}  // namespace

bool RaiseUnfitTypes(const OpDef& def, absl::Span<const DType> types,
                     absl::Span<const int> lists, PyObject* const* attrs) {
  Known known;
  size_t at = 0;
  for (size_t i = 0; i < def.inputs.size(); ++i) {
    const ArgDef& arg = def.inputs[i];
    const size_t n = LengthOf(def, i, types.size(), lists);
    if (at + n > types.size()) return false;
    const absl::Span<const DType> mine = types.subspan(at, n);
    at += n;
    if (arg.is_list() && arg.number_attr.empty()) continue;  // types differ
    if (arg.is_list() && RaiseUnfitList(def, arg, mine)) return true;
    if (!mine.empty() && RaiseUnfitInput(def, arg, mine[0], &known)) {
      return true;
    }
  }
  for (size_t i = 0; i < def.attrs.size(); ++i) {
    if (attrs[i] && attrs[i] != Py_None &&
        RaiseUnfitAttr(def, def.attrs[i], attrs[i])) {
      return true;
    }
  }
  return false;
}

void NameUnfitArgument(const OpDef& def, const ArgDef& arg, PyObject* data,
                       DType wanted) {
  // Eager texts name no argument.
  if (wanted == DType::kInvalid || !PyErr_ExceptionMatches(PyExc_TypeError) ||
      CurrentEmitter()->is_eager()) {
    return;
  }
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  Ref kind(type), error(value), where(trace);
  Ref type_name(PyType_GetName(Py_TYPE(data)));
  if (!error || !type_name) return;
  PyErr_Format(PyExc_TypeError,
               "Expected %s passed to parameter '%s' of op '%s', got %R of "
               "type '%U' instead. Error: %S",
               std::string(DTypePythonName(wanted)).c_str(), arg.name.c_str(),
               def.name.c_str(), data, type_name.get(), error.get());
}

}  // namespace headrace::bind
