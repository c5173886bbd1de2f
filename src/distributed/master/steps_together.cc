#include "distributed/master/steps_together.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/cancellation.h"
#include "distributed/messages.h"
#include "distributed/request_ids.h"
#include "distributed/wire/methods.h"
#include "tensor/tensor_proto.h"

namespace headrace::distributed {
namespace {

// A stop is not felt to be late.
constexpr std::chrono::milliseconds kLooksForStop{20};

}  // namespace

StatusOr<tensorflow::RunStepRequest> RunStepMessage(
    const std::string& session, const std::string& partial_run,
    const StepRequest& r) {
  tensorflow::RunStepRequest request;
  request.set_session_handle(session);
  request.set_partial_run_handle(partial_run);
  for (const auto& [name, tensor] : r.feeds) {
    auto* named = request.add_feed();
    named->set_name(name);
    HR_RETURN_IF_ERROR(TensorToProto(tensor, named->mutable_tensor()));
  }
  for (const std::string& f : r.fetches) request.add_fetch(f);
  for (const std::string& t : r.targets) request.add_target(t);
  *request.mutable_options() = r.options;
  return request;
}

Status ReadStep(const tensorflow::RunStepResponse& response,
                const std::vector<std::string>& fetches,
                std::vector<Tensor>* fetched) {
  if (response.status_code() != 0) {
    return Status(static_cast<absl::StatusCode>(response.status_code()),
                  response.status_error_message());
  }
  std::map<StringView, const tensorflow::TensorProto*> named;
  for (const auto& t : response.tensor()) named[t.name()] = &t.tensor();
  fetched->clear();
  for (const std::string& fetch : fetches) {
    const auto it = named.find(fetch);
    if (it == named.end()) {
      return Internal("the task answered ", response.tensor_size(),
                      " tensors to ", fetches.size(), " fetches, and not ",
                      fetch);
    }
    HR_ASSIGN_OR_RETURN(Tensor t, TensorFromProto(*it->second));
    fetched->push_back(std::move(t));
  }
  return OkStatus();
}

StatusOr<std::unique_ptr<StepsTogether>> StepsTogether::Start(
    std::shared_ptr<Channel> channel, const std::string& session,
    const std::vector<StepRequest>& steps, std::chrono::microseconds within) {
  RunStepsRequest request;
  request.set_session_handle(session);
  request.set_request_id(NewRequestId());
  request.set_begin_within_us(within.count());
  std::vector<std::vector<std::string>> fetches;
  for (const StepRequest& step : steps) {
    HR_ASSIGN_OR_RETURN(*request.add_step(), RunStepMessage("", "", step));
    fetches.push_back(step.fetches);
  }
  return Start(std::move(channel),
               {master::kRunSteps.path, master::kGiveBackSteps.path},
               request.request_id(), WriteMessage(request), std::move(fetches));
}

std::unique_ptr<StepsTogether> StepsTogether::Start(
    std::shared_ptr<Channel> channel, const Methods& methods, int64_t request,
    Bytes message, std::vector<std::vector<std::string>> fetches) {
  std::unique_ptr<StepsTogether> made(new StepsTogether);
  made->channel_ = std::move(channel);
  made->request_ = request;
  made->give_back_ = methods.give_back;
  made->fetches_ = std::move(fetches);
  CallOptions options;
  options.parts_alone = true;
  options.on_part = [shared = made->shared_](
                        Bytes part, const std::function<void()>& next) {
    {
      MutexLock lock(shared->mutex);
      shared->parts.push_back(std::move(part));
    }
    next();
  };
  made->call_ = made->channel_->Start(
      methods.run, std::move(message), options,
      [shared = made->shared_](Answer answer) {
        {
          MutexLock lock(shared->mutex);
          if (answer.body.size() > 0) {
            shared->parts.push_back(std::move(answer.body));
          }
          shared->end = StatusOf(answer);
        }
        // Behind the lock: who is woken within it waits for it once more.
        shared->changed.NotifyAll();
      });
  return made;
}

StepsTogether::~StepsTogether() {
  bool ended;
  {
    MutexLock lock(shared_->mutex);
    ended = shared_->end.has_value();
  }
  if (!ended && call_) call_->Cancel();
}

StatusOr<bool> StepsTogether::Wait(std::chrono::milliseconds time) {
  const Clock::time_point until = Clock::now() + time;
  while (true) {
    {
      MutexLock lock(shared_->mutex);
      if (shared_->end) return true;
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
      if (left.count() <= 0) return false;
      shared_->changed.WaitFor(shared_->mutex, std::min(left, kLooksForStop));
      if (shared_->end) return true;
    }
    HR_RETURN_IF_ERROR(CheckStop());
  }
}

StatusOr<std::vector<StepResult>> StepsTogether::Take() {
  std::vector<Bytes> parts;
  {
    MutexLock lock(shared_->mutex);
    parts.swap(shared_->parts);
  }
  std::vector<StepResult> results;
  for (const Bytes& part : parts) {
    RunStepsResponse response;
    HR_RETURN_IF_ERROR(ReadMessage(part, &response));
    for (const auto& done : response.done()) {
      if (taken_ == fetches_.size()) {
        return Internal("the task answered more than ", fetches_.size(),
                        " steps");
      }
      StepResult& result = results.emplace_back();
      result.status = ReadStep(done, fetches_[taken_++], &result.fetched);
      if (result.status.ok()) continue;
      taken_ = fetches_.size();  // none follows
      return results;
    }
  }
  return results;
}

Status StepsTogether::end() const {
  MutexLock lock(shared_->mutex);
  return shared_->end.value_or(OkStatus());
}

StatusOr<std::optional<size_t>> StepsTogether::GiveBack() {
  GiveBackStepsRequest request;
  request.set_request_id(request_);
  GiveBackStepsResponse response;
  CallOptions options;
  options.deadline = Clock::now() + master::kGiveBackSteps.deadline;
  const Status s =
      CallAndWait(*channel_, give_back_, request, &response, options);
  if (absl::IsNotFound(s)) return std::optional<size_t>();
  HR_RETURN_IF_ERROR(s);
  if (response.begun() < 0 ||
      static_cast<size_t>(response.begun()) > fetches_.size()) {
    return Internal("the task began ", response.begun(), " of ",
                    fetches_.size(), " steps");
  }
  return std::optional<size_t>(static_cast<size_t>(response.begun()));
}

}  // namespace headrace::distributed
