// A variable that is kept in parts, each some rows of it, as one object of the
// graph: its value is one tensor, in slices, which a program reads whole, or
// into as many parts as it has.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "train/trackable.h"

namespace headrace {

class WholeNode : public Trackable {
 public:
  // The parts, of which the first has the first rows, are such from here on.
  // Each has one value, a variable's; they are alike but in their number of
  // rows, else InvalidArgument. The whole's full name is that of its first part
  // without kFirstPart.
  static StatusOr<std::shared_ptr<WholeNode>> Of(
      std::vector<TrackablePtr> parts);
  static constexpr StringView kFirstPart = "/part_0";

  const std::vector<TrackablePtr>& parts() const { return parts_; }

  StatusOr<std::vector<ValueSpec>> Specs() const override { return specs_; }
  bool has_values() const override { return true; }
  StatusOr<std::vector<Tensor>> Read() const override;
  Status Write(absl::Span<const Tensor> values) override;

 private:
  std::vector<TrackablePtr> parts_;
  std::vector<ValueSpec> specs_;  // one a part
};

}  // namespace headrace
