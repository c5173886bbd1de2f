#include "base/files/remote_file_system.h"

#include "base/sandbox.h"

namespace headrace {

Status ShowToReaders(WritableFile* file) {
  const bool remote = dynamic_cast<RemoteWritableFile*>(file) != nullptr;
  return remote ? file->Sync() : OkStatus();
}

Status CheckRemoteFile(StringView path, bool write) {
  HR_RETURN_IF_ERROR(CheckSandboxFile(path, write));
  for (auto* s = InnermostSandbox(); s != nullptr; s = s->outer()) {
    const Sandbox& box = *s->sandbox();
    if (box.policy().allowed.Has(Reach::kNetwork)) continue;
    return PermissionDenied("safe mode: ", box.whose(),
                            " may not use the file '", path,
                            "' of another machine (allow \"",
                            WordOf(Reach::kNetwork), "\" to permit that)");
  }
  return OkStatus();
}

}  // namespace headrace
