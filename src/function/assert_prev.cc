// AssertPrevDataset: checks what comes before in a pipeline.
#include "absl/strings/strip.h"
#include "data/dataset_op.h"
#include "formats/proto_text.h"
#include "graph/attr_proto.h"
#include "op/registry.h"
#include "tensorflow/core/framework/attr_value.pb.h"

namespace headrace {
namespace {

using tensorflow::NameAttrList;

std::string ShortText(const AttrValue& value) {
  tensorflow::AttrValue proto;
  if (!AttrToProto(value, &proto).ok()) return "";
  return proto.ShortDebugString();
}

// Whether the call that made the dataset has the attribute with that value.
Status CheckAttr(const Dataset& dataset, const std::string& name,
                 const tensorflow::AttrValue& wanted) {
  const DatasetCall* call = dataset.call();
  const AttrValue* found = call == nullptr ? nullptr : call->attrs.Find(name);
  if (found == nullptr) {
    return InvalidArgument("Asserted attribute '", name,
                           "' having a value of '", wanted.ShortDebugString(),
                           "', but found no such attribute defined.");
  }
  const AttrDef* attr = call->op->FindAttr(name);
  const StatusOr<AttrValue> value =
      AttrFromProto(wanted, attr ? attr->kind : AttrKind::kNone);
  if (value.ok() && AttrEquals(*value, *found)) return OkStatus();
  return InvalidArgument("Asserted attribute '", name, "' having a value of '",
                         wanted.ShortDebugString(), "', but found value of '",
                         ShortText(*found), "'.");
}

// Whether `found` is that op, of any version.
bool IsOp(StringView wanted, StringView found) {
  if (!absl::ConsumePrefix(&found, wanted)) return false;
  if (found.empty()) return true;
  return absl::ConsumePrefix(&found, "V") && !found.empty() &&
         found.find_first_not_of("0123456789") == StringView::npos;
}

// Whether a dataset is what a text says: its op, the version left open, and
// attributes.
Status CheckDataset(const Dataset& dataset, const std::string& text) {
  NameAttrList wanted;
  if (ReadProtoText(text, &wanted).has_value()) {
    return InvalidArgument("Couldn't parse transformation '", text, "'.");
  }
  const std::string name = dataset.call()
                               ? dataset.call()->op->name
                               : absl::StrCat(dataset.kind(), "Dataset");
  if (!IsOp(wanted.name(), name)) {
    return InvalidArgument("Asserted transformation matching '", wanted.name(),
                           "', but found '", name, "'.");
  }
  for (const auto& [attr, value] : wanted.attr()) {
    HR_RETURN_IF_ERROR(CheckAttr(dataset, attr, value));
  }
  return OkStatus();
}

// The input; walks begin only where what is behind it is what the texts say,
// the nearest first.
class AssertPrevDataset : public InputDataset {
 public:
  AssertPrevDataset(ElementSpec spec, DatasetPtr input,
                    std::vector<std::string> wanted)
      : InputDataset(std::move(spec), std::move(input)),
        wanted_(std::move(wanted)) {}
  StringView kind() const override { return "AssertPrev"; }

  class Iterator : public KeptInputIterator<AssertPrevDataset> {
   public:
    using KeptInputIterator::KeptInputIterator;
    Status Start(PullContext& c) override {
      HR_RETURN_IF_ERROR(Check(c));
      return KeptInputIterator::Start(c);
    }
    Status Next(PullContext& c, Element* out, bool* end) override {
      return NextInput(c, out, end);
    }

   private:
    Status Check(PullContext& c) {
      const auto& wanted = dataset().wanted_;
      DatasetPtr at = dataset().inputs()[0];
      for (size_t i = 0; i < wanted.size(); ++i) {
        if (!at) {
          return InvalidArgument("Asserted previous ", wanted.size(),
                                 " transformations but encountered only ", i,
                                 ".");
        }
        at = at->Resolved(c);
        const Status s = CheckDataset(*at, wanted[i]);
        if (!s.ok()) {
          return InvalidArgument("Failure checking transformations at offset ",
                                 i, ": ", s.message());
        }
        const auto inputs = at->inputs();
        at = inputs.empty() ? nullptr : inputs[0];
      }
      return OkStatus();
    }
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const std::vector<std::string> wanted_;
};

Status MakeAssertPrev(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  if (c.input(1).rank() != 1) {
    return InvalidArgument("transformations must be a vector");
  }
  HR_ASSIGN_OR_RETURN(auto wanted, TextsInput(c, 1, "transformations"));
  return SetDataset<AssertPrevDataset>(c, std::move(spec), std::move(input),
                                       std::move(wanted));
}

HR_OP(AssertPrevDataset)
    .Input("input_dataset: variant")
    .Input("transformations: string")
    .Output("handle: variant")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Doc("The input; walks fail unless these transformations come before it.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeAssertPrev>);

}  // namespace
}  // namespace headrace
