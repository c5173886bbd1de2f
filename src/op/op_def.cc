#include "op/op_def.h"

#include <cstdio>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "op/registry.h"

namespace headrace {
namespace {

[[noreturn]] void Mistake(const OpDef& def, StringView spec, StringView why) {
  std::fprintf(stderr, "headrace: definition of op %s: '%.*s': %.*s\n",
               def.name.c_str(), static_cast<int>(spec.size()), spec.data(),
               static_cast<int>(why.size()), why.data());
  // At start-up, before anything runs: a definition is our own source, and no
  // caller could do anything about it.
  std::abort();
}

// Splits "name: rest" in two, stripped.
std::pair<StringView, StringView> SplitName(const OpDef& def, StringView spec) {
  size_t colon = spec.find(':');
  if (colon == StringView::npos) Mistake(def, spec, "no ':'");
  return {absl::StripAsciiWhitespace(spec.substr(0, colon)),
          absl::StripAsciiWhitespace(spec.substr(colon + 1))};
}

ArgDef ParseArg(const OpDef& def, StringView spec) {
  auto [name, type] = SplitName(def, spec);
  ArgDef arg;
  arg.name = std::string(name);
  if (absl::ConsumePrefix(&type, "Ref(")) {
    absl::ConsumeSuffix(&type, ")");
    arg.is_ref = true;
  }
  size_t star = type.find('*');
  if (star != StringView::npos) {
    arg.number_attr =
        std::string(absl::StripAsciiWhitespace(type.substr(0, star)));
    type = absl::StripAsciiWhitespace(type.substr(star + 1));
  }
  // A dtype's name, or an attribute declared later; Register tells lists.
  StatusOr<DType> dtype = DTypeFromName(type);
  if (dtype.ok()) {
    arg.type = *dtype;
  } else {
    arg.type_attr = std::string(type);
  }
  return arg;
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

// "{a, b}" or "{'x', 'y'}" into the allowed values of `attr`.
void ParseAllowed(const OpDef& def, StringView spec, StringView inside,
                  AttrDef* attr) {
  for (StringView part : absl::StrSplit(inside, ',')) {
    part = absl::StripAsciiWhitespace(part);
    if (absl::ConsumePrefix(&part, "'")) {
      absl::ConsumeSuffix(&part, "'");
      attr->allowed_strings.emplace_back(part);
      attr->kind = AttrKind::kString;
      continue;
    }
    auto set = NamedTypes(part);
    if (set.empty()) {
      StatusOr<DType> dtype = DTypeFromName(part);
      if (!dtype.ok()) Mistake(def, spec, dtype.status().message());
      set = {*dtype};
    }
    attr->allowed_types.insert(attr->allowed_types.end(), set.begin(),
                               set.end());
    attr->kind = AttrKind::kType;
  }
}

std::vector<StringView> ListItems(StringView text) {
  absl::ConsumePrefix(&text, "[");
  absl::ConsumeSuffix(&text, "]");
  std::vector<StringView> items;
  if (absl::StripAsciiWhitespace(text).empty()) return items;
  for (StringView part : absl::StrSplit(text, ',')) {
    items.push_back(absl::StripAsciiWhitespace(part));
  }
  return items;
}

StringView Unquote(StringView s) {
  if (s.size() >= 2 && (s.front() == '\'' || s.front() == '"')) {
    return s.substr(1, s.size() - 2);
  }
  return s;
}

Shape ParseShape(StringView text) {
  if (text == "unknown" || text == "{ unknown_rank: true }") {
    return Shape::UnknownRank();
  }
  Shape s;
  if (text == "{}") return s;
  for (StringView item : ListItems(text)) {
    int64_t d = -1;
    if (!absl::SimpleAtoi(item, &d)) d = -1;
    s.AddDim(d);
  }
  return s;
}

// The default value written after '='.
AttrValue ParseDefault(const OpDef& def, StringView spec, AttrKind kind,
                       StringView text) {
  auto number = [&](StringView t) {
    int64_t v = 0;
    if (!absl::SimpleAtoi(t, &v)) Mistake(def, spec, "not an int");
    return v;
  };
  auto real = [&](StringView t) {
    float v = 0;
    if (!absl::SimpleAtof(t, &v)) Mistake(def, spec, "not a float");
    return v;
  };
  auto dtype = [&](StringView t) {
    absl::ConsumePrefix(&t, "DT_");
    StatusOr<DType> d = DTypeFromName(absl::AsciiStrToLower(t));
    if (!d.ok()) Mistake(def, spec, "not a dtype");
    return *d;
  };
  switch (kind) {
    case AttrKind::kInt:
      return number(text);
    case AttrKind::kFloat:
      return real(text);
    case AttrKind::kBool:
      return text == "true";
    case AttrKind::kString:
      return std::string(Unquote(text));
    case AttrKind::kType:
      return dtype(text);
    case AttrKind::kShape:
      return ParseShape(text);
    case AttrKind::kTensor: {  // "uint8 [255, 0, 0, 255]"
      if (!absl::ConsumePrefix(&text, "uint8 "))
        Mistake(def, spec, "not uint8");
      std::vector<uint8_t> v;
      for (StringView i : ListItems(text)) {
        v.push_back(static_cast<uint8_t>(number(i)));
      }
      return Tensor::Vector<uint8_t>(v);
    }
    case AttrKind::kFunc:
      return FuncRef{std::string(Unquote(text)), nullptr};
    case AttrKind::kIntList: {
      std::vector<int64_t> v;
      for (StringView i : ListItems(text)) v.push_back(number(i));
      return v;
    }
    case AttrKind::kFloatList: {
      std::vector<float> v;
      for (StringView i : ListItems(text)) v.push_back(real(i));
      return v;
    }
    case AttrKind::kBoolList: {
      std::vector<bool> v;
      for (StringView i : ListItems(text)) v.push_back(i == "true");
      return v;
    }
    case AttrKind::kStringList: {
      std::vector<std::string> v;
      for (StringView i : ListItems(text)) v.emplace_back(Unquote(i));
      return v;
    }
    case AttrKind::kTypeList: {
      std::vector<DType> v;
      for (StringView i : ListItems(text)) v.push_back(dtype(i));
      return v;
    }
    case AttrKind::kShapeList:
      return std::vector<Shape>();
    case AttrKind::kTensorList:
      return std::vector<Tensor>();
    case AttrKind::kFuncList:
      return std::vector<FuncRef>();
    default:
      Mistake(def, spec, "this kind takes no default");
  }
}

// The part before constraints: the kind, or a set of values.
void ParseKind(const OpDef& def, StringView spec, StringView type,
               AttrDef* attr) {
  bool list = absl::ConsumePrefix(&type, "list(");
  if (list) absl::ConsumeSuffix(&type, ")");
  if (absl::ConsumePrefix(&type, "{")) {
    absl::ConsumeSuffix(&type, "}");
    ParseAllowed(def, spec, type, attr);
  } else if (auto set = NamedTypes(type); !set.empty()) {
    attr->kind = AttrKind::kType;
    attr->allowed_types = set;
  } else {
    attr->kind = KindFromName(type);
  }
  if (attr->kind == AttrKind::kNone) Mistake(def, spec, "unknown kind");
  if (list) {
    attr->kind = static_cast<AttrKind>(static_cast<int>(attr->kind) +
                                       static_cast<int>(AttrKind::kIntList) -
                                       static_cast<int>(AttrKind::kInt));
  }
}

AttrDef ParseAttr(const OpDef& def, StringView spec) {
  auto [name, rest] = SplitName(def, spec);
  AttrDef attr;
  attr.name = std::string(name);
  // '=' of a default is outside braces and not part of ">=".
  size_t equals = StringView::npos;
  int depth = 0;
  for (size_t i = 0; i < rest.size(); ++i) {
    if (rest[i] == '{' || rest[i] == '(') ++depth;
    if (rest[i] == '}' || rest[i] == ')') --depth;
    if (rest[i] == '=' && depth == 0 && (i == 0 || rest[i - 1] != '>')) {
      equals = i;
      break;
    }
  }
  StringView type = absl::StripAsciiWhitespace(rest.substr(0, equals));
  size_t at_least = type.find(">=");
  if (at_least != StringView::npos) {
    attr.has_minimum = true;
    if (!absl::SimpleAtoi(type.substr(at_least + 2), &attr.minimum)) {
      Mistake(def, spec, "minimum is not an int");
    }
    type = absl::StripAsciiWhitespace(type.substr(0, at_least));
  }
  ParseKind(def, spec, type, &attr);
  if (equals != StringView::npos) {
    attr.has_default = true;
    attr.default_value =
        ParseDefault(def, spec, attr.kind,
                     absl::StripAsciiWhitespace(rest.substr(equals + 1)));
  }
  return attr;
}

uint32_t Mask(std::initializer_list<int> bits) {
  uint32_t mask = 0;
  for (int b : bits) mask |= 1u << b;
  return mask;
}

}  // namespace

const AttrDef* OpDef::FindAttr(StringView attr) const {
  for (const AttrDef& a : attrs) {
    if (a.name == attr) return &a;
  }
  return nullptr;
}

int OpDef::FindInput(StringView input) const {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].name == input) return static_cast<int>(i);
  }
  return -1;
}

bool OpDef::IsInferred(StringView attr) const {
  for (const ArgDef& a : inputs) {
    if (a.type_attr == attr || a.number_attr == attr ||
        a.type_list_attr == attr) {
      return true;
    }
  }
  return false;
}

OpBuilder::OpBuilder(const char* name) { def_.name = name; }
OpBuilder& OpBuilder::Input(const char* spec) {
  def_.inputs.push_back(ParseArg(def_, spec));
  return *this;
}
OpBuilder& OpBuilder::Output(const char* spec) {
  def_.outputs.push_back(ParseArg(def_, spec));
  return *this;
}
OpBuilder& OpBuilder::Attr(const char* spec) {
  def_.attrs.push_back(ParseAttr(def_, spec));
  return *this;
}
OpBuilder& OpBuilder::Doc(const char* text) {
  def_.doc = std::string(absl::StripAsciiWhitespace(text));
  return *this;
}
OpBuilder& OpBuilder::Stateful() {
  def_.is_stateful = true;
  return *this;
}
OpBuilder& OpBuilder::Commutative() {
  def_.is_commutative = true;
  return *this;
}
OpBuilder& OpBuilder::Aggregate() {
  def_.is_aggregate = true;
  return *this;
}
OpBuilder& OpBuilder::AllowsUninitialized() {
  def_.allows_uninitialized = true;
  return *this;
}
OpBuilder& OpBuilder::Role(OpRole role) {
  def_.role = role;
  return *this;
}

OpBuilder& OpBuilder::Traits(std::initializer_list<OpTrait> traits) {
  for (OpTrait t : traits) def_.traits.Add(t);
  return *this;
}

OpBuilder& OpBuilder::ValueOfShape(ValueOfShapeFn fn) {
  def_.value_of_shape = fn;
  return *this;
}

OpBuilder& OpBuilder::PartialSizes(PartialSizesFn fn) {
  def_.partial_sizes = fn;
  return *this;
}

OpBuilder& OpBuilder::Simplify(SimplifyFn fn) {
  def_.simplify = fn;
  return *this;
}
OpBuilder& OpBuilder::Vectorize(VectorizeFn fn) {
  def_.vectorize = fn;
  return *this;
}

OpBuilder& OpBuilder::RawName(const char* arg, const char* raw) {
  def_.raw_names.emplace_back(arg, raw);
  return *this;
}

OpBuilder& OpBuilder::Deprecated(int version, const char* explanation) {
  def_.deprecation = {version, explanation};
  return *this;
}
OpBuilder& OpBuilder::Shape(ShapeFn fn) {
  def_.shape_fn = fn;
  return *this;
}
OpBuilder& OpBuilder::Gradient(GradientFn fn) {
  def_.gradient_fn = fn;
  def_.gradient_kind = GradientKind::kFunction;
  return *this;
}
OpBuilder& OpBuilder::GradientSkips(std::initializer_list<int> inputs,
                                    std::initializer_list<int> outputs) {
  def_.gradient_skips_inputs = Mask(inputs);
  def_.gradient_skips_outputs = Mask(outputs);
  return *this;
}
OpBuilder& OpBuilder::NoGradient() {
  def_.gradient_kind = GradientKind::kNotDifferentiable;
  return *this;
}
OpBuilder& OpBuilder::Cpu(KernelFactory factory) {
  def_.cpu_kernel = factory;
  return *this;
}
OpBuilder& OpBuilder::View(int input) {
  def_.view_input = input;
  return *this;
}
OpBuilder& OpBuilder::InPlace(std::initializer_list<int> inputs) {
  def_.in_place_inputs = Mask(inputs);
  return *this;
}

OpBuilder& OpBuilder::Register() {
  for (auto* args : {&def_.inputs, &def_.outputs}) {
    for (ArgDef& arg : *args) {
      for (const std::string& name : {arg.type_attr, arg.number_attr}) {
        if (!name.empty() && def_.FindAttr(name) == nullptr) {
          Mistake(def_, arg.name, "names an attr that is not declared");
        }
      }
      if (arg.type_attr.empty()) continue;
      if (def_.FindAttr(arg.type_attr)->kind == AttrKind::kTypeList) {
        arg.type_list_attr = std::move(arg.type_attr);
        arg.type_attr.clear();
      }
    }
  }
  internal::AddOp(std::move(def_));
  return *this;
}

}  // namespace headrace
