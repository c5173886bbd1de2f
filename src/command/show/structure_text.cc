#include "command/show/structure_text.h"

#include <charconv>
#include <map>

#include "absl/strings/str_join.h"
#include "command/show/graph_facts.h"

namespace headrace::command {
namespace {

using tensorflow::StructuredValue;
using tensorflow::TensorShapeProto;

std::string PythonText(const std::string& text) {
  const char quote = text.find('\'') == std::string::npos ? '\'' : '"';
  return absl::StrCat(std::string(1, quote), Escaped(text),
                      std::string(1, quote));
}

std::string PythonFloat(double v) {
  char room[40];
  std::string text(room, std::to_chars(room, room + sizeof room, v).ptr);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

std::string Sizes(const TensorShapeProto& shape) {
  return absl::StrJoin(ShapeSizes(shape), ", ",
                       [](std::string* out, int64_t d) {
                         absl::StrAppend(out, d < 0 ? "None" : absl::StrCat(d));
                       });
}

std::string ShapeTuple(const TensorShapeProto& shape) {
  if (shape.unknown_rank()) return "None";
  return absl::StrCat("(", Sizes(shape), shape.dim_size() == 1 ? ",)" : ")");
}

std::string SpecText(const tensorflow::TensorSpecProto& spec) {
  return absl::StrCat(
      "TensorSpec(shape=",
      spec.shape().unknown_rank() ? "<unknown>" : ShapeTuple(spec.shape()),
      ", dtype=tf.", DTypeText(spec.dtype()),
      ", name=", spec.name().empty() ? "None" : PythonText(spec.name()), ")");
}

template <typename Values>
std::string Joined(const Values& values) {
  return absl::StrJoin(values, ", ",
                       [](std::string* out, const StructuredValue& v) {
                         *out += StructureText(v);
                       });
}

std::string FieldsText(const tensorflow::DictValue& dict) {
  const std::map<std::string, StructuredValue> sorted(dict.fields().begin(),
                                                      dict.fields().end());
  return absl::StrJoin(sorted, ", ", [](std::string* out, const auto& field) {
    absl::StrAppend(out, PythonText(field.first), ": ",
                    StructureText(field.second));
  });
}

std::string PairsText(const tensorflow::NamedTupleValue& tuple) {
  return absl::StrJoin(tuple.values(), ", ",
                       [](std::string* out, const auto& pair) {
                         absl::StrAppend(out, Escaped(pair.key()), "=",
                                         StructureText(pair.value()));
                       });
}

// The name of the type, as saved_model_cli says "DType".
std::string TypeName(const StructuredValue& v) {
  switch (v.kind_case()) {
    case StructuredValue::kFloat64Value:
      return "float";
    case StructuredValue::kInt64Value:
      return "int";
    case StructuredValue::kBoolValue:
      return "bool";
    case StructuredValue::kTensorShapeValue:
      return "TensorShape";
    case StructuredValue::kTensorDtypeValue:
      return "DType";
    case StructuredValue::kTypeSpecValue:
      return Escaped(v.type_spec_value().type_spec_class_name());
    case StructuredValue::kBoundedTensorSpecValue:
      return "BoundedTensorSpec";
    case StructuredValue::kListValue:
      return "list";
    case StructuredValue::kTupleValue:
      return "tuple";
    case StructuredValue::kDictValue:
      return "dict";
    case StructuredValue::kNamedTupleValue:
      return Escaped(v.named_tuple_value().name());
    default:
      return "NoneType";
  }
}

// What is given, in its form there: tuples have the brackets of lists, what is
// within is written as Python does. (The tool writes a comma behind each part
// and moves the cursor back over the last.)
std::string CliText(const StructuredValue& v) {
  const auto list = [](const auto& values, auto&& value_of) {
    return absl::StrCat("[",
                        absl::StrJoin(values, ", ",
                                      [&](std::string* out, const auto& item) {
                                        *out += StructureText(value_of(item));
                                      }),
                        "]");
  };
  const auto itself = [](const StructuredValue& item) -> const auto& {
    return item;
  };
  switch (v.kind_case()) {
    case StructuredValue::kListValue:
      return list(v.list_value().values(), itself);
    case StructuredValue::kTupleValue:
      return list(v.tuple_value().values(), itself);
    case StructuredValue::kNamedTupleValue:
      return list(
          v.named_tuple_value().values(),
          [](const auto& pair) -> const auto& { return pair.value(); });
    case StructuredValue::kTensorDtypeValue:
      return absl::StrCat("<dtype: '", DTypeText(v.tensor_dtype_value()), "'>");
    default:
      return StructureText(v);
  }
}

void PrintArgument(const StructuredValue& v, Output& out) {
  if (v.kind_case() == StructuredValue::kTensorSpecValue) {
    out.Print("          ", Escaped(v.tensor_spec_value().name()), ": ",
              SpecText(v.tensor_spec_value()), "\n");
  } else if (v.kind_case() == StructuredValue::kStringValue) {
    out.Print("          ", Escaped(v.string_value()), "\n");
  } else {
    out.Print("          DType: ", TypeName(v),
              "\n          Value: ", CliText(v), "\n");
  }
}

}  // namespace

std::string StructureText(const StructuredValue& v) {
  switch (v.kind_case()) {
    case StructuredValue::kFloat64Value:
      return PythonFloat(v.float64_value());
    case StructuredValue::kInt64Value:
      return absl::StrCat(v.int64_value());
    case StructuredValue::kStringValue:
      return PythonText(v.string_value());
    case StructuredValue::kBoolValue:
      return v.bool_value() ? "True" : "False";
    case StructuredValue::kTensorShapeValue:
      return v.tensor_shape_value().unknown_rank()
                 ? "TensorShape(None)"
                 : absl::StrCat("TensorShape([", Sizes(v.tensor_shape_value()),
                                "])");
    case StructuredValue::kTensorDtypeValue:
      return absl::StrCat("tf.", DTypeText(v.tensor_dtype_value()));
    case StructuredValue::kTensorSpecValue:
      return SpecText(v.tensor_spec_value());
    case StructuredValue::kBoundedTensorSpecValue:
      return absl::StrCat(
          "BoundedTensorSpec(shape=",
          ShapeTuple(v.bounded_tensor_spec_value().shape()), ", dtype=tf.",
          DTypeText(v.bounded_tensor_spec_value().dtype()), ")");
    case StructuredValue::kTypeSpecValue: {
      const auto& spec = v.type_spec_value();
      const bool tuple = spec.type_state().has_tuple_value();
      return absl::StrCat(Escaped(spec.type_spec_class_name()), "(",
                          tuple
                              ? Joined(spec.type_state().tuple_value().values())
                              : StructureText(spec.type_state()),
                          ")");
    }
    case StructuredValue::kListValue:
      return absl::StrCat("[", Joined(v.list_value().values()), "]");
    case StructuredValue::kTupleValue:
      return absl::StrCat("(", Joined(v.tuple_value().values()),
                          v.tuple_value().values_size() == 1 ? ",)" : ")");
    case StructuredValue::kDictValue:
      return absl::StrCat("{", FieldsText(v.dict_value()), "}");
    case StructuredValue::kNamedTupleValue:
      return absl::StrCat(Escaped(v.named_tuple_value().name()), "(",
                          PairsText(v.named_tuple_value()), ")");
    default:
      return "None";
  }
}

void PrintTrace(int option, const StructuredValue& signature, Output& out) {
  const auto& pair = signature.tuple_value();
  if (pair.values_size() != 2) return;
  const auto& args = pair.values(0).tuple_value().values();
  const auto& named = pair.values(1).dict_value().fields();
  if (!args.empty()) {
    out.Print("    Option #", option, "\n      Callable with:\n");
    int number = 0;
    for (const StructuredValue& arg : args) {
      out.Print("        Argument #", ++number, "\n");
      PrintArgument(arg, out);
    }
  }
  const std::map<std::string, StructuredValue> sorted(named.begin(),
                                                      named.end());
  int number = 0;
  for (const auto& [name, value] : sorted) {
    out.Print("        Named Argument #", ++number, "\n          ",
              Escaped(name), "\n");
  }
}

}  // namespace headrace::command
