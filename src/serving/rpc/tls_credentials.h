// TLS of the gRPC port, by keys that may change while it runs.
#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "serving/access/tls_file.h"

namespace headrace::serving {

// Each new connection sees what the file says then. To be kept while a server
// uses them.
std::shared_ptr<grpc::ServerCredentials> TlsCredentials(
    std::shared_ptr<TlsFile> file);

}  // namespace headrace::serving
