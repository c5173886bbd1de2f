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

// As deep as protobuf allows the bytes of a message to nest.
inline constexpr int kDeepestProtoText = 100;

// Reads `text` into `message`, whose messages may nest `deepest` deep. The
// first error, as later ones mostly follow from it.
std::optional<ProtoTextError> ReadProtoText(const std::string& text,
                                            google::protobuf::Message* message,
                                            int deepest = kDeepestProtoText);

}  // namespace headrace
