// Any bytes as a file that command lines look at; the first byte chooses
// whether it is a SavedModel's, a checkpoint's or of any other kind.
#include "base/files/files.h"
#include "command/command.h"

namespace headrace::command {
namespace {

void LookAt(const std::string& path) {
  for (const char* name : {"show", "ops", "svg"}) {
    for (const bool json : {false, true}) {
      std::vector<std::string> args = {name, path};
      const bool shows = args[0] == "show";
      if (shows) args.push_back("--all");
      if (json && args[0] != "svg") args.push_back("--json");
      // A SavedModel is drawn by loading it: saved_model_fuzz does that.
      if (args[0] == "svg" && path.back() == 'b') continue;
      Output out, err;
      RunCommandLine(args, out, err);
    }
  }
}

}  // namespace
}  // namespace headrace::command

extern "C" int LLVMFuzzerTestOneInput(const char* data, size_t size) {
  using namespace headrace;
  if (size == 0) return 0;
  const StringView bytes(data + 1, size - 1);
  constexpr const char* kPaths[] = {"fuzzed/saved_model.pb", "fuzzed/c.index",
                                    "fuzzed/any", "fuzzed/graph.pbtxt"};
  std::string local;
  FileSystem* fs = *FileSystemFor("ram://fuzzed", &local);
  DeleteRecursively(fs, local).IgnoreError();
  const std::string path =
      std::string("ram://") + kPaths[static_cast<unsigned char>(data[0]) & 3];
  fs = *FileSystemFor(path, &local);
  WriteFileAtomically(fs, local, bytes).IgnoreError();
  command::LookAt(path);
  return 0;
}
