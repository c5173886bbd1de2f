#include "op/op_spec.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "formats/proto_text.h"
#include "tensor/tensor_proto.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"

namespace headrace {
namespace {

StringView Stripped(StringView s) { return absl::StripAsciiWhitespace(s); }

// Takes `open` from the front and `close` from the back, or neither; blanks
// inside them with them.
bool Unwrap(StringView* s, StringView open, StringView close) {
  StringView inside = *s;
  if (!absl::ConsumePrefix(&inside, open) ||
      !absl::ConsumeSuffix(&inside, close)) {
    return false;
  }
  *s = Stripped(inside);
  return true;
}

struct Named {
  StringView name;
  StringView rest;
};
StatusOr<Named> SplitName(StringView spec) {
  const size_t colon = spec.find(':');
  if (colon == StringView::npos) return InvalidArgument("no ':'");
  return Named{Stripped(spec.substr(0, colon)),
               Stripped(spec.substr(colon + 1))};
}

// What the commas between brackets of any kind and quotes do not part.
std::vector<StringView> Items(StringView text) {
  std::vector<StringView> items;
  if (Stripped(text).empty()) return items;
  size_t begin = 0;
  char quote = 0;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == '\\') ++i;
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      --depth;
    } else if (c == ',' && depth == 0) {
      items.push_back(Stripped(text.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  items.push_back(Stripped(text.substr(std::min(begin, text.size()))));
  return items;
}

bool IsQuotedBy(StringView text, char quote) {
  return text.size() >= 2 && text.front() == quote && text.back() == quote;
}

StatusOr<std::string> ParseString(StringView text) {
  if (!IsQuotedBy(text, '\'') && !IsQuotedBy(text, '"')) {
    return std::string(text);
  }
  text = text.substr(1, text.size() - 2);
  std::string out;
  if (!absl::CUnescape(text, &out)) {
    return InvalidArgument("'", text, "' is no string");
  }
  return out;
}

AttrKind KindFromName(StringView name) {
  for (int k = 1; k <= static_cast<int>(AttrKind::kFuncList); ++k) {
    if (AttrKindName(static_cast<AttrKind>(k)) == name) {
      return static_cast<AttrKind>(k);
    }
  }
  return AttrKind::kNone;
}

std::vector<DType> NamedTypes(StringView set) {
  using D = DType;
  std::vector<DType> real = {D::kFloat,  D::kDouble, D::kInt32,  D::kUint8,
                             D::kInt16,  D::kInt8,   D::kInt64,  D::kBfloat16,
                             D::kUint16, D::kHalf,   D::kUint32, D::kUint64};
  if (set == "realnumbertype") return real;
  if (set == "numbertype") {
    return {D::kFloat,      D::kDouble,    D::kInt32,  D::kUint8,   D::kInt16,
            D::kInt8,       D::kComplex64, D::kInt64,  D::kQint8,   D::kQuint8,
            D::kQint32,     D::kBfloat16,  D::kQint16, D::kQuint16, D::kUint16,
            D::kComplex128, D::kHalf,      D::kUint32, D::kUint64};
  }
  if (set == "quantizedtype") {
    return {D::kQint8, D::kQuint8, D::kQint32, D::kQint16, D::kQuint16};
  }
  return {};
}

// The items of "{a, b}" or "{'x', 'y'}" as the allowed values of `attr`.
Status ParseAllowed(StringView inside, AttrDef* attr) {
  for (StringView part : Items(inside)) {
    if (!part.empty() && (part.front() == '\'' || part.front() == '"')) {
      HR_ASSIGN_OR_RETURN(std::string s, ParseString(part));
      attr->allowed_strings.push_back(std::move(s));
      attr->kind = AttrKind::kString;
      continue;
    }
    std::vector<DType> set = NamedTypes(part);
    if (set.empty()) {
      HR_ASSIGN_OR_RETURN(DType dtype, DTypeFromName(part));
      set = {dtype};
    }
    attr->allowed_types.insert(attr->allowed_types.end(), set.begin(),
                               set.end());
    attr->kind = AttrKind::kType;
  }
  if (!attr->allowed_types.empty() && !attr->allowed_strings.empty()) {
    return InvalidArgument("both types and strings are allowed");
  }
  return OkStatus();
}

StatusOr<int64_t> ParseInt(StringView text) {
  int64_t v = 0;
  if (absl::SimpleAtoi(text, &v)) return v;
  return InvalidArgument("'", text, "' is not an int");
}

StatusOr<float> ParseFloat(StringView text) {
  float v = 0;
  if (absl::SimpleAtof(text, &v)) return v;
  return InvalidArgument("'", text, "' is not a float");
}

StatusOr<bool> ParseBool(StringView text) {
  if (text == "true" || text == "false") return text == "true";
  return InvalidArgument("'", text, "' is not true or false");
}

StatusOr<DType> ParseType(StringView text) {
  absl::ConsumePrefix(&text, "DT_");
  return DTypeFromName(absl::AsciiStrToLower(text));
}

// "{ ... }" in the text form of a proto.
template <typename P>
StatusOr<P> ParseProto(StringView text) {
  P proto;
  Unwrap(&text, "{", "}");
  if (auto error = ReadProtoText(std::string(text), &proto)) {
    return InvalidArgument("'", text, "': ", error->message);
  }
  return proto;
}

// "[2, -1]", "unknown", or a TensorShapeProto.
StatusOr<Shape> ParseShape(StringView text) {
  if (text == "unknown") return Shape::UnknownRank();
  if (!Unwrap(&text, "[", "]")) {
    HR_ASSIGN_OR_RETURN(auto proto,
                        ParseProto<tensorflow::TensorShapeProto>(text));
    return ShapeFromProto(proto);
  }
  std::vector<int64_t> sizes;
  for (StringView item : Items(text)) {
    HR_ASSIGN_OR_RETURN(int64_t size, ParseInt(item));
    sizes.push_back(size);
  }
  return Shape::Make(sizes, /*allow_unknown=*/true);
}

// "uint8 [255, 0, 0, 255]", or a TensorProto.
StatusOr<Tensor> ParseTensor(StringView text) {
  if (!absl::ConsumePrefix(&text, "uint8 ")) {
    HR_ASSIGN_OR_RETURN(auto proto, ParseProto<tensorflow::TensorProto>(text));
    return TensorFromProto(proto);
  }
  std::vector<uint8_t> values;
  Unwrap(&text, "[", "]");
  for (StringView item : Items(text)) {
    HR_ASSIGN_OR_RETURN(int64_t v, ParseInt(item));
    if (v < 0 || v > 255) return InvalidArgument(v, " is not uint8");
    values.push_back(static_cast<uint8_t>(v));
  }
  return Tensor::Vector<uint8_t>(values);
}

StatusOr<FuncRef> ParseFunc(StringView text) {
  HR_ASSIGN_OR_RETURN(std::string name, ParseString(text));
  return FuncRef{std::move(name), nullptr};
}

template <typename T>
StatusOr<AttrValue> OneOf(StatusOr<T> parsed) {
  if (!parsed.ok()) return parsed.status();
  return AttrValue(*std::move(parsed));
}

// "[a, b]".
template <typename T>
StatusOr<AttrValue> ListOf(StringView text,
                           StatusOr<T> (*parse)(StringView text)) {
  if (!Unwrap(&text, "[", "]")) {
    return InvalidArgument("'", text, "' is not a list");
  }
  std::vector<T> list;
  for (StringView item : Items(text)) {
    HR_ASSIGN_OR_RETURN(T value, parse(item));
    list.push_back(std::move(value));
  }
  return AttrValue(std::move(list));
}

// The default value written after '='.
StatusOr<AttrValue> ParseDefault(AttrKind kind, StringView text) {
  switch (kind) {
    case AttrKind::kInt:
      return OneOf(ParseInt(text));
    case AttrKind::kFloat:
      return OneOf(ParseFloat(text));
    case AttrKind::kBool:
      return OneOf(ParseBool(text));
    case AttrKind::kString:
      return OneOf(ParseString(text));
    case AttrKind::kType:
      return OneOf(ParseType(text));
    case AttrKind::kShape:
      return OneOf(ParseShape(text));
    case AttrKind::kTensor:
      return OneOf(ParseTensor(text));
    case AttrKind::kFunc:
      return OneOf(ParseFunc(text));
    case AttrKind::kIntList:
      return ListOf(text, ParseInt);
    case AttrKind::kFloatList:
      return ListOf(text, ParseFloat);
    case AttrKind::kBoolList:
      return ListOf(text, ParseBool);
    case AttrKind::kStringList:
      return ListOf(text, ParseString);
    case AttrKind::kTypeList:
      return ListOf(text, ParseType);
    case AttrKind::kShapeList:
      return ListOf(text, ParseShape);
    case AttrKind::kTensorList:
      return ListOf(text, ParseTensor);
    case AttrKind::kFuncList:
      return ListOf(text, ParseFunc);
    default:
      return InvalidArgument("this kind takes no default");
  }
}

// The part before constraints: the kind, or a set of values.
Status ParseKind(StringView type, AttrDef* attr) {
  const bool list = Unwrap(&type, "list(", ")");
  if (Unwrap(&type, "{", "}")) {
    HR_RETURN_IF_ERROR(ParseAllowed(type, attr));
  } else if (auto set = NamedTypes(type); !set.empty()) {
    attr->kind = AttrKind::kType;
    attr->allowed_types = std::move(set);
  } else {
    attr->kind = KindFromName(type);
  }
  if (attr->kind == AttrKind::kNone || attr->kind > AttrKind::kFunc) {
    return InvalidArgument("unknown kind '", type, "'");
  }
  if (list) {
    attr->kind = static_cast<AttrKind>(static_cast<int>(attr->kind) +
                                       static_cast<int>(AttrKind::kIntList) -
                                       static_cast<int>(AttrKind::kInt));
  }
  return OkStatus();
}

// Where the '=' of a default is: outside braces and not part of ">=".
size_t FindDefault(StringView rest) {
  int depth = 0;
  for (size_t i = 0; i < rest.size(); ++i) {
    if (rest[i] == '{' || rest[i] == '(') ++depth;
    if (rest[i] == '}' || rest[i] == ')') --depth;
    if (rest[i] == '=' && depth == 0 && (i == 0 || rest[i - 1] != '>')) {
      return i;
    }
  }
  return StringView::npos;
}

bool IsName(StringView name, bool capital_first, StringView besides) {
  if (name.empty()) return false;
  if (capital_first ? !absl::ascii_isupper(name[0])
                    : !absl::ascii_isalpha(name[0])) {
    return false;
  }
  return std::all_of(name.begin(), name.end(), [&](char c) {
    return absl::ascii_isalnum(c) || besides.find(c) != StringView::npos;
  });
}

// Whether the attributes that `arg` names are of the kinds that it needs.
Status CheckArg(const OpDef& def, const ArgDef& arg) {
  const auto is = [&](const std::string& attr, AttrKind kind) {
    return attr.empty() || def.FindAttr(attr)->kind == kind;
  };
  if (is(arg.type_attr, AttrKind::kType) &&
      is(arg.number_attr, AttrKind::kInt) &&
      is(arg.type_list_attr, AttrKind::kTypeList) &&
      (arg.number_attr.empty() || arg.type_list_attr.empty())) {
    return OkStatus();
  }
  return InvalidArgument("Op ", def.name, ": argument '", arg.name,
                         "' names an attr of another kind: a dtype must be a "
                         "type, a count an int, a list of dtypes a list(type)");
}

}  // namespace

StatusOr<ArgDef> ParseArgSpec(StringView spec) {
  HR_ASSIGN_OR_RETURN(Named parts, SplitName(spec));
  StringView type = parts.rest;
  ArgDef arg;
  arg.name = std::string(parts.name);
  arg.is_ref = Unwrap(&type, "Ref(", ")");
  const size_t star = type.find('*');
  if (star != StringView::npos) {
    arg.number_attr = std::string(Stripped(type.substr(0, star)));
    if (arg.number_attr.empty()) return InvalidArgument("no count before '*'");
    type = Stripped(type.substr(star + 1));
  }
  if (type.empty()) return InvalidArgument("no type");
  // A dtype's name, or an attribute declared later; ResolveArgSpecs tells
  // lists.
  StatusOr<DType> dtype = DTypeFromName(type);
  if (dtype.ok()) {
    arg.type = *dtype;
  } else {
    arg.type_attr = std::string(type);
  }
  return arg;
}

StatusOr<AttrDef> ParseAttrSpec(StringView spec) {
  HR_ASSIGN_OR_RETURN(Named parts, SplitName(spec));
  const StringView rest = parts.rest;
  AttrDef attr;
  attr.name = std::string(parts.name);
  const size_t equals = FindDefault(rest);
  StringView type = Stripped(rest.substr(0, equals));
  const size_t at_least =
      type.empty() || type.back() == '}' ? StringView::npos : type.find(">=");
  if (at_least != StringView::npos) {
    attr.has_minimum = true;
    HR_ASSIGN_OR_RETURN(attr.minimum,
                        ParseInt(Stripped(type.substr(at_least + 2))));
    type = Stripped(type.substr(0, at_least));
  }
  HR_RETURN_IF_ERROR(ParseKind(type, &attr));
  if (equals != StringView::npos) {
    attr.has_default = true;
    HR_ASSIGN_OR_RETURN(
        attr.default_value,
        ParseDefault(attr.kind, Stripped(rest.substr(equals + 1))));
  }
  return attr;
}

Status ResolveArgSpecs(OpDef* def) {
  for (auto* args : {&def->inputs, &def->outputs}) {
    for (ArgDef& arg : *args) {
      for (const std::string& name : {arg.type_attr, arg.number_attr}) {
        if (!name.empty() && def->FindAttr(name) == nullptr) {
          return InvalidArgument("Op ", def->name, ": argument '", arg.name,
                                 "' names '", name,
                                 "', which is no dtype and no declared attr");
        }
      }
      if (arg.type_attr.empty()) continue;
      if (def->FindAttr(arg.type_attr)->kind == AttrKind::kTypeList) {
        arg.type_list_attr = std::move(arg.type_attr);
        arg.type_attr.clear();
      }
    }
  }
  return OkStatus();
}

Status CheckUsersOp(OpDef* def) {
  if (!IsName(def->name, true, "_>")) {
    return InvalidArgument("Invalid name: ", def->name,
                           " (Did you use CamelCase?)");
  }
  std::set<std::string> names;
  const auto take = [&](const std::string& name, StringView what) {
    if (!IsName(name, false, "_")) {
      return InvalidArgument("Op ", def->name, ": '", name,
                             "' cannot be the name of an ", what);
    }
    return names.insert(name).second
               ? OkStatus()
               : InvalidArgument("Op ", def->name, ": the name '", name,
                                 "' is given twice");
  };
  for (const AttrDef& a : def->attrs) HR_RETURN_IF_ERROR(take(a.name, "attr"));
  for (const ArgDef& a : def->inputs) HR_RETURN_IF_ERROR(take(a.name, "input"));
  names.clear();  // an output may be called as an input is
  for (const ArgDef& a : def->outputs) {
    HR_RETURN_IF_ERROR(take(a.name, "output"));
  }
  for (const auto* args : {&def->inputs, &def->outputs}) {
    for (const ArgDef& arg : *args) {
      HR_RETURN_IF_ERROR(CheckArg(*def, arg));
      for (AttrDef& attr : def->attrs) {
        const bool counts =
            attr.name == arg.number_attr || attr.name == arg.type_list_attr;
        if (counts && !attr.has_minimum) {
          attr.has_minimum = true;
          attr.minimum = 1;
        }
      }
    }
  }
  return OkStatus();
}

}  // namespace headrace
