// Reading protocol buffers from their text.
#pragma once

#include <optional>
#include <string>

namespace google::protobuf {
class Message;
}

namespace headrace {

// What is wrong with a text, and where; lines and columns count from 1.
struct ProtoTextError {
  int line = 0, column = 0;
  std::string message;
};

// Reads `text` into `message`. The first error, as later ones mostly follow
// from it; messages nest no deeper than protobuf allows those of bytes to.
std::optional<ProtoTextError> ReadProtoText(const std::string& text,
                                            google::protobuf::Message* message);

}  // namespace headrace
