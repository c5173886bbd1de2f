#include "distributed/master/many_steps.h"

#include <utility>

namespace headrace::distributed {
namespace {

// What the answer may have when a further step begins: so that it stays a
// message, whatever one step may give.
constexpr size_t kMostBytes = size_t{16} << 20;

}  // namespace

bool ManySteps::Begin() {
  MutexLock lock(mutex_);
  over_ |= begun_ > 0 && (bytes_ > kMostBytes || Clock::now() > until_);
  if (!over_) ++begun_;
  return !over_;
}

void ManySteps::End(tensorflow::RunStepResponse done) {
  MutexLock lock(mutex_);
  over_ |= done.status_code() != 0;
  bytes_ += done.ByteSizeLong();
  *ended_.add_done() = std::move(done);
}

void ManySteps::GiveBack(GiveBackStepsResponse* response) {
  MutexLock lock(mutex_);
  over_ = true;
  response->set_begun(begun_);
  *response->mutable_done() = ended_.done();
}

RunStepsResponse ManySteps::Take() {
  MutexLock lock(mutex_);
  return std::move(ended_);
}

ManyStepsCalls::Entry::Entry(ManyStepsCalls* all, int64_t request,
                             Clock::time_point until)
    : all_(all),
      request_(request),
      steps_(std::make_shared<ManySteps>(until)) {
  MutexLock lock(all_->mutex_);
  added_ = all_->calls_.emplace(request_, steps_).second;
}

ManyStepsCalls::Entry::~Entry() {
  if (!added_) return;
  MutexLock lock(all_->mutex_);
  all_->calls_.erase(request_);
}

Status ManyStepsCalls::GiveBack(const GiveBackStepsRequest& request,
                                GiveBackStepsResponse* response) {
  std::shared_ptr<ManySteps> steps;
  {
    MutexLock lock(mutex_);
    const auto it = calls_.find(request.request_id());
    if (it != calls_.end()) steps = it->second;
  }
  if (!steps) {
    return NotFound("no call of RunSteps has the number ",
                    request.request_id(), ", or it has ended");
  }
  steps->GiveBack(response);
  return OkStatus();
}

}  // namespace headrace::distributed
