#include "train/whole_node.h"

#include "absl/strings/match.h"

namespace headrace {

StatusOr<std::shared_ptr<WholeNode>> WholeNode::Of(
    std::vector<TrackablePtr> parts) {
  auto made = std::make_shared<WholeNode>();
  int64_t rows = 0;
  for (const TrackablePtr& part : parts) {
    HR_ASSIGN_OR_RETURN(const auto specs, part->Specs());
    if (specs.size() != 1 || specs[0].name != kVariableValue) {
      return InvalidArgument("a part of a variable that is no variable");
    }
    ValueSpec spec = specs[0];
    const bool has_rows = spec.shape.fully_known() && spec.shape.rank() > 0;
    Shape whole = spec.shape;
    if (has_rows && !made->specs_.empty()) {
      const ValueSpec& first = made->specs_[0];
      whole.set_dim(0, first.shape.dim(0));
      if (spec.dtype != first.dtype) whole = Shape();
      if (whole != first.shape) whole = Shape();
    }
    if (!has_rows || whole.rank() == 0) {
      return InvalidArgument("parts of a variable that are not alike: one is ",
                             DTypeName(spec.dtype), " ", spec.shape);
    }
    spec.slice = TensorSlice::Whole(spec.shape.rank());
    spec.slice->extents[0] = {rows, spec.shape.dim(0)};
    rows += spec.shape.dim(0);
    made->specs_.push_back(std::move(spec));
  }
  if (parts.empty()) return InvalidArgument("a variable without parts");
  std::string name = made->specs_[0].full_name;
  if (absl::EndsWith(name, kFirstPart)) {
    name.resize(name.size() - kFirstPart.size());
  }
  for (ValueSpec& spec : made->specs_) {
    spec.full_name = name;
    spec.whole = spec.shape;
    spec.whole.set_dim(0, rows);
    if (parts.size() == 1) spec.slice.reset();
  }
  for (const TrackablePtr& part : parts) part->whole_ = made;
  made->parts_ = std::move(parts);
  return made;
}

StatusOr<std::vector<Tensor>> WholeNode::Read() const {
  std::vector<Tensor> values;
  for (const TrackablePtr& part : parts_) {
    HR_ASSIGN_OR_RETURN(auto own, part->Read());
    values.push_back(std::move(own[0]));
  }
  return values;
}

Status WholeNode::Write(absl::Span<const Tensor> values) {
  for (size_t i = 0; i < parts_.size(); ++i) {
    HR_RETURN_IF_ERROR(parts_[i]->Write(values.subspan(i, 1)));
  }
  return OkStatus();
}

}  // namespace headrace
