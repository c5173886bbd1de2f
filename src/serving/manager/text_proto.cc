#include "serving/manager/text_proto.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include "base/files/files.h"

namespace headrace::serving {
namespace {

// Messages within each other that a text may have: a config has six, but an Any
// can hold any type that the program knows.
constexpr int kMostNested = 50;

// Keeps the first fault; the parser would write all to the log.
class FirstFault : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (!text_.empty()) return;
    text_ =
        absl::StrCat("line ", line + 1, ", column ", column + 1, ": ", message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace

Status ParseTextProto(const std::string& text, StringView file,
                      google::protobuf::Message* message) {
  FirstFault fault;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&fault);
  parser.SetRecursionLimit(kMostNested);
  if (parser.ParseFromString(text, message)) return OkStatus();
  return InvalidArgument("Invalid protobuf file: '", file, "' (", fault.text(),
                         ")");
}

Status ReadTextProto(const std::string& path,
                     google::protobuf::Message* message) {
  std::string local;
  HR_ASSIGN_OR_RETURN(FileSystem * files, FileSystemFor(path, &local));
  HR_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(files, local));
  return ParseTextProto(text, path, message);
}

}  // namespace headrace::serving
