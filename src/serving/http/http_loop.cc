#include "serving/http/http_loop.h"

#include <errno.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "base/guard.h"
#include "base/threads.h"
#include "serving/json/json_writer.h"

namespace headrace::serving {
namespace {

using std::chrono::milliseconds;

// For what a client still sends when it has been answered for good.
constexpr milliseconds kLinger{1000};
constexpr size_t kScratchBytes = 64 << 10;

// How often deadlines are looked at: they are late by an eighth at most.
milliseconds TickOf(milliseconds timeout) {
  return std::clamp(timeout / 8, milliseconds(5), milliseconds(500));
}

}  // namespace

HttpLoop::HttpLoop(const HttpOptions& options, const HttpHandler& handler,
                   HttpCounts* counts)
    : options_(options),
      handler_(handler),
      counts_(counts),
      waiting_(options.timeout),
      writing_(options.timeout),
      lingering_(std::min(options.timeout, kLinger)),
      scratch_(kScratchBytes) {}

HttpLoop::~HttpLoop() { Stop(); }

StatusOr<std::unique_ptr<HttpLoop>> HttpLoop::Start(const HttpOptions& options,
                                                    const HttpHandler& handler,
                                                    HttpCounts* counts) {
  std::unique_ptr<HttpLoop> made(new HttpLoop(options, handler, counts));
  HR_RETURN_IF_ERROR(made->Prepare());
  HttpLoop* loop = made.get();
  HR_ASSIGN_OR_RETURN(loop->thread_, threads::Start([loop] { loop->Run(); }));
  return made;
}

Status HttpLoop::Prepare() {
  HR_ASSIGN_OR_RETURN(mailbox_, Mailbox::Make());
  base_.reset(event_base_new());
  if (base_ == nullptr) return Unavailable("no event base can be made");
  mail_.reset(event_new(
      base_.get(), mailbox_->fd(), EV_READ | EV_PERSIST,
      [](int, short, void* loop) { static_cast<HttpLoop*>(loop)->OnMail(); },
      this));
  tick_.reset(event_new(
      base_.get(), -1, EV_PERSIST,
      [](int, short, void* loop) { static_cast<HttpLoop*>(loop)->Tick(); },
      this));
  const int64_t us =
      std::chrono::microseconds(TickOf(options_.timeout)).count();
  const timeval interval{us / 1000000, us % 1000000};
  if (mail_ == nullptr || tick_ == nullptr ||
      event_add(mail_.get(), nullptr) != 0 ||
      event_add(tick_.get(), &interval) != 0) {
    return ResourceExhausted("out of memory in starting a server's loop");
  }
  return OkStatus();
}

void HttpLoop::Run() {
  // OpenSSL writes to sockets that the client has closed.
  sigset_t pipes;
  sigemptyset(&pipes);
  sigaddset(&pipes, SIGPIPE);
  if (options_.tls != nullptr) pthread_sigmask(SIG_BLOCK, &pipes, nullptr);
  mailbox_->Open(this);
  event_base_loop(base_.get(), 0);
  CloseAll();
  const Mailbox::Mail rest = mailbox_->Close();
  for (const int socket : rest.sockets) {
    close(socket);
    LeavesOff();
    --counts_->open;
  }
}

void HttpLoop::Stop() {
  if (!thread_.joinable()) return;
  mailbox_->Post([](Mailbox::Mail& mail) { mail.stop = true; });
  thread_.join();
}

void HttpLoop::Add(int socket) {
  ++connections_count_;
  if (mailbox_->Post(
          [&](Mailbox::Mail& mail) { mail.sockets.push_back(socket); })) {
    return;
  }
  close(socket);
  LeavesOff();
  --counts_->open;
  --connections_count_;
}

// Where memory ends mail is lost: those whose answers they were are closed by
// their clients, or when the server ends.
void HttpLoop::OnMail() {
  Guarded("mail", [&] {
    ReadMail();
    return OkStatus();
  }).IgnoreError();
}

void HttpLoop::EvictOne() {
  ++leaving_;
  ++counts_->leaving;
  mailbox_->Post([](Mailbox::Mail& mail) { ++mail.evict; });
}

void HttpLoop::ReadMail() {
  Mailbox::Mail mail = mailbox_->Take();
  draining_ = draining_ || mail.drain;
  for (const int socket : mail.sockets) Adopt(socket);
  // Not a structured binding: clang 14 lets no lambda have one.
  for (auto& answer : mail.answers) {
    const Status s = Guarded("an answer", [&] {
      Answer(answer.first, std::move(answer.second));
      return OkStatus();
    });
    auto it = connections_.find(answer.first);
    if (!s.ok() && it != connections_.end()) it->second->Close();
  }
  Evict(mail.evict);
  if (draining_) CloseIdle();
  if (mail.abandon) Abandon();
  DeleteBuried();
  if (mail.stop) event_base_loopbreak(base_.get());
}

void HttpLoop::Adopt(int socket) {
  const uint64_t id = next_id_++;
  std::unique_ptr<Connection> made = Connection::Make(this, socket, id);
  if (made == nullptr) {
    LeavesOff();
    --counts_->open;
    --connections_count_;
    return;
  }
  connections_.emplace(id, std::move(made));
}

void HttpLoop::Answer(uint64_t connection, HttpResponse response) {
  auto it = connections_.find(connection);
  if (it != connections_.end()) it->second->Answer(std::move(response));
}

void HttpLoop::OnClose(uint64_t connection, std::function<void()> gone) {
  auto it = connections_.find(connection);
  if (it != connections_.end()) it->second->OnClose(std::move(gone));
}

void HttpLoop::LeavesOff() {
  if (--counts_->waiting > 0) return;
  const MutexLock lock(counts_->mutex);
  counts_->none_waits.NotifyAll();
}

void HttpLoop::Bury(uint64_t connection) {
  auto it = connections_.find(connection);
  if (it == connections_.end()) return;
  buried_.push_back(std::move(it->second));
  connections_.erase(it);
  --counts_->open;
  --connections_count_;
}

// Those that have been silent longest, whether or not they have begun: a new
// connection has said nothing yet either.
void HttpLoop::Evict(int count) {
  leaving_ -= count;
  counts_->leaving -= count;
  for (; count > 0 && !waiting_.empty(); --count) waiting_.front()->Close();
}

void HttpLoop::CloseIdle() {
  std::vector<Connection*> idle;
  for (const auto& [id, connection] : connections_) {
    if (connection->phase() == Connection::Phase::kIdle) {
      idle.push_back(connection.get());
    }
  }
  for (Connection* c : idle) c->Close();
}

void HttpLoop::Abandon() {
  std::vector<Connection*> all;
  for (const auto& [id, connection] : connections_) {
    all.push_back(connection.get());
  }
  for (Connection* c : all) {
    if (c->phase() == Connection::Phase::kReading) c->Close();
    if (c->phase() != Connection::Phase::kRunning) continue;
    c->GiveUp();
    HttpResponse response;
    response.status = 503;
    response.body = JsonError("server is shutting down");
    c->Answer(std::move(response));
  }
}

void HttpLoop::CloseAll() {
  while (!connections_.empty()) connections_.begin()->second->Close();
  DeleteBuried();
}

void HttpLoop::Tick() {
  const auto now = DeadlineList::Clock::now();
  for (DeadlineList* list : {&waiting_, &writing_, &lingering_}) {
    while (list->FrontIsDue(now)) {
      Connection* c = list->front();
      if (c->phase() == Connection::Phase::kReading) {
        c->Refuse(408, "the request has not come in time");
      } else {
        c->Close();
      }
    }
  }
  DeleteBuried();
}

const std::string& HttpLoop::date() {
  const time_t now = time(nullptr);
  if (now == date_second_) return date_;
  date_second_ = now;
  tm parts;
  gmtime_r(&now, &parts);
  char text[64];
  // In the C locale's words, whatever the program's is.
  static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed",
                                          "Thu", "Fri", "Sat"};
  static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr",
                                            "May", "Jun", "Jul", "Aug",
                                            "Sep", "Oct", "Nov", "Dec"};
  snprintf(text, sizeof(text), "%s, %02d %s %d %02d:%02d:%02d GMT",
           kDays[parts.tm_wday], parts.tm_mday, kMonths[parts.tm_mon],
           parts.tm_year + 1900, parts.tm_hour, parts.tm_min, parts.tm_sec);
  return date_ = text;
}

}  // namespace headrace::serving
