// Writes the C++ op functions from the registry:
//   generate_cc_ops HEADER SOURCE_PREFIX SHARDS
// HEADER declares one function an op, with its documentation; SOURCE_PREFIX0.cc
// and so on define them. Left out: internal ops ("_X"), ops with function
// attributes or reference types, and those that are deprecated.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "op/registry.h"

namespace headrace {
namespace {

bool IsFunctionKind(AttrKind k) {
  return k == AttrKind::kFunc || k == AttrKind::kFuncList;
}

bool Wanted(const OpDef& op) {
  if (op.name[0] == '_' || op.deprecation.version > 0) return false;
  for (const AttrDef& a : op.attrs) {
    if (IsFunctionKind(a.kind) || a.kind == AttrKind::kTensorList) return false;
  }
  for (const auto* args : {&op.inputs, &op.outputs}) {
    for (const ArgDef& a : *args) {
      if (a.is_ref) return false;
    }
  }
  return true;
}

const char* TypeOf(AttrKind k) {
  switch (k) {
    case AttrKind::kInt:
      return "int64_t";
    case AttrKind::kFloat:
      return "float";
    case AttrKind::kBool:
      return "bool";
    case AttrKind::kString:
      return "std::string";
    case AttrKind::kType:
      return "DType";
    case AttrKind::kShape:
      return "TensorShape";
    case AttrKind::kTensor:
      return "Tensor";
    case AttrKind::kIntList:
      return "std::vector<int64_t>";
    case AttrKind::kFloatList:
      return "std::vector<float>";
    case AttrKind::kBoolList:
      return "std::vector<bool>";
    case AttrKind::kStringList:
      return "std::vector<std::string>";
    case AttrKind::kTypeList:
      return "std::vector<DType>";
    case AttrKind::kShapeList:
      return "std::vector<TensorShape>";
    default:
      return "void";
  }
}

std::string Quoted(const std::string& s) {
  return absl::StrCat(
      "\"",
      absl::StrReplaceAll(s, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}}),
      "\"");
}

template <typename T, typename F>
std::string Braced(const std::vector<T>& v, F&& one) {
  std::vector<std::string> parts;
  for (const auto& x : v) parts.push_back(one(x));
  return absl::StrCat("{", absl::StrJoin(parts, ", "), "}");
}

std::string DTypeText(DType d) {
  return absl::StrCat("static_cast<DType>(", static_cast<int>(d), ")");
}

std::string ShapeText(const Shape& s) {
  if (!s.known_rank()) return "internal::UnknownShape()";
  return absl::StrCat("TensorShape{", absl::StrJoin(s.dims(), ", "), "}");
}

std::string Default(const AttrValue& v) {
  switch (v.kind()) {
    case AttrKind::kInt: {
      int64_t n = std::get<int64_t>(v);
      return n == INT64_MIN ? "INT64_MIN" : absl::StrCat(n);
    }
    case AttrKind::kFloat: {
      float f = std::get<float>(v);
      if (std::isinf(f)) return f > 0 ? "HUGE_VALF" : "-HUGE_VALF";
      std::string text = absl::StrCat(f);
      if (text.find_first_of(".e") == std::string::npos) text += ".0";
      return text + "f";
    }
    case AttrKind::kBool:
      return std::get<bool>(v) ? "true" : "false";
    case AttrKind::kString:
      return Quoted(std::get<std::string>(v));
    case AttrKind::kType:
      return DTypeText(std::get<DType>(v));
    case AttrKind::kShape:
      return ShapeText(std::get<Shape>(v));
    case AttrKind::kIntList:
      return Braced(std::get<std::vector<int64_t>>(v),
                    [](int64_t x) { return absl::StrCat(x); });
    case AttrKind::kFloatList:
      return Braced(std::get<std::vector<float>>(v),
                    [](float x) { return Default(AttrValue(x)); });
    case AttrKind::kStringList:
      return Braced(std::get<std::vector<std::string>>(v), Quoted);
    case AttrKind::kTypeList:
      return Braced(std::get<std::vector<DType>>(v), DTypeText);
    default:
      return "{}";
  }
}

std::string SafeName(const std::string& name) {
  static const char* const kWords[] = {
      "default", "template", "class", "switch", "case",     "if",
      "while",   "for",      "new",   "delete", "operator", "register",
      "signed",  "unsigned", "union", "input"};
  for (const char* w : kWords) {
    if (name == w && name != "input") return name + "_";
  }
  return name;
}

// The parts of an op's C++ face.
struct Face {
  explicit Face(const OpDef& def) : op(def) {
    for (const AttrDef& a : op.attrs) {
      if (op.IsInferred(a.name)) continue;
      (a.has_default ? optional : required).push_back(&a);
    }
  }

  std::string Result() const {
    if (op.outputs.empty()) return "void";
    if (op.outputs.size() > 1) return op.name + "Outputs";
    return op.outputs[0].is_list() ? "std::vector<Tensor>" : "Tensor";
  }

  std::string Signature(bool with_default) const {
    std::vector<std::string> args;
    for (const ArgDef& a : op.inputs) {
      args.push_back(absl::StrCat(
          a.is_list() ? "const std::vector<Tensor>& " : "const Tensor& ",
          SafeName(a.name)));
    }
    for (const AttrDef* a : required) {
      args.push_back(
          absl::StrCat("const ", TypeOf(a->kind), "& ", SafeName(a->name)));
    }
    if (!optional.empty()) {
      args.push_back(absl::StrCat("const ", op.name, "Options& options",
                                  with_default ? " = {}" : ""));
    }
    return absl::StrCat(Result(), " ", op.name, "(", absl::StrJoin(args, ", "),
                        ")");
  }

  const OpDef& op;
  std::vector<const AttrDef*> required, optional;
};

void Declare(const Face& f, std::ostream& out) {
  const OpDef& op = f.op;
  if (!f.optional.empty()) {
    out << "struct " << op.name << "Options {\n";
    for (const AttrDef* a : f.optional) {
      out << "  " << TypeOf(a->kind) << " " << SafeName(a->name) << " = "
          << Default(a->default_value) << ";\n";
    }
    out << "};\n";
  }
  if (op.outputs.size() > 1) {
    out << "struct " << op.name << "Outputs {\n";
    for (const ArgDef& a : op.outputs) {
      out << "  " << (a.is_list() ? "std::vector<Tensor>" : "Tensor") << " "
          << SafeName(a.name) << ";\n";
    }
    out << "};\n";
  }
  std::string doc = op.doc.empty() ? op.name + "." : op.doc;
  out << "// " << absl::StrReplaceAll(doc, {{"\n", "\n// "}}) << "\n";
  for (const AttrDef& a : op.attrs) {
    if (a.allowed_types.empty()) continue;
    out << "// " << a.name << ": "
        << absl::StrJoin(a.allowed_types, ", ",
                         [](std::string* s, DType d) {
                           absl::StrAppend(s, DTypePythonName(d));
                         })
        << ".\n";
  }
  out << "HR_API " << f.Signature(true) << ";\n\n";
}

void Define(const Face& f, std::ostream& out) {
  const OpDef& op = f.op;
  out << f.Signature(false) << " {\n  internal::OpCall call(\"" << op.name
      << "\");\n";
  for (const ArgDef& a : op.inputs) {
    out << "  call.Input(" << SafeName(a.name) << ");\n";
    if (a.is_list() && a.type_list_attr.empty()) {
      out << "  call.Attr(\"" << a.number_attr << "\", static_cast<int64_t>("
          << SafeName(a.name) << ".size()));\n";
    } else if (a.is_list()) {
      out << "  call.TypesAttr(\"" << a.type_list_attr << "\", "
          << SafeName(a.name) << ");\n";
    }
  }
  for (const AttrDef* a : f.required) {
    out << "  call.Attr(\"" << a->name << "\", " << SafeName(a->name) << ");\n";
  }
  for (const AttrDef* a : f.optional) {
    out << "  call.Attr(\"" << a->name << "\", options." << SafeName(a->name)
        << ");\n";
  }
  out << "  call.Run();\n";
  if (op.outputs.size() == 1) {
    out << "  return call." << (op.outputs[0].is_list() ? "List" : "One")
        << "(0);\n";
  } else if (op.outputs.size() > 1) {
    out << "  return {";
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      out << (i ? ", " : "") << "call."
          << (op.outputs[i].is_list() ? "List" : "One") << "(" << i << ")";
    }
    out << "};\n";
  }
  out << "}\n\n";
}

// Leaves a file that is the same already alone, so that nothing is rebuilt.
bool WriteIfChanged(const std::string& path, const std::string& text) {
  std::ifstream old(path);
  std::stringstream before;
  before << old.rdbuf();
  if (old && before.str() == text) return true;
  std::ofstream out(path);
  out << text;
  return static_cast<bool>(out.flush());
}

int Write(const std::string& header, const std::string& prefix, int shards) {
  std::ostringstream h;
  h << "// Made by generate_cc_ops from the op registry; do not edit.\n"
       "#pragma once\n\n#include <cmath>\n#include <cstdint>\n"
       "#include <string>\n#include <vector>\n\n"
       "#include \"headrace/tensor.h\"\n\nnamespace headrace::tf {\n"
       "namespace internal {\ninline TensorShape UnknownShape() {\n  "
       "TensorShape s;\n"
       "  s.known_rank = false;\n  return s;\n}\n}  // namespace internal\n\n";
  std::vector<std::ostringstream> sources(shards);
  for (std::ostringstream& s : sources) {
    s << "// Made by generate_cc_ops; do not edit.\n"
         "#include \"headrace/ops.h\"\n\n"
         "#include \"cc/op_call.h\"\n\n"
         "namespace headrace::tf {\n\n";
  }
  int n = 0;
  for (const OpDef* op : AllOps()) {
    if (!Wanted(*op)) continue;
    Face face(*op);
    Declare(face, h);
    Define(face, sources[n++ % shards]);
  }
  h << "}  // namespace headrace::tf\n";
  bool ok = WriteIfChanged(header, h.str());
  for (int i = 0; i < shards; ++i) {
    sources[i] << "}  // namespace headrace::tf\n";
    ok = WriteIfChanged(absl::StrCat(prefix, i, ".cc"), sources[i].str()) && ok;
  }
  std::cout << n << " op functions\n";
  return ok ? 0 : 1;
}

}  // namespace
}  // namespace headrace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: generate_cc_ops HEADER SOURCE_PREFIX SHARDS\n";
    return 2;
  }
  return headrace::Write(argv[1], argv[2], std::atoi(argv[3]));
}
