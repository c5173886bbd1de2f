// What a model brought along and may read, whatever its sandbox says of others.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/sandbox.h"

namespace headrace {

// While it lives, the files of the checkpoint "variables/variables" of the
// model in `folder` may be read in the sandboxes that the thread was in; those
// of `assets`, paths, from then on. Nothing outside of sandboxes.
class ModelFiles {
 public:
  // PermissionDenied for assets that do not really lie in the folder; those
  // that are not there are passed over.
  static StatusOr<ModelFiles> Permit(const std::string& folder,
                                     absl::Span<const std::string> assets);
  void End() { held_.clear(); }

 private:
  // The sandboxes outlive what is held of them.
  std::vector<SandboxPtr> sandboxes_;
  std::vector<std::shared_ptr<void>> held_;
};

}  // namespace headrace
