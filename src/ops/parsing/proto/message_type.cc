#include "ops/parsing/proto/message_type.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include "absl/strings/escaping.h"
#include "absl/strings/strip.h"
#include "base/files/files.h"

namespace headrace {
namespace {

namespace pb = google::protobuf;
using PoolPtr = std::shared_ptr<const pb::DescriptorPool>;

// What protobuf would write to the program's output.
class Unheard : public pb::DescriptorPool::ErrorCollector {
  void AddError(const std::string&, const std::string&, const pb::Message*,
                ErrorLocation, const std::string&) override {}
};

Status NoDescriptors(const std::string& source) {
  return InvalidArgument(
      "Source does not represent serialized file descriptor set proto. This "
      "may be due to a missing dependency on the file containing "
      "REGISTER_DESCRIPTOR_POOL(\"",
      absl::CHexEscape(source.substr(0, 200)), "\", ...);");
}

// A file's bytes. What a sandbox refuses is told as it is; all else is no
// source.
StatusOr<std::string> BytesOfFile(const std::string& source) {
  std::string path;
  StatusOr<std::string> bytes;
  if (StatusOr<FileSystem*> fs = FileSystemFor(source, &path); fs.ok()) {
    bytes = ReadWholeFile(*fs, path);
  } else {
    bytes = fs.status();
  }
  if (bytes.ok() || absl::IsPermissionDenied(bytes.status())) return bytes;
  return NoDescriptors(source);
}

StatusOr<PoolPtr> PoolOf(const std::string& source) {
  if (source.empty() || source == "local://") {
    return PoolPtr(PoolPtr(), pb::DescriptorPool::generated_pool());
  }
  StringView bytes = source;
  std::string contents;
  if (!absl::ConsumePrefix(&bytes, "bytes://")) {
    HR_ASSIGN_OR_RETURN(contents, BytesOfFile(source));
    bytes = contents;
  }
  pb::FileDescriptorSet files;
  if (bytes.size() > INT32_MAX ||
      !files.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return NoDescriptors(source);
  }
  auto pool = std::make_shared<pb::DescriptorPool>();
  Unheard errors;
  for (const pb::FileDescriptorProto& file : files.file()) {
    if (pool->BuildFileCollectingErrors(file, &errors) == nullptr) {
      return InvalidArgument("Failed to load FileDescriptorProto: ",
                             file.DebugString().substr(0, 2000));
    }
  }
  return pool;
}

}  // namespace

StatusOr<MessageType> FindMessageType(const std::string& source,
                                      const std::string& name) {
  MessageType type;
  HR_ASSIGN_OR_RETURN(type.pool, PoolOf(source));
  type.descriptor = type.pool->FindMessageTypeByName(name);
  if (type.descriptor == nullptr) {
    return InvalidArgument("No descriptor found for message type ", name);
  }
  return type;
}

StatusOr<std::vector<const pb::FieldDescriptor*>> FindFields(
    const MessageType& type, const std::vector<std::string>& names,
    bool extensions) {
  std::vector<const pb::FieldDescriptor*> fields;
  for (const std::string& name : names) {
    const pb::FieldDescriptor* field = type.descriptor->FindFieldByName(name);
    if (field == nullptr && extensions) {
      field = type.pool->FindExtensionByName(name);
      // Another message's.
      if (field && field->containing_type() != type.descriptor) field = nullptr;
    }
    if (field == nullptr) {
      return InvalidArgument("Unknown field: ", name, " in message type ",
                             type.descriptor->full_name());
    }
    fields.push_back(field);
  }
  return fields;
}

}  // namespace headrace
