#include "distributed/introducing_channel.h"

#include <utility>

#include "distributed/messages.h"
#include "distributed/wire/methods.h"

namespace headrace::distributed {
namespace {

class Introducer : public Channel {
 public:
  Introducer(std::shared_ptr<Channel> channel, PeerVersion own,
             std::string peer, bool allows_tensorflow)
      : channel_(std::move(channel)),
        own_(std::move(own)),
        peer_(std::move(peer)),
        allows_tensorflow_(allows_tensorflow) {}

  std::shared_ptr<ClientCall> Start(const std::string& path, Bytes request,
                                    const CallOptions& options,
                                    std::function<void(Answer)> done) override {
    if (!Introduces(path)) {
      return channel_->Start(path, std::move(request), options,
                             std::move(done));
    }
    CallOptions telling = options;
    Introduce(own_, &telling.metadata);
    return channel_->Start(
        path, std::move(request), telling,
        [own = own_, peer = peer_, allows = allows_tensorflow_,
         done = std::move(done)](Answer answer) {
          if (answer.ok()) {
            const Status s = CheckPeer(own, answer.metadata, peer, allows);
            if (!s.ok()) return done(AnswerOf(s));
          }
          done(std::move(answer));
        });
  }
  bool Later(std::function<void()> f) override {
    return channel_->Later(std::move(f));
  }

 private:
  const std::shared_ptr<Channel> channel_;
  const PeerVersion own_;
  const std::string peer_;
  const bool allows_tensorflow_;
};

class Introduced : public ServerCall {
 public:
  Introduced(std::shared_ptr<ServerCall> call, PeerVersion own)
      : call_(std::move(call)), own_(std::move(own)) {}
  const Metadata& metadata() const override { return call_->metadata(); }
  std::string peer() const override { return call_->peer(); }
  Clock::time_point deadline() const override { return call_->deadline(); }
  bool MayWait() override { return call_->MayWait(); }
  bool Later(std::function<void()> f) override {
    return call_->Later(std::move(f));
  }
  void OnCancel(std::function<void()> f) override {
    call_->OnCancel(std::move(f));
  }
  void Send(Bytes part, std::function<void(bool)> sent) override {
    call_->Send(std::move(part), std::move(sent));
  }
  void Finish(Answer answer) override {
    Introduce(own_, &answer.metadata);
    call_->Finish(std::move(answer));
  }

 private:
  const std::shared_ptr<ServerCall> call_;
  const PeerVersion own_;
};

}  // namespace

bool Introduces(const std::string& path) {
  for (const RemoteMethod& m :
       {master::kCreateSession, master::kListDevices, worker::kGetStatus,
        worker::kCreateWorkerSession, worker::kJoinGroup, worker::kSeekGroup,
        worker::kCompleteGroup, eager_service::kCreateContext,
        coordination::kRegisterTask}) {
    if (path == m.path) return true;
  }
  return false;
}

std::shared_ptr<Channel> IntroducingChannel(std::shared_ptr<Channel> channel,
                                            PeerVersion own, std::string peer,
                                            bool allows_tensorflow) {
  return std::make_shared<Introducer>(std::move(channel), std::move(own),
                                      std::move(peer), allows_tensorflow);
}

std::shared_ptr<ServerCall> IntroducingCall(std::shared_ptr<ServerCall> call,
                                            PeerVersion own) {
  return std::make_shared<Introduced>(std::move(call), std::move(own));
}

}  // namespace headrace::distributed
