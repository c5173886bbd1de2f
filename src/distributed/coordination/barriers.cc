#include "distributed/coordination/barriers.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "distributed/messages.h"
#include "distributed/service.h"
#include "distributed/wire/methods.h"
#include "xla/tsl/protobuf/distributed_runtime_payloads.pb.h"

namespace headrace::distributed {
namespace {

using namespace tensorflow;  // NOLINT: the messages of the service

constexpr size_t kMostNamed = 20;  // of tasks in the text of an error

// "name::counter", as errors say it.
std::string TextOf(const std::string& name, int64_t counter) {
  return absl::StrCat(name, "::", counter);
}

// The error as TensorFlow marks those of barriers.
Status OfBarrier(Status s, const std::string& name, int64_t counter) {
  BarrierError mark;
  mark.set_barrier_id(name);
  mark.set_counter(counter);
  s.SetPayload("type.googleapis.com/tensorflow.BarrierError",
               absl::Cord(mark.SerializeAsString()));
  return Marked(std::move(s));
}

// With the marks of the error, as TensorFlow's tasks look for them.
Answer WithMarks(const Status& s) {
  Answer answer = AnswerOf(s);
  distributed_runtime::GrpcPayloadContainer marks;
  s.ForEachPayload([&](StringView url, const absl::Cord& value) {
    (*marks.mutable_payloads())[std::string(url)] = std::string(value);
  });
  answer.details = marks.SerializeAsString();
  return answer;
}

Answer ResultOf(const Status& result, int64_t counter) {
  if (!result.ok()) return WithMarks(result);
  BarrierResponse response;
  response.set_counter(counter);
  return AnswerOf(OkStatus(), WriteMessage(response));
}

Status Stranger(const CoordinatedTask& task, const std::string& name,
                int64_t counter) {
  return OfBarrier(
      InvalidArgument("Unexpected task (", NameOf(IdOf(task)),
                      ") that is not in the cluster called the barrier. "
                      "Barrier Id: ",
                      TextOf(name, counter)),
      name, counter);
}

Status OtherCount(const BarrierRequest& request, int64_t counter) {
  return OfBarrier(
      Internal(
          "Barrier (", TextOf(request.barrier_id(), request.counter()),
          ") is invoked by the task, but the service thinks it is the ",
          counter, "-th instance. ",
          request.counter() == 0 || counter == 0
              ? "The service or task probably restarted, check the earlier "
                "logs to debug further. Usually, a restart on the stale tasks "
                "will resolve the issue."
              : "One task is probably way too quick / slow in its execution. "
                "For example, one task started a barrier early, which timed "
                "out, and started a second barrier before the late task even "
                "joined once."),
      request.barrier_id(), counter);
}

}  // namespace

Status Barriers::CheckName(const std::string& name) const {
  if (name.size() <= limits_.name) return OkStatus();
  return InvalidArgument("a barrier's name of ", name.size(),
                         " bytes; at most ", limits_.name, " may be");
}

int Barriers::PlaceOf(const TaskId& task) const {
  const auto at = std::lower_bound(tasks_.begin(), tasks_.end(), task);
  return at == tasks_.end() || *at != task
             ? -1
             : static_cast<int>(at - tasks_.begin());
}

StatusOr<std::shared_ptr<const Barriers::Places>> Barriers::PlacesOf(
    const BarrierRequest& request) const {
  Places places;
  if (request.tasks().empty()) {
    places.resize(tasks_.size());
    std::iota(places.begin(), places.end(), 0);
    return std::make_shared<const Places>(std::move(places));
  }
  for (const CoordinatedTask& task : request.tasks()) {
    const int place = PlaceOf(IdOf(task));
    if (place < 0) {
      return Stranger(task, request.barrier_id(), request.counter());
    }
    if (places.size() == tasks_.size()) break;  // one has come twice
    places.push_back(place);
  }
  std::sort(places.begin(), places.end());
  if (request.tasks_size() > static_cast<int>(places.size()) ||
      std::adjacent_find(places.begin(), places.end()) != places.end()) {
    return nullptr;
  }
  return std::make_shared<const Places>(std::move(places));
}

StatusOr<Barriers::At> Barriers::FindOrMake(const std::string& name) {
  if (const auto at = barriers_.find(name); at != barriers_.end()) return at;
  if (barriers_.size() >= limits_.barriers) {
    if (ended_.empty()) {
      return ResourceExhausted("barrier ", name, ": tasks wait at ",
                               limits_.barriers, " others, as many as may be");
    }
    barriers_.erase(ended_.front());
    ended_.pop_front();
  }
  return barriers_.try_emplace(name).first;
}

Status Barriers::Check(const BarrierRequest& request, const Barrier& b,
                       int source,
                       const std::shared_ptr<const Places>& tasks) const {
  const std::string& name = request.barrier_id();
  const std::string text = TextOf(name, request.counter());
  if (!tasks || *tasks != *b.tasks) {
    return OfBarrier(
        InvalidArgument("Conflicting tasks specified by different processes "
                        "for the same barrier: ",
                        text,
                        ". Check that the callers are invoking the barrier "
                        "with the same arguments."),
        name, request.counter());
  }
  if (!std::binary_search(b.tasks->begin(), b.tasks->end(), source)) {
    return OfBarrier(
        InvalidArgument("A non-participating task (", NameOf(tasks_[source]),
                        ") called the barrier: ", text),
        name, request.counter());
  }
  // The next meeting begins when this one is over.
  const bool next =
      b.over && b.counter < INT64_MAX && request.counter() == b.counter + 1;
  if (request.counter() == b.counter || next) return OkStatus();
  return OtherCount(request, b.counter);
}

void Barriers::Begin(At at, std::chrono::milliseconds patience) {
  Barrier& b = at->second;
  b.deadline = loop_->At(
      loop_->Now() + patience,
      [weak = weak_from_this(), name = at->first, counter = b.counter] {
        if (const auto self = weak.lock()) self->Late(name, counter);
      });
}

void Barriers::End(At at, const Status& result, Ending* then) {
  Barrier& b = at->second;
  if (b.first >= 0) loop_->Forget(b.deadline);
  b.over = true;
  b.result = result;
  b.ended = ended_.insert(ended_.end(), at->first);
  b.reached.clear();
  b.first = -1;
  held_ -= b.held.size();
  const Answer answer = ResultOf(result, b.counter);
  for (auto& [place, call] : std::exchange(b.held, {})) {
    then->push_back([call = call, answer] { call->Finish(answer); });
  }
}

Status Barriers::Joined(const BarrierRequest& request, const Call& call,
                        Ending* then) {
  HR_RETURN_IF_ERROR(stopped_);
  const std::string& name = request.barrier_id();
  const int source = PlaceOf(IdOf(request.source_task()));
  if (source < 0) {
    return Stranger(request.source_task(), name, request.counter());
  }
  HR_ASSIGN_OR_RETURN(const std::shared_ptr<const Places> tasks,
                      PlacesOf(request));
  if (!loop_) {
    HR_ASSIGN_OR_RETURN(loop_, make_loop_());
  }
  if (request.counter() != 0 && !barriers_.contains(name)) {
    return OtherCount(request, 0);
  }
  if (held_ >= limits_.waiting) {
    return ResourceExhausted("barrier ", name, ": ", limits_.waiting,
                             " calls wait at barriers already");
  }
  HR_ASSIGN_OR_RETURN(const At at, FindOrMake(name));
  Barrier& b = at->second;
  if (!b.tasks) b.tasks = tasks ? tasks : std::make_shared<const Places>();
  if (const Status s = Check(request, b, source, tasks); !s.ok()) {
    // One that does not agree spoils it for all, who would else wait for what
    // does not come.
    if (!b.over) End(at, s, then);
    return s;
  }
  if (b.over && request.counter() != b.counter) {
    ended_.erase(b.ended);
    b.over = false;
    b.counter = request.counter();
    b.result = OkStatus();
  }
  if (b.over) {
    then->push_back([call, answer = ResultOf(b.result, b.counter)] {
      call->Finish(answer);
    });
    return OkStatus();
  }
  if (b.first < 0) {
    for (const int place : *b.tasks) {
      const auto failed = failed_.find(place);
      if (failed == failed_.end()) continue;
      const Status s = OfBarrier(
          Internal("Task (", NameOf(tasks_[place]),
                   ") is already in error before the barrier was called. "
                   "Barrier Id: ",
                   TextOf(name, b.counter),
                   " Task error: ", failed->second.ToString()),
          name, b.counter);
      End(at, s, then);
      return s;
    }
  }
  Call& held = b.held[source];
  if (held) {
    then->push_back([old = held, name, counter = b.counter] {
      old->Finish(AnswerOf(
          Cancelled("Cancelled because there's a more recent barrier call for ",
                    TextOf(name, counter), " from the same task.")));
    });
  } else {
    ++held_;
  }
  held = call;
  b.reached.insert(source);
  if (b.first < 0) {
    b.first = source;
    const std::chrono::milliseconds longest = limits_.longest;
    Begin(at,
          std::clamp(std::chrono::milliseconds(request.barrier_timeout_in_ms()),
                     std::chrono::milliseconds(0), longest));
  }
  if (b.reached.size() == b.tasks->size()) End(at, OkStatus(), then);
  return OkStatus();
}

void Barriers::Reach(const BarrierRequest& request, const Call& call) {
  const std::string& name = request.barrier_id();
  Ending then;
  Status s = CheckName(name);
  if (s.ok()) {
    MutexLock lock(mutex_);
    s = Joined(request, call, &then);
  }
  RunAll(then);
  if (!s.ok()) return call->Finish(WithMarks(s));
  call->OnCancel([weak = weak_from_this(), name,
                  place = PlaceOf(IdOf(request.source_task())),
                  held = std::weak_ptr<ServerCall>(call)] {
    const auto self = weak.lock();
    const auto gone = held.lock();
    if (self && gone) self->Drop(name, place, gone);
  });
}

void Barriers::Drop(const std::string& name, int place, const Call& gone) {
  MutexLock lock(mutex_);
  const auto at = barriers_.find(name);
  if (at == barriers_.end()) return;
  const auto held = at->second.held.find(place);
  if (held == at->second.held.end() || held->second != gone) return;
  at->second.held.erase(held);
  --held_;
}

void Barriers::Late(const std::string& name, int64_t counter) {
  Ending then;
  {
    MutexLock lock(mutex_);
    const auto at = barriers_.find(name);
    if (at == barriers_.end()) return;
    Barrier& b = at->second;
    if (b.over || b.counter != counter) return;
    std::string absent;
    size_t named = 0;
    for (const int place : *b.tasks) {
      if (b.reached.contains(place)) continue;
      if (++named > kMostNamed) break;
      absl::StrAppend(&absent, NameOf(tasks_[place]), "\n");
    }
    End(at,
        OfBarrier(
            DeadlineExceeded(
                "Barrier timed out. Id: ", TextOf(name, counter),
                ". This usually happens because a task triggered the barrier "
                "too early or too slowly. Please look at the task logs (both "
                "timed out and first task) to debug further.\n"
                "# of tasks that reached the barrier: ",
                b.reached.size(), "/", b.tasks->size(),
                ".\nThe first task at the barrier: ", NameOf(tasks_[b.first]),
                ". Some timed out task names:\n", absent),
            name, counter),
        &then);
  }
  RunAll(then);
}

Status Barriers::Cancel(const CancelBarrierRequest& request) {
  const std::string& name = request.barrier_id();
  const std::string text = TextOf(name, request.counter());
  Ending then;
  HR_RETURN_IF_ERROR(CheckName(name));
  {
    MutexLock lock(mutex_);
    HR_RETURN_IF_ERROR(stopped_);
    if (PlaceOf(IdOf(request.source_task())) < 0) {
      return Stranger(request.source_task(), name, request.counter());
    }
    const auto known = barriers_.find(name);
    const int64_t counter =
        known == barriers_.end() ? 0 : known->second.counter;
    if (counter != request.counter()) {
      return FailedPrecondition(
          "Barrier (", text,
          ") is cancelled by task, but the service thinks it is the ", counter,
          "-th instance. This is likely due to a restart in the task or "
          "service.");
    }
    HR_ASSIGN_OR_RETURN(const At at, FindOrMake(name));
    Barrier& b = at->second;
    if (b.over) {
      return FailedPrecondition("Barrier (", text,
                                ") has already been passed with status code: ",
                                static_cast<int>(b.result.code()));
    }
    End(at,
        OfBarrier(Cancelled("Barrier (", text, ") is cancelled by task: ",
                            NameOf(IdOf(request.source_task()))),
                  name, b.counter),
        &then);
  }
  RunAll(then);
  return OkStatus();
}

void Barriers::EndAllWith(int place, const std::string& why, Ending* then) {
  for (auto at = barriers_.begin(); at != barriers_.end(); ++at) {
    const Barrier& b = at->second;
    if (b.over ||
        !std::binary_search(b.tasks->begin(), b.tasks->end(), place)) {
      continue;
    }
    End(at,
        OfBarrier(Internal("Barrier failed because: ", why,
                           ". Barrier Id: ", TextOf(at->first, b.counter),
                           ", Task: ", NameOf(tasks_[place])),
                  at->first, b.counter),
        then);
  }
}

void Barriers::Failed(const TaskId& task, const Status& why, Ending* then) {
  const int place = PlaceOf(task);
  if (place < 0) return;
  MutexLock lock(mutex_);
  failed_[place] = why;
  EndAllWith(place, absl::StrCat("task is set to ERROR: ", why.ToString()),
             then);
}

void Barriers::Left(const TaskId& task, Ending* then) {
  MutexLock lock(mutex_);
  EndAllWith(PlaceOf(task), "task disconnected", then);
}

void Barriers::Back(const TaskId& task) {
  MutexLock lock(mutex_);
  failed_.erase(PlaceOf(task));
}

void Barriers::Stop(const Status& why) {
  Ending then;
  std::unique_ptr<EventLoop> loop;  // ends behind the lock, which it may want
  {
    MutexLock lock(mutex_);
    stopped_ = why;
    for (auto at = barriers_.begin(); at != barriers_.end(); ++at) {
      if (!at->second.over) End(at, why, &then);
    }
    loop = std::move(loop_);
  }
  RunAll(then);
}

std::map<std::string, Method> Barriers::Methods(std::shared_ptr<Barriers> b) {
  std::map<std::string, Method> methods;
  methods[coordination::kBarrier.path] = [b](const Call& call,
                                             const Bytes& bytes) {
    BarrierRequest request;
    const Status status = ReadMessage(bytes, &request);
    if (!status.ok()) return call->Finish(AnswerOf(status));
    b->Reach(request, call);
  };
  methods[coordination::kCancelBarrier.path] =
      AtOnce<CancelBarrierRequest, CancelBarrierResponse>(
          [b](const CancelBarrierRequest& in, auto*) { return b->Cancel(in); });
  return methods;
}

}  // namespace headrace::distributed
