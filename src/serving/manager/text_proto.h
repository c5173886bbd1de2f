// Configs in the text form of protobuf.
#pragma once

#include <string>

#include "base/status.h"

namespace google::protobuf {
class Message;
}

namespace headrace::serving {

// InvalidArgument "Invalid protobuf file: 'FILE'", with the first fault and its
// line, where the text does not parse; unknown fields are faults. `file` is for
// messages.
Status ParseTextProto(const std::string& text, StringView file,
                      google::protobuf::Message* message);
// The same of a file. Errors of the file system.
Status ReadTextProto(const std::string& path,
                     google::protobuf::Message* message);

}  // namespace headrace::serving
