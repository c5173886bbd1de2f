#include "serving/http/responder.h"

#include <atomic>

#include "serving/http/http_loop.h"
#include "serving/http/mailbox.h"

namespace headrace::serving {

struct HttpResponder::State {
  State(std::shared_ptr<Mailbox> box, uint64_t id)
      : mailbox(std::move(box)), connection(id) {}
  ~State() {
    if (sent) return;
    HttpResponse response;
    response.status = 500;
    response.body = "{\"error\": \"the request was given up\"}";
    Send(std::move(response));
  }

  void Send(HttpResponse response) {
    if (sent.exchange(true)) return;
    for (auto& header : headers) response.headers.push_back(std::move(header));
    // Answers to other connections than the one whose request is being handled
    // wait their turn, so that handlers do not stand on each other.
    HttpLoop* loop = mailbox->loop_here();
    if (loop != nullptr && loop->dispatching() == connection) {
      loop->Answer(connection, std::move(response));
      return;
    }
    mailbox->Post([&](Mailbox::Mail& mail) {
      mail.answers.emplace_back(connection, std::move(response));
    });
  }

  const std::shared_ptr<Mailbox> mailbox;
  const uint64_t connection;
  std::vector<std::pair<std::string, std::string>> headers;
  std::atomic<bool> sent{false};
};

HttpResponder::HttpResponder(std::shared_ptr<Mailbox> mailbox,
                             uint64_t connection)
    : state_(std::make_shared<State>(std::move(mailbox), connection)) {}

void HttpResponder::AddHeaders(
    std::vector<std::pair<std::string, std::string>> headers) const {
  for (auto& header : headers) state_->headers.push_back(std::move(header));
}

void HttpResponder::Send(HttpResponse response) const {
  state_->Send(std::move(response));
}

void HttpResponder::OnClose(std::function<void()> gone) const {
  if (state_->sent) return;
  if (HttpLoop* loop = state_->mailbox->loop_here()) {
    loop->OnClose(state_->connection, std::move(gone));
  }
}

}  // namespace headrace::serving
