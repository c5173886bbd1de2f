#include "distributed/data_service/client.h"

#include <algorithm>

#include "base/job_threads.h"
#include "distributed/data_service/ask.h"
#include "distributed/data_service/methods.h"
#include "distributed/data_service/worker.h"

namespace headrace::distributed::data_service {
namespace {

// Elements asked for ahead where the program does not say how many.
constexpr int64_t kAhead = 16;
// Answers of the dispatcher wait so long for news.
constexpr int64_t kNewsWait = 1'000;
// Before who did not answer is asked again.
constexpr std::chrono::milliseconds kBackOff{100};
// Until a stop is felt, and who is to be asked again is.
constexpr std::chrono::milliseconds kLooks{20};
// How long a dispatcher may be away while it is read.
constexpr std::chrono::minutes kDispatcherAway{10};

// Whether what failed so may be there again later.
bool MayComeBack(const Status& s) {
  switch (s.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kAborted:
      return true;
    default:
      return false;
  }
}

}  // namespace

Reader::Reader(ReaderOptions options, std::shared_ptr<Channels> channels)
    : options_(std::move(options)), channels_(std::move(channels)) {}

int64_t Reader::most() const {
  return options_.most_outstanding > 0 ? options_.most_outstanding : kAhead;
}

StatusOr<std::shared_ptr<Reader>> Reader::Open(
    ReaderOptions options, std::shared_ptr<Channels> channels) {
  OpenIterationRequest request;
  *request.mutable_iteration() = options.iteration;
  OpenIterationResponse response;
  CallOptions call;
  call.wait_for_ready = true;
  HR_RETURN_IF_ERROR(Ask(*channels, options.dispatcher, kOpenIteration, request,
                         &response, call));
  std::shared_ptr<Reader> made(
      new Reader(std::move(options), std::move(channels)));
  made->client_id_ = response.client_id();
  HR_RETURN_IF_ERROR(RunOnOwnThread([made] { made->Beat(); }));
  return made;
}

// --- what the dispatcher says ---

void Reader::Beat() {
  const StopScope scope(&token_);
  Clock::time_point heard = Clock::now();
  while (!token_.cancelled()) {
    const Status s = BeatOnce();
    AskMore();
    MutexLock lock(mutex_);
    if (closed_) return;
    if (s.ok()) {
      heard = Clock::now();
      // Nothing more comes.
      if (finished_) return;
      continue;
    }
    const bool away = MayComeBack(s) && !absl::IsNotFound(s);
    if (!away || Clock::now() - heard > kDispatcherAway) {
      failed_ = s;
      changed_.NotifyAll();
      return;
    }
    changed_.WaitFor(mutex_, kBackOff);
  }
}

Status Reader::BeatOnce() {
  ClientHeartbeatRequest request;
  request.set_client_id(client_id_);
  request.set_wait_ms(kNewsWait);
  {
    MutexLock lock(mutex_);
    request.set_known(version_);
    request.set_round(next_round_);
    request.set_blocked_round(block_round_);
  }
  ClientHeartbeatResponse news;
  HR_RETURN_IF_ERROR(
      Ask(*channels_, options_.dispatcher, kClientHeartbeat, request, &news));
  TakeNews(news);
  return OkStatus();
}

void Reader::TakeNews(const ClientHeartbeatResponse& news) {
  MutexLock lock(mutex_);
  std::map<int64_t, Task> tasks;
  int others = 0;
  for (const ServiceTask& what : news.tasks()) {
    if (options_.local_only && !DataWorker::Find(what.address())) {
      ++others;
      continue;
    }
    const auto old = tasks_.find(what.id());
    Task& task = tasks[what.id()];
    if (old != tasks_.end()) task = std::move(old->second);
    task.what = what;
  }
  if (others > 0 && tasks.empty()) {
    failed_ = InvalidArgument(
        "Local reads require local tf.data workers, but no local worker is "
        "found.");
  }
  // Those that are gone, but are yet to answer.
  for (auto& [id, task] : tasks_) {
    if (!task.asked || tasks.contains(id)) continue;
    task.ended = true;
    tasks.emplace(id, std::move(task));
  }
  tasks_ = std::move(tasks);
  finished_ = news.finished();
  version_ = news.version();
  block_round_ = news.block_round();
  changed_.NotifyAll();
}

// --- asking for elements ---

bool Reader::ChooseTask(GetElementsRequest* request, std::string* address) {
  const int64_t room =
      most() - outstanding_ - static_cast<int64_t>(ready_.size());
  if (room <= 0) return false;
  const Clock::time_point now = Clock::now();
  std::vector<Task*> idle;
  size_t first = 0;
  for (auto& [id, task] : tasks_) {
    if (task.asked || task.ended || now < task.again) continue;
    if (id <= last_asked_) first = idle.size() + 1;
    idle.push_back(&task);
  }
  if (idle.empty()) return false;
  // In turn.
  Task& task = *idle[first % idle.size()];
  last_asked_ = task.what.id();
  task.asked = true;
  request->set_task_id(task.what.id());
  request->set_most(static_cast<int>(
      std::max<int64_t>(1, room / static_cast<int64_t>(idle.size()))));
  request->set_consumer(-1);
  request->set_round(-1);
  *address = task.what.address();
  return true;
}

// The task whose turn a round is; false where nobody knows one.
bool Reader::FindRound(int64_t round, Task** task) {
  std::vector<Task*> takes_turns;
  for (auto& [id, t] : tasks_) {
    if (t.what.starting_round() <= round) takes_turns.push_back(&t);
  }
  if (takes_turns.empty()) return false;
  *task = takes_turns[round % static_cast<int64_t>(takes_turns.size())];
  return true;
}

bool Reader::ChooseRound(GetElementsRequest* request, std::string* address) {
  const Clock::time_point now = Clock::now();
  int64_t chosen = -1;
  for (auto& [number, round] : rounds_) {
    if (round.state != Round::kAgain) continue;
    // Later ones wait for it: a task's rounds come in order.
    if (now < round.again) return false;
    chosen = number;
    break;
  }
  if (chosen < 0) {
    const bool room = next_round_ - round_ < most();
    if (!room || (block_round_ >= 0 && next_round_ >= block_round_)) {
      return false;
    }
    chosen = next_round_;
  }
  Task* task = nullptr;
  if (!FindRound(chosen, &task)) return false;
  // A task's rounds one after the other, so that they come in order.
  if (task->asked && !task->what.lost()) return false;
  Round& round = rounds_[chosen];
  next_round_ = std::max(next_round_, chosen + 1);
  if (task->what.lost()) {
    round.state = Round::kSkipped;
    changed_.NotifyAll();
    return ChooseRound(request, address);
  }
  round.state = Round::kAsked;
  task->asked = true;
  request->set_task_id(task->what.id());
  request->set_most(1);
  request->set_consumer(options_.consumer);
  request->set_round(chosen);
  *address = task->what.address();
  return true;
}

void Reader::AskMore() {
  while (true) {
    GetElementsRequest request;
    std::string address;
    int64_t number = 0;
    {
      MutexLock lock(mutex_);
      if (closed_ || !failed_.ok()) return;
      if (in_rounds() ? !ChooseRound(&request, &address)
                      : !ChooseTask(&request, &address)) {
        return;
      }
      outstanding_ += request.most();
      number = next_call_++;
      calls_[number] = nullptr;
    }
    request.set_trainer(options_.trainer);
    auto call = channels_->Start(
        address, kGetElements, WriteMessage(request), {},
        [self = shared_from_this(), number, request](const Answer& answer) {
          self->Answered(number, request, answer);
        });
    MutexLock lock(mutex_);
    // It may have ended by now.
    if (const auto at = calls_.find(number); at != calls_.end()) {
      at->second = call;
    }
    if (closed_ && call) call->Cancel();
  }
}

void Reader::Answered(int64_t number, const GetElementsRequest& request,
                      const Answer& answer) {
  StatusOr<ReadElements> elements =
      answer.ok() ? ReadAnswer(answer.body)
                  : StatusOr<ReadElements>(StatusOf(answer));
  {
    MutexLock lock(mutex_);
    outstanding_ -= request.most();
    calls_.erase(number);
    if (closed_) return;
    const auto task = tasks_.find(request.task_id());
    if (task != tasks_.end()) task->second.asked = false;
    if (in_rounds()) {
      AcceptRound(request.round(), std::move(elements));
    } else {
      Accept(task == tasks_.end() ? nullptr : &task->second,
             std::move(elements));
    }
    changed_.NotifyAll();
  }
  AskMore();
}

void Reader::Accept(Task* task, StatusOr<ReadElements> elements) {
  if (!elements.ok()) {
    if (task != nullptr) task->again = Clock::now() + kBackOff;
    if (!MayComeBack(elements.status())) failed_ = elements.status();
  } else {
    if (task != nullptr) task->ended = task->ended || elements->end;
    for (auto& item : elements->items) ready_.push_back(std::move(item));
  }
}

void Reader::AcceptRound(int64_t number, StatusOr<ReadElements> elements) {
  const auto at = rounds_.find(number);
  if (at == rounds_.end()) return;
  Round& round = at->second;
  if (!elements.ok()) {
    round.state = Round::kAgain;
    round.again = Clock::now() + kBackOff;
    if (!MayComeBack(elements.status())) failed_ = elements.status();
  } else if (elements->items.size() != 1) {
    failed_ = Internal("round ", number, " has ", elements->items.size(),
                       " elements");
  } else {
    round.state = Round::kThere;
    round.element = std::move(elements->items[0]);
  }
}

// --- giving them ---

bool Reader::TakeReady(StatusOr<Element>* out) {
  while (true) {
    const auto at = rounds_.find(round_);
    if (at == rounds_.end() || at->second.state < Round::kThere) break;
    const bool skipped = at->second.state == Round::kSkipped;
    *out = std::move(at->second.element);
    rounds_.erase(at);
    ++round_;
    if (!skipped) return true;
  }
  if (ready_.empty()) return false;
  *out = std::move(ready_.front());
  ready_.pop_front();
  return true;
}

bool Reader::AtEnd() const { return finished_ && outstanding_ == 0; }

Status Reader::Next(Element* out, bool* end) {
  StatusOr<Element> taken = Element();
  while (true) {
    bool there = false;
    {
      MutexLock lock(mutex_);
      there = TakeReady(&taken);
      if (!there) {
        HR_RETURN_IF_ERROR(failed_);
        *end = AtEnd();
        if (*end) return OkStatus();
      }
    }
    AskMore();
    if (there) break;
    HR_RETURN_IF_ERROR(CheckStop());
    MutexLock lock(mutex_);
    if (ready_.empty()) changed_.WaitFor(mutex_, kLooks);
  }
  HR_RETURN_IF_ERROR(taken.status());
  *out = *std::move(taken);
  return OkStatus();
}

void Reader::Close() {
  token_.Cancel();
  std::map<int64_t, std::shared_ptr<ClientCall>> calls;
  {
    MutexLock lock(mutex_);
    if (closed_) return;
    closed_ = true;
    calls.swap(calls_);
    changed_.NotifyAll();
  }
  for (const auto& [number, call] : calls) {
    if (call) call->Cancel();
  }
  ReleaseClientRequest request;
  request.set_client_id(client_id_);
  channels_->Start(options_.dispatcher, kReleaseClient, WriteMessage(request),
                   {}, [channels = channels_](const Answer&) {});
}

}  // namespace headrace::distributed::data_service
