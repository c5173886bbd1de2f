#include "cc/cluster/scheduled.h"

#include <utility>

#include "base/cancellation.h"
#include "cc/compose.h"
#include "cc/dataset/state.h"
#include "cc/errors.h"
#include "cc/servers.h"

namespace headrace::tf::internal {
namespace {

// A stop of who waits for a result is not felt to be late.
constexpr std::chrono::milliseconds kLooks{20};
// Captured tensors of fewer bytes go with each call: to have a worker keep one
// is a call of its own.
constexpr size_t kLeastKept = 4096;
// Functions whose captures a worker keeps, before those of dead ones go.
constexpr size_t kManyKept = 64;

bool IsHeldThere(headrace::DType dtype) {
  return dtype == headrace::DType::kResource ||
         dtype == headrace::DType::kVariant;
}

void CheckCanGo(const BodyTrace& trace, const Value& value,
                size_t num_workers) {
  if (value.is_symbolic()) {
    Throw(ErrorCode::kFailedPrecondition,
          absl::StrCat("Function ", trace.name,
                       " uses a tensor of a function that is being traced"));
  }
  const headrace::Tensor& t = value.tensor();
  if (!IsHeldThere(t.dtype()) || RemoteNameOf(t) != nullptr) return;
  if (const auto iterator = IteratorIn(t)) {
    if (iterator->num_workers() == num_workers) return;
    Throw(ErrorCode::kInvalidArgument,
          "a WorkerIterator is of another coordinator's workers");
  }
  Throw(
      ErrorCode::kInvalidArgument,
      absl::StrCat("Function ", trace.name, " uses a ", DTypeName(t.dtype()),
                   " of the coordinator's process, which workers cannot: make "
                   "variables in the strategy's scope, and datasets by "
                   "CreatePerWorkerDataset"));
}

}  // namespace

std::shared_ptr<IteratorOfWorkers> IteratorIn(const headrace::Tensor& t) {
  if (t.dtype() != headrace::DType::kResource || !t.has_buffer() ||
      t.num_elements() != 1) {
    return nullptr;
  }
  return std::dynamic_pointer_cast<IteratorOfWorkers>(
      t.data<ResourceHandle>()->resource);
}

headrace::Tensor IteratorOfWorkers::On(const WorkersLife& life) {
  {
    MutexLock lock(mutex_);
    const Made& made = made_[life.worker];
    if (made.life == life.number) return made.handle;
  }
  const AttrMap attrs = AttrsOf(dataset_->spec);
  const headrace::Tensor dataset = RunThere(
      life.place, "DatasetFromGraph", {dataset_->graphs[life.worker]}, {})[0];
  const headrace::Tensor handle =
      RunThere(life.place, "AnonymousIteratorV3", {}, attrs)[0];
  RunThere(life.place, "MakeIterator", {dataset, handle}, {});
  MutexLock lock(mutex_);
  made_[life.worker] = {life.number, handle};
  return handle;
}

ScheduledCall::ScheduledCall(BodyTracePtr trace, absl::Span<const Value> leaves,
                             size_t num_workers)
    : trace_(std::move(trace)), leaves_(leaves.begin(), leaves.end()) {
  for (const Value& v : leaves_) {
    CheckCanGo(*trace_, v, num_workers);
    is_given_variables_ |= RemoteNameOf(v.tensor()) != nullptr;
  }
  for (const Value& v : trace_->function->captures()) {
    CheckCanGo(*trace_, v, num_workers);
  }
  for (const headrace::DType type :
       trace_->function->function()->result_types()) {
    if (!IsHeldThere(type)) continue;
    Throw(ErrorCode::kUnimplemented,
          absl::StrCat("Function ", trace_->name, " gives a ", DTypeName(type),
                       ", which cannot leave its task"));
  }
}

Status ScheduledCall::Run(WorkersLife* life) {
  return Caught("what a worker was to run", [&] {
    std::vector<const headrace::Tensor*> pointers;
    const std::vector<headrace::Tensor> inputs = InputsOn(life);
    for (const headrace::Tensor& t : inputs) pointers.push_back(&t);
    const FunctionPtr& f = trace_->function->function();
    std::vector<headrace::Tensor> outputs;
    if (!Check(life->tasks->calls().CallInSteps(f, life->place, pointers,
                                                &outputs))) {
      const auto began = std::chrono::steady_clock::now();
      Check(life->place->Call(f, pointers, &outputs));
      SetTook(std::chrono::steady_clock::now() - began, life);
    }
    Give(std::move(outputs));
    return OkStatus();
  });
}

Status ScheduledCall::Prepare(WorkersLife* life,
                              headrace::distributed::FunctionCall* call) {
  return Caught("what a worker was to run", [&] {
    *call = {trace_->function->function(), InputsOn(life)};
    return OkStatus();
  });
}

std::vector<headrace::Tensor> ScheduledCall::InputsOn(WorkersLife* life) {
  std::vector<headrace::Tensor> inputs;
  for (const Value& v : leaves_) {
    const auto iterator = IteratorIn(v.tensor());
    inputs.push_back(iterator ? iterator->On(*life) : v.tensor());
  }
  if (life->functions.size() > kManyKept) {
    std::erase_if(life->functions,
                  [](const auto& entry) { return entry.first.expired(); });
  }
  std::vector<headrace::Tensor>& captured = life->functions[trace_].captured;
  for (const Value& v : trace_->function->captures()) {
    const size_t next = inputs.size() - leaves_.size();
    if (next == captured.size()) {
      headrace::Tensor t = v.tensor();
      if (const auto iterator = IteratorIn(t)) {
        t = iterator->On(*life);
      } else if (!IsHeldThere(t.dtype()) && t.bytes() >= kLeastKept) {
        Check(life->place->Take(v.tensor(), &t));
      }
      captured.push_back(std::move(t));
    }
    inputs.push_back(captured[next]);
  }
  return inputs;
}

void ScheduledCall::Give(std::vector<headrace::Tensor> outputs) {
  MutexLock lock(mutex_);
  outputs_.clear();
  for (headrace::Tensor& t : outputs) outputs_.emplace_back(std::move(t));
}

std::chrono::nanoseconds ScheduledCall::Took(const WorkersLife& life) const {
  const auto it = life.functions.find(trace_);
  const bool known = it != life.functions.end() && !is_given_variables_;
  return known ? it->second.took : kUnknownTime;
}

void ScheduledCall::SetTook(std::chrono::nanoseconds took,
                            WorkersLife* life) const {
  life->functions[trace_].took = took;
}

void ScheduledCall::Settle(const Status& s) {
  MutexLock lock(mutex_);
  settled_ = true;
  error_ = s;
  ended_.NotifyAll();
}

void ScheduledCall::Fetch(Taken result) {
  std::vector<Value> outputs;
  while (true) {
    {
      MutexLock lock(mutex_);
      if (!settled_) ended_.WaitFor(mutex_, kLooks);
      if (settled_) {
        Check(error_);
        outputs = outputs_;
        break;
      }
    }
    Check(CheckStop());
  }
  trace_->Give(outputs, result);
}

bool ScheduledCall::IsSettled() const {
  MutexLock lock(mutex_);
  return settled_;
}

}  // namespace headrace::tf::internal
