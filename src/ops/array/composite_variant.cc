// CompositeTensorVariantFromComponents and its way back: the tensors of a
// composite one (ragged, sparse, ...) and its type in a variant.
#include "op/op.h"
#include "tensor/variant.h"
#include "tensorflow/core/protobuf/composite_tensor_variant.pb.h"

namespace headrace {
namespace {

using tensorflow::TypeSpecProto;

class CompositeVariant : public VariantValue {
 public:
  CompositeVariant(TypeSpecProto type, std::vector<Tensor> components)
      : type_(std::move(type)), components_(std::move(components)) {}
  StringView type_name() const override { return "CompositeTensorVariant"; }
  const TypeSpecProto& type() const { return type_; }
  const std::vector<Tensor>& components() const { return components_; }

 private:
  const TypeSpecProto type_;
  const std::vector<Tensor> components_;
};

StatusOr<TypeSpecProto> TypeOf(const ResolvedOp& op) {
  tensorflow::CompositeTensorVariantMetadata metadata;
  if (!metadata.ParseFromString(op.string_attr("metadata"))) {
    return InvalidArgument("Error parsing `metadata`");
  }
  return metadata.type_spec_proto();
}

Status FromComponents(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(TypeSpecProto type, TypeOf(c.op()));
  std::vector<Tensor> components;
  for (int i = 0; i < c.num_inputs(); ++i) components.push_back(c.input(i));
  c.set_output(0,
               Tensor::Scalar(Variant(std::make_shared<const CompositeVariant>(
                   std::move(type), std::move(components)))));
  return OkStatus();
}

std::string ClassName(const TypeSpecProto& type) {
  return TypeSpecProto::TypeSpecClass_Name(type.type_spec_class());
}

Status ToComponents(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const TypeSpecProto type, TypeOf(c.op()));
  if (c.input(0).num_elements() != 1) {
    return InvalidArgument("`encoded` must hold one variant, got shape ",
                           c.input(0).shape());
  }
  const auto* encoded = c.input(0).scalar<Variant>().get<CompositeVariant>();
  if (encoded == nullptr) {
    return InvalidArgument(
        "The input `encoded` does not contain a "
        "CompositeTensorVariant, but ",
        c.input(0).scalar<Variant>().DebugString());
  }
  if (encoded->type().type_spec_class() != type.type_spec_class()) {
    return InvalidArgument("Expected a ", ClassName(type),
                           " (based on "
                           "`type_spec`), but `encoded` contains a ",
                           ClassName(encoded->type()));
  }
  const std::vector<Tensor>& parts = encoded->components();
  if (static_cast<int>(parts.size()) != c.num_outputs()) {
    return InvalidArgument("Encoded value has ", parts.size(),
                           " tensor components; expected ", c.num_outputs(),
                           " components based on type_spec");
  }
  for (int i = 0; i < c.num_outputs(); ++i) {
    if (parts[i].dtype() != c.op().output_types()[i]) {
      return InvalidArgument("Tensor component ", i, " had dtype ",
                             DTypeName(parts[i].dtype()), "; expected dtype ",
                             DTypeName(c.op().output_types()[i]));
    }
    c.set_output(i, parts[i]);
  }
  return OkStatus();
}

HR_OP(CompositeTensorVariantFromComponents)
    .Input("components: Tcomponents")
    .Output("encoded: variant")
    .Attr("metadata: string")
    .Attr("Tcomponents: list(type) >= 0")
    .Doc("Puts the tensors of a composite one into a variant.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<FromComponents>);

HR_OP(CompositeTensorVariantToComponents)
    .Input("encoded: variant")
    .Output("components: Tcomponents")
    .Attr("metadata: string")
    .Attr("Tcomponents: list(type) >= 0")
    .Doc("The tensors of a composite one that a variant holds.")
    .Shape(UnknownShape)
    .Cpu(ComputeOwn<ToComponents>);

}  // namespace
}  // namespace headrace
