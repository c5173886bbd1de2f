// Types of messages that ops name, of this program or from anywhere.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"

namespace google::protobuf {
class Descriptor;
class DescriptorPool;
class FieldDescriptor;
}  // namespace google::protobuf

namespace headrace {

// Immutable; copies share what they point into.
struct MessageType {
  std::shared_ptr<const google::protobuf::DescriptorPool> pool;
  const google::protobuf::Descriptor* descriptor = nullptr;
};

// The message of that full name, described by `source`: "local://" or "" for
// what is compiled in, "bytes://" and a serialised FileDescriptorSet behind it,
// or the path of a file that holds one; each file stands behind those that it
// imports. InvalidArgument, with upstream's texts, where there is none.
StatusOr<MessageType> FindMessageType(const std::string& source,
                                      const std::string& name);

// The fields of these names; InvalidArgument for one that is not there.
// `extensions`: full names are those of extensions.
StatusOr<std::vector<const google::protobuf::FieldDescriptor*>> FindFields(
    const MessageType& type, const std::vector<std::string>& names,
    bool extensions);

}  // namespace headrace
