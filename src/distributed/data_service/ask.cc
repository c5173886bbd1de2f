#include "distributed/data_service/ask.h"

namespace headrace::distributed::data_service {
namespace {

// Calls of one method as Channels makes them.
class Through : public Channel {
 public:
  Through(Channels& channels, const std::string& address,
          const RemoteMethod& method)
      : channels_(channels), address_(address), method_(method) {}
  std::shared_ptr<ClientCall> Start(const std::string&, Bytes request,
                                    const CallOptions& options,
                                    std::function<void(Answer)> done) override {
    return channels_.Start(address_, method_, std::move(request), options,
                           std::move(done));
  }

 private:
  Channels& channels_;
  const std::string& address_;
  const RemoteMethod& method_;
};

}  // namespace

Status Ask(Channels& channels, const std::string& address,
           const RemoteMethod& method,
           const google::protobuf::MessageLite& request,
           google::protobuf::MessageLite* response,
           const CallOptions& options) {
  Through through(channels, address, method);
  return CallAndWait(through, method.path, request, response, options);
}

}  // namespace headrace::distributed::data_service
