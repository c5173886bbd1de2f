// Op definitions as protos.
#include "graph/attr_proto.h"
#include "tensor/dtype_proto.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/op_def.pb.h"

namespace headrace {
namespace {

void ArgToProto(const ArgDef& arg, tensorflow::OpDef::ArgDef* p) {
  p->set_name(arg.name);
  if (!arg.type_list_attr.empty()) {
    p->set_type_list_attr(arg.type_list_attr);
  } else if (!arg.type_attr.empty()) {
    p->set_type_attr(arg.type_attr);
  } else {
    p->set_type(TypeToProto(arg.type));
  }
  if (!arg.number_attr.empty()) p->set_number_attr(arg.number_attr);
  p->set_is_ref(arg.is_ref);
}

Status AttrDefToProto(const AttrDef& attr, tensorflow::OpDef::AttrDef* p) {
  p->set_name(attr.name);
  p->set_type(std::string(AttrKindName(attr.kind)));
  if (attr.has_default) {
    HR_RETURN_IF_ERROR(
        AttrToProto(attr.default_value, p->mutable_default_value()));
  }
  for (DType d : attr.allowed_types) {
    p->mutable_allowed_values()->mutable_list()->add_type(TypeToProto(d));
  }
  for (const std::string& s : attr.allowed_strings) {
    p->mutable_allowed_values()->mutable_list()->add_s(s);
  }
  if (attr.has_minimum) {
    p->set_has_minimum(true);
    p->set_minimum(attr.minimum);
  }
  return OkStatus();
}

}  // namespace

Status OpDefToProto(const OpDef& def, tensorflow::OpDef* p) {
  p->set_name(def.name);
  for (const ArgDef& arg : def.inputs) ArgToProto(arg, p->add_input_arg());
  for (const ArgDef& arg : def.outputs) ArgToProto(arg, p->add_output_arg());
  for (const AttrDef& attr : def.attrs) {
    HR_RETURN_IF_ERROR(AttrDefToProto(attr, p->add_attr()));
  }
  p->set_is_stateful(def.is_stateful);
  p->set_is_commutative(def.is_commutative);
  p->set_is_aggregate(def.is_aggregate);
  p->set_allows_uninitialized_input(def.allows_uninitialized);
  if (def.deprecation.version) {
    p->mutable_deprecation()->set_version(def.deprecation.version);
    p->mutable_deprecation()->set_explanation(def.deprecation.explanation);
  }
  return OkStatus();
}

}  // namespace headrace
