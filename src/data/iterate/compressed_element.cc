// CompressElement and UncompressElement: an element packed into a variant.
#include "data/dataset_op.h"
#include "data/element_codec.h"
#include "formats/snappy.h"

namespace headrace {
namespace {

// The bytes of data/element_codec.h, packed.
class PackedElement : public VariantValue {
 public:
  explicit PackedElement(std::string bytes) : bytes_(std::move(bytes)) {}
  StringView type_name() const override {
    return "tensorflow::data::CompressedElement";
  }
  const std::string& bytes() const { return bytes_; }

 private:
  const std::string bytes_;
};

Status Compress(KernelContext& c) {
  Element element;
  for (int i = 0; i < c.num_inputs(); ++i) element.push_back(c.input(i));
  std::string bytes, packed;
  HR_RETURN_IF_ERROR(EncodeElement(element, &bytes));
  SnappyPack(bytes, &packed);
  c.set_output(0, Tensor::Scalar(
                      Variant(std::make_shared<const PackedElement>(packed))));
  return OkStatus();
}

Status Uncompress(KernelContext& c) {
  const Tensor& in = c.input(0);
  if (in.rank() != 0) {
    return InvalidArgument("UncompressElement requires its input to be a ",
                           "scalar, but encountered an input with ", in.rank(),
                           " dimensions.");
  }
  const auto* packed = in.scalar<Variant>().get<PackedElement>();
  if (packed == nullptr) {
    return InvalidArgument("Input does not contain a compressed element. ",
                           "Instead got tensor ",
                           in.scalar<Variant>().DebugString());
  }
  std::string bytes;
  if (!SnappyUnpack(packed->bytes(), &bytes)) {
    return Internal("a compressed element cannot be unpacked");
  }
  HR_ASSIGN_OR_RETURN(Element element, DecodeElement(bytes));
  if (static_cast<int>(element.size()) != c.num_outputs()) {
    return FailedPrecondition("Expected ", c.num_outputs(),
                              " outputs from uncompress, but got ",
                              element.size());
  }
  for (int i = 0; i < c.num_outputs(); ++i) {
    const DType wanted = c.op().output_types()[i];
    if (element[i].dtype() == wanted) continue;
    return FailedPrecondition("Expected a tensor of type ", DTypeName(wanted),
                              " but got a tensor of type ",
                              DTypeName(element[i].dtype()));
  }
  return SetElement(c, std::move(element));
}

HR_OP(CompressElement)
    .Input("components: input_types")
    .Output("compressed: variant")
    .Attr("input_types: list(type) >= 1")
    .Doc("Packs an element of a dataset.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<Compress>);

HR_OP(UncompressElement)
    .Input("compressed: variant")
    .Output("components: output_types")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Doc("Unpacks an element of a dataset.")
    .Shape(ElementRule)
    .Cpu(ComputeOwn<Uncompress>);

}  // namespace
}  // namespace headrace
