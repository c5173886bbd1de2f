#include "base/model_files.h"

namespace headrace {

StatusOr<ModelFiles> ModelFiles::Permit(const std::string& folder,
                                        absl::Span<const std::string> assets) {
  ModelFiles files;
  for (auto* s = InnermostSandbox(); s; s = s->outer()) {
    const SandboxPtr& box = s->sandbox();
    files.sandboxes_.push_back(box);
    files.held_.push_back(box->PermitPrefix(folder, "variables", "variables"));
    for (const std::string& path : assets) {
      const Status status = box->PermitFile(folder, path);
      if (!status.ok() && !absl::IsNotFound(status)) return status;
    }
  }
  return files;
}

}  // namespace headrace
