// include/headrace/serving_server.h
#include "headrace/serving_server.h"

#include "absl/strings/str_join.h"
#include "cc/access.h"
#include "serving/start/server.h"

namespace headrace::tf {

struct ModelServer::State {
  std::unique_ptr<headrace::serving::Server> server;
};

ModelServer::ModelServer(const std::vector<std::string>& flags,
                         std::function<void(const std::string&)> log)
    : state_(std::make_unique<State>()) {
  headrace::serving::Flags parsed;
  std::vector<std::string> unknown;
  internal::Check(headrace::serving::ParseFlags(flags, &parsed, &unknown));
  if (!unknown.empty()) {
    throw Error(
        ErrorCode::kInvalidArgument,
        absl::StrCat("no flags of the server: ", absl::StrJoin(unknown, " ")));
  }
  if (parsed.version) {
    throw Error(ErrorCode::kInvalidArgument,
                "--version is for the program alone: see Version()");
  }
  if (!log) log = [](const std::string&) {};
  state_->server =
      internal::Check(headrace::serving::Server::Start(parsed, std::move(log)));
}

ModelServer::~ModelServer() = default;
ModelServer::ModelServer(ModelServer&&) noexcept = default;
ModelServer& ModelServer::operator=(ModelServer&&) noexcept = default;

int ModelServer::grpc_port() const { return state_->server->grpc_port(); }
int ModelServer::rest_port() const { return state_->server->rest_port(); }
void ModelServer::Drain() { state_->server->Drain(); }

}  // namespace headrace::tf
