#include "formats/proto_text.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

namespace headrace {
namespace {

class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    // Protobuf counts from 0.
    if (!error) error = ProtoTextError{line + 1, column + 1, message};
  }
  std::optional<ProtoTextError> error;
};

}  // namespace

std::optional<ProtoTextError> ReadProtoText(const std::string& text,
                                            google::protobuf::Message* message,
                                            int deepest) {
  FirstError errors;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  parser.SetRecursionLimit(deepest);
  if (parser.ParseFromString(text, message)) return std::nullopt;
  return errors.error.value_or(ProtoTextError{1, 1, "not readable"});
}

}  // namespace headrace
