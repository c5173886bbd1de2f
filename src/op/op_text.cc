#include "op/op_text.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"

namespace headrace {
namespace {

std::string EnumName(DType d) {
  return absl::StrCat("DT_", absl::AsciiStrToUpper(DTypeName(d)));
}

std::string Quoted(const std::string& s) { return absl::StrCat("\"", s, "\""); }

std::string ArgText(const ArgDef& a) {
  // Lists of types have none of their own to show.
  std::string type = !a.type_list_attr.empty() ? ""
                     : !a.type_attr.empty()    ? a.type_attr
                                               : std::string(DTypeName(a.type));
  if (!a.number_attr.empty()) type = absl::StrCat(a.number_attr, "*", type);
  if (a.is_ref) type = absl::StrCat("Ref(", type, ")");
  return absl::StrCat(a.name, ":", type);
}

std::string ArgsText(const std::vector<ArgDef>& args) {
  return absl::StrJoin(args, ", ", [](std::string* out, const ArgDef& a) {
    out->append(ArgText(a));
  });
}

// Values of attributes, in upstream's text.
struct DefaultText {
  std::string operator()(const auto& v) const {
    return AttrToString(AttrValue(v));
  }
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(const std::string& v) const { return Quoted(v); }
  std::string operator()(DType v) const { return EnumName(v); }
  std::string operator()(const Shape& v) const { return v.ToString(); }
  std::string operator()(const std::vector<int64_t>& v) const {
    return absl::StrCat("[", absl::StrJoin(v, ", "), "]");
  }
  std::string operator()(const std::vector<DType>& v) const {
    return absl::StrCat("[", TypesText(v), "]");
  }
  std::string operator()(const std::vector<Shape>& v) const {
    return absl::StrCat("[",
                        absl::StrJoin(v, ", ",
                                      [](std::string* out, const Shape& s) {
                                        out->append(s.ToString());
                                      }),
                        "]");
  }
  std::string operator()(const Tensor& v) const {
    return absl::StrCat("Tensor<type: ", DTypeName(v.dtype()),
                        " shape: ", v.shape().ToString(), ">");
  }
  std::string operator()(std::monostate) const { return ""; }
  static std::string TypesText(const std::vector<DType>& types) {
    return absl::StrJoin(types, ", ", [](std::string* out, DType d) {
      out->append(EnumName(d));
    });
  }
};

std::string AttrText(const AttrDef& a) {
  std::string out = absl::StrCat("; attr=", a.name, ":", AttrKindName(a.kind));
  if (a.has_default) {
    absl::StrAppend(&out, ",default=", AttrValueText(a.default_value));
  }
  if (a.has_minimum) absl::StrAppend(&out, ",min=", a.minimum);
  if (!a.allowed_types.empty()) {
    absl::StrAppend(&out, ",allowed=[", DefaultText::TypesText(a.allowed_types),
                    "]");
  } else if (!a.allowed_strings.empty()) {
    absl::StrAppend(&out, ",allowed=[\"",
                    absl::StrJoin(a.allowed_strings, "\", \""), "\"]");
  }
  return out;
}

}  // namespace

std::string AttrValueText(const AttrValue& v) {
  return std::visit(DefaultText{}, static_cast<const AttrValue::variant&>(v));
}

std::string OpDefSummary(const OpDef& def) {
  std::string out =
      absl::StrCat("Op<name=", def.name, "; signature=", ArgsText(def.inputs),
                   " -> ", ArgsText(def.outputs));
  for (const AttrDef& a : def.attrs) out += AttrText(a);
  if (def.is_commutative) out += "; is_commutative=true";
  if (def.is_aggregate) out += "; is_aggregate=true";
  if (def.is_stateful) out += "; is_stateful=true";
  if (def.allows_uninitialized) out += "; allows_uninitialized_input=true";
  if (def.is_distributed) out += "; is_distributed_communication=true";
  return out + ">";
}

}  // namespace headrace
