// The reflection service: which services there are, and the files that say what
// their messages are.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <set>

#include "grpc/reflection/v1alpha/reflection.pb.h"
#include "serving/rpc/messages.h"
#include "serving/rpc/services.h"

namespace headrace::serving {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;
using grpc::reflection::v1alpha::ServerReflectionRequest;
using grpc::reflection::v1alpha::ServerReflectionResponse;

constexpr char kReflection[] = "grpc.reflection.v1alpha.ServerReflection";

void TellError(const Status& s, ServerReflectionResponse* response) {
  auto* error = response->mutable_error_response();
  error->set_error_code(static_cast<int>(s.code()));
  error->set_error_message(std::string(s.message()));
}

// The file, and those that it imports.
void AddFiles(const FileDescriptor* file, std::set<const FileDescriptor*>* seen,
              ServerReflectionResponse* response) {
  if (!seen->insert(file).second) return;
  google::protobuf::FileDescriptorProto proto;
  file->CopyTo(&proto);
  response->mutable_file_descriptor_response()->add_file_descriptor_proto(
      proto.SerializeAsString());
  for (int i = 0; i < file->dependency_count(); ++i) {
    AddFiles(file->dependency(i), seen, response);
  }
}

void TellFile(const FileDescriptor* file, StringView asked,
              ServerReflectionResponse* response) {
  if (file == nullptr) {
    return TellError(NotFound("there is no ", asked), response);
  }
  std::set<const FileDescriptor*> seen;
  AddFiles(file, &seen, response);
}

void TellServices(const std::set<std::string>& services,
                  ServerReflectionResponse* response) {
  auto* list = response->mutable_list_services_response();
  for (const std::string& name : services) list->add_service()->set_name(name);
}

// The messages of the public files have no extensions.
void AnswerReflection(const ServerReflectionRequest& request,
                      const std::set<std::string>& services,
                      ServerReflectionResponse* response) {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  response->set_valid_host(request.host());
  *response->mutable_original_request() = request;
  switch (request.message_request_case()) {
    case ServerReflectionRequest::kFileByFilename:
      return TellFile(pool.FindFileByName(request.file_by_filename()),
                      request.file_by_filename(), response);
    case ServerReflectionRequest::kFileContainingSymbol:
      return TellFile(
          pool.FindFileContainingSymbol(request.file_containing_symbol()),
          request.file_containing_symbol(), response);
    case ServerReflectionRequest::kListServices:
      return TellServices(services, response);
    case ServerReflectionRequest::kAllExtensionNumbersOfType:
      if (pool.FindMessageTypeByName(request.all_extension_numbers_of_type())) {
        response->mutable_all_extension_numbers_response()->set_base_type_name(
            request.all_extension_numbers_of_type());
        return;
      }
      return TellError(
          NotFound("there is no ", request.all_extension_numbers_of_type()),
          response);
    case ServerReflectionRequest::kFileContainingExtension:
      return TellError(
          NotFound("there is no extension of ",
                   request.file_containing_extension().containing_type()),
          response);
    case ServerReflectionRequest::MESSAGE_REQUEST_NOT_SET:
      break;
  }
  TellError(InvalidArgument("the request asks for nothing"), response);
}

}  // namespace

void AddReflectionService(RpcMethods* methods) {
  auto services = std::make_shared<std::set<std::string>>();
  services->insert(kReflection);
  for (const auto& [path, method] : *methods) {
    services->insert(path.substr(1, path.rfind('/') - 1));
  }
  RpcMethod method;
  method.chat =
      [services](grpc::ByteBuffer* bytes) -> StatusOr<grpc::ByteBuffer> {
    ServerReflectionRequest request;
    HR_RETURN_IF_ERROR(ParseMessage(bytes, &request));
    ServerReflectionResponse response;
    AnswerReflection(request, *services, &response);
    return MessageBytes(response);
  };
  methods->emplace(absl::StrCat("/", kReflection, "/ServerReflectionInfo"),
                   std::move(method));
}

}  // namespace headrace::serving
