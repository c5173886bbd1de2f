// FileSystemSetConfiguration: options of file systems, of which none has any.
// Reach: none, as it only asks which schemes are known.
#include "base/files/file_system.h"
#include "op/op.h"

namespace headrace {
namespace {

Status SetOption(KernelContext& c) {
  for (int i = 0; i < 3; ++i) {
    if (c.input(i).rank() == 0) continue;
    return InvalidArgument(c.op().def().inputs[i].name,
                           " must be scalar, got shape ", c.input(i).shape());
  }
  const std::string& scheme = c.input(0).scalar<std::string>();
  std::string local;
  const std::string path = scheme.empty() ? "/" : absl::StrCat(scheme, "://");
  if (!FileSystemFor(path, &local).ok()) {
    return Unimplemented("File system scheme '", scheme,
                         "' not found to set configuration");
  }
  return Unimplemented("SetOption");
}

HR_OP(FileSystemSetConfiguration)
    .Input("scheme: string")
    .Input("key: string")
    .Input("value: string")
    .Doc("Sets an option of the file system of a scheme.")
    .Stateful()
    .Shape(NoOutputs)
    .Cpu(Compute<SetOption>);

}  // namespace
}  // namespace headrace
