#include "serving/proto_file.h"

#include "base/files/files.h"
#include "formats/proto_text.h"

namespace headrace::serving {
namespace {

// A config has six messages within each other, but an Any can hold any type
// that the program knows.
constexpr int kDeepestConfig = 50;

}  // namespace

Status ReadProtoFile(const std::string& path,
                     google::protobuf::Message* message) {
  std::string local;
  HR_ASSIGN_OR_RETURN(FileSystem * fs, FileSystemFor(path, &local));
  HR_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(fs, local));
  return ReadProtoConfig(text, path, message);
}

Status ReadProtoConfig(const std::string& text, StringView name,
                       google::protobuf::Message* message) {
  const auto error = ReadProtoText(text, message, kDeepestConfig);
  if (!error) return OkStatus();
  return InvalidArgument("Invalid protobuf file: '", name, "', line ",
                         error->line, ", column ", error->column, ": ",
                         error->message);
}

}  // namespace headrace::serving
