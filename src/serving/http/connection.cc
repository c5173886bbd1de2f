#include "serving/http/connection.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "base/guard.h"
#include "serving/http/http_loop.h"
#include "serving/json/json_writer.h"

namespace headrace::serving {
namespace {

// A part of a request or answer that must pass within the timeout.
constexpr size_t kProgress = 64 << 10;
// What is read of further requests while one runs.
constexpr size_t kMostPipelined = 64 << 10;
// Turns of reading before other connections have theirs.
constexpr int kMostReads = 16;
// Memory of a large request is not kept for the next one.
constexpr size_t kMostKept = 256 << 10;

// The most that TLS puts under one seal.
constexpr size_t kRecord = 16 << 10;

constexpr char kContinue[] = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace

bool DeadlineList::FrontIsDue(Clock::time_point now) const {
  return !list_.empty() && list_.front()->deadline_ <= now;
}

std::unique_ptr<Connection> Connection::Make(HttpLoop* loop, int socket,
                                             uint64_t id) {
  std::unique_ptr<Connection> made(new (std::nothrow)
                                       Connection(loop, socket, id));
  if (made == nullptr) {
    close(socket);
    return nullptr;
  }
  Connection* c = made.get();
  if (const auto& tls = loop->options().tls) {
    c->tls_ = TlsStream::Make(tls->now()->context.get(), socket);
    if (c->tls_ == nullptr) return nullptr;
  }
  c->readable_.reset(
      event_new(loop->base(), socket, EV_READ | EV_PERSIST, OnReadable, c));
  c->writable_.reset(event_new(loop->base(), socket, EV_WRITE, OnWritable, c));
  if (c->readable_ == nullptr || c->writable_ == nullptr ||
      event_add(c->readable_.get(), nullptr) != 0) {
    return nullptr;
  }
  c->SetPhase(Phase::kIdle, &loop->waiting());
  return made;
}

Connection::Connection(HttpLoop* loop, int socket, uint64_t id)
    : loop_(loop),
      socket_(socket),
      id_(id),
      place_(1, this),
      node_(place_.begin()),
      parser_(loop->options().limits,
              static_cast<bool>(loop->options().admit)) {}

Connection::~Connection() {
  SetPhase(Phase::kClosed, nullptr);
  readable_.reset();
  writable_.reset();
  close(socket_);
}

void Connection::SetPhase(Phase phase, DeadlineList* list) {
  phase_ = phase;
  progress_ = 0;
  std::list<Connection*>& from = list_ == nullptr ? place_ : list_->list_;
  std::list<Connection*>& to = list == nullptr ? place_ : list->list_;
  to.splice(to.end(), from, node_);
  list_ = list;
  if (list != nullptr) {
    deadline_ = DeadlineList::Clock::now() + list->after_;
  }
}

void Connection::Progress(size_t bytes) {
  progress_ += bytes;
  if (progress_ >= kProgress) SetPhase(phase_, list_);
}

void Connection::OnReadable(int, short, void* connection) {
  auto* c = static_cast<Connection*>(connection);
  HttpLoop* loop = c->loop_;
  const Status s = Guarded("a connection", [&] {
    c->Read();
    return OkStatus();
  });
  if (!s.ok()) c->Close();
  loop->DeleteBuried();
}

void Connection::OnWritable(int, short, void* connection) {
  auto* c = static_cast<Connection*>(connection);
  HttpLoop* loop = c->loop_;
  const Status s = Guarded("a connection", [&] {
    c->Write();
    // TLS may have had to send before it could read.
    const bool reads =
        c->tls_ != nullptr && !c->paused_ && c->phase_ != Phase::kClosed;
    reads ? c->Read() : c->Advance();
    return OkStatus();
  });
  if (!s.ok()) c->Close();
  loop->DeleteBuried();
}

void Connection::Read() {
  for (int i = 0; i < kMostReads && ReadSome(); ++i) continue;
  Advance();
}

// False where nothing more is there now.
bool Connection::ReadSome() {
  const size_t room = loop_->scratch_bytes();
  // What is thrown away need not be deciphered.
  const bool is_plain = tls_ == nullptr || phase_ == Phase::kLingering;
  const ssize_t n = is_plain ? recv(socket_, loop_->scratch(), room, 0)
                             : tls_->Receive(loop_->scratch(), room);
  if (n < 0) {
    if (errno == EINTR) return true;
    if (errno != EAGAIN && errno != EWOULDBLOCK) {
      Close();
    } else if (!is_plain && tls_->read_waits_to_write() &&
               event_add(writable_.get(), nullptr) != 0) {
      Close();
    }
    return false;
  }
  if (n == 0) {
    ended_ = true;
    Pause();
    return false;
  }
  if (phase_ == Phase::kLingering) return true;
  in_.append(loop_->scratch(), n);
  if (phase_ == Phase::kReading) Progress(n);
  if ((phase_ == Phase::kRunning || phase_ == Phase::kWriting) &&
      in_.size() > kMostPipelined) {
    Pause();
  }
  // TLS gives a record at a time.
  return (static_cast<size_t>(n) == room || tls_ != nullptr) && !paused_;
}

void Connection::Pause() {
  if (!paused_) event_del(readable_.get());
  paused_ = true;
}
void Connection::Resume() {
  if (!paused_ || ended_) return;
  paused_ = event_add(readable_.get(), nullptr) != 0;
  if (paused_) Close();
}

// Takes what has come as far as that goes.
void Connection::Advance() {
  if (advancing_) return;
  advancing_ = true;
  bool more = true;
  while (more && !in_.empty() &&
         (phase_ == Phase::kIdle || phase_ == Phase::kReading)) {
    more = false;
    switch (parser_.Parse(in_)) {
      case RequestParser::Result::kRequest:
        more = true;
        Dispatch();
        break;
      case RequestParser::Result::kError:
        Refuse(parser_.status(), parser_.error());
        break;
      case RequestParser::Result::kHead:
        more = Admit();
        break;
      case RequestParser::Result::kContinue:
        // To a client that waits for it; lost, the client goes on in time.
        if (tls_ != nullptr) {
          (void)tls_->Send(kContinue, sizeof(kContinue) - 1);
        } else {
          (void)send(socket_, kContinue, sizeof(kContinue) - 1, MSG_NOSIGNAL);
        }
        [[fallthrough]];
      case RequestParser::Result::kMore:
        if (phase_ == Phase::kIdle) {
          SetPhase(Phase::kReading, &loop_->waiting());
        }
    }
  }
  advancing_ = false;
  if (!ended_) return;
  if (phase_ == Phase::kRunning) {
    GiveUp();
  } else if (phase_ != Phase::kWriting) {
    Close();
  }
}

bool Connection::Admit() {
  std::optional<HttpResponse> refusal;
  const Status s = Guarded("a request", [&] {
    refusal = loop_->options().admit(parser_.request());
    return OkStatus();
  });
  if (!s.ok()) {
    Refuse(absl::IsResourceExhausted(s) ? 429 : 500, s.message());
  } else if (refusal) {
    if (parser_.request().method == "HEAD") refusal->body.clear();
    Refuse(*std::move(refusal));
  }
  return s.ok() && !refusal;
}

void Connection::Dispatch() {
  phase_ = Phase::kRunning;
  const HttpRequest& request = parser_.request();
  close_after_ = !request.keep_alive;
  linger_after_ = false;
  head_only_ = request.method == "HEAD";
  const HttpResponder responder = loop_->ResponderOf(id_);
  loop_->set_dispatching(id_);
  const Status s = Guarded("a request", [&] {
    loop_->handler()(request, responder);
    return OkStatus();
  });
  if (!s.ok()) {
    HttpResponse response;
    response.status = absl::IsResourceExhausted(s) ? 429 : 500;
    response.body = JsonError(s.message());
    responder.Send(std::move(response));
  }
  loop_->set_dispatching(0);
  in_.erase(0, parser_.used());
  if (in_.empty() && in_.capacity() > kMostKept) in_ = std::string();
  parser_.Restart();
  if (phase_ == Phase::kRunning) {
    SetPhase(Phase::kRunning, nullptr);
    if (in_.size() > kMostPipelined) Pause();
  }
}

void Connection::Answer(HttpResponse response) {
  if (phase_ != Phase::kRunning) return;
  gone_ = nullptr;
  close_after_ = close_after_ || loop_->draining() || ended_;
  Begin(response);
  if (!head_only_) body_ = std::move(response.body);
  Write();
  Advance();
}

void Connection::Begin(const HttpResponse& response) {
  head_.clear();
  absl::StrAppend(
      &head_, "HTTP/1.1 ", response.status, " ", HttpReason(response.status),
      "\r\nContent-Type: ", response.content_type, "\r\nDate: ", loop_->date(),
      "\r\nContent-Length: ", response.body.size(), "\r\n");
  for (const auto& [name, value] : response.headers) {
    absl::StrAppend(&head_, name, ": ", value, "\r\n");
  }
  if (close_after_) head_.append("Connection: close\r\n");
  head_.append("\r\n");
  body_.clear();
  sent_ = 0;
  SetPhase(Phase::kWriting, &loop_->writing());
}

void Connection::Refuse(int status, StringView error) {
  HttpResponse response;
  response.status = status;
  response.body = JsonError(error);
  Refuse(std::move(response));
}

void Connection::Refuse(HttpResponse response) {
  gone_ = nullptr;
  close_after_ = linger_after_ = true;
  Begin(response);
  body_ = std::move(response.body);
  Write();
}

// As send() of what is still to be sent.
ssize_t Connection::SendSome() {
  const size_t of_head = std::min(sent_, head_.size());
  const size_t of_body = sent_ - of_head;
  const StringView head = StringView(head_).substr(of_head);
  const StringView body = StringView(body_).substr(of_body);
  if (tls_ != nullptr) {
    if (head.empty()) return tls_->Send(body.data(), body.size());
    // Both in one record, where they fit.
    char* joined = loop_->scratch();
    const size_t n = head.copy(joined, kRecord);
    return tls_->Send(joined, n + body.copy(joined + n, kRecord - n));
  }
  iovec parts[2];
  int count = 0;
  for (const StringView part : {head, body}) {
    if (part.empty()) continue;
    parts[count++] = {const_cast<char*>(part.data()), part.size()};
  }
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = count;
  return sendmsg(socket_, &message, MSG_NOSIGNAL);
}

void Connection::Write() {
  while (phase_ == Phase::kWriting) {
    if (sent_ == head_.size() + body_.size()) return Written();
    const ssize_t n = SendSome();
    if (n > 0) {
      sent_ += n;
      Progress(n);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (event_add(writable_.get(), nullptr) != 0) Close();
      return;
    } else if (errno != EINTR) {
      return Close();
    }
  }
}

// The whole answer is with the kernel.
void Connection::Written() {
  if (body_.capacity() > kMostKept) body_ = std::string();
  const size_t used = loop_->dispatching() == id_ ? parser_.used() : 0;
  if (close_after_ && (linger_after_ || in_.size() > used) && !ended_) {
    return Linger();
  }
  if (close_after_) return Close();
  SetPhase(Phase::kIdle, &loop_->waiting());
  Resume();
}

void Connection::Linger() {
  if (tls_ != nullptr) tls_->End();
  shutdown(socket_, SHUT_WR);
  SetPhase(Phase::kLingering, &loop_->lingering());
  loop_->LeavesOff();
  Resume();
}

void Connection::GiveUp() {
  if (gone_) std::exchange(gone_, nullptr)();
}

void Connection::Close() {
  if (phase_ == Phase::kClosed) return;
  if (phase_ != Phase::kLingering) loop_->LeavesOff();
  SetPhase(Phase::kClosed, nullptr);
  event_del(readable_.get());
  event_del(writable_.get());
  if (tls_ != nullptr) tls_->End();
  GiveUp();
  loop_->Bury(id_);
}

}  // namespace headrace::serving
