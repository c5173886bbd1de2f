// Config files: protos as text.
#pragma once

#include <string>

#include "base/status.h"

namespace google::protobuf {
class Message;
}

namespace headrace::serving {

// InvalidArgument "Invalid protobuf file: 'F'" with the place and what is
// wrong; errors of reading the file.
Status ReadProtoFile(const std::string& path,
                     google::protobuf::Message* message);
// The same of a text; `name` is what errors call it.
Status ReadProtoConfig(const std::string& text, StringView name,
                       google::protobuf::Message* message);

}  // namespace headrace::serving
