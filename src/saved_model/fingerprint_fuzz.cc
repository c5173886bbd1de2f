// Any bytes as fingerprint.pb of a folder, and the fingerprint of a SavedModel
// of these bytes, which also stand for the index of its checkpoint.
#include "base/files/files.h"
#include "saved_model/fingerprint.h"
#include "saved_model/model_file.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, size_t size) {
  using namespace headrace;
  const StringView bytes(data, size);
  const std::string folder = "ram://fingerprinted";
  std::string local;
  auto fs = FileSystemFor(folder, &local);
  if (!fs.ok()) return 0;
  const std::string path = JoinPath(local, kFingerprintFile);
  if (!WriteFileAtomically(*fs, path, bytes).ok()) return 0;
  ReadFingerprint(folder).status().IgnoreError();
  const auto model = ParseSavedModel(bytes, false, folder);
  if (model.ok() && (*model)->meta_graphs_size() > 0) {
    (void)FingerprintOf(**model, bytes);
  }
  return 0;
}
