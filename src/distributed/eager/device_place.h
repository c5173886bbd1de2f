// A device of a task, as ops are sent to it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "distributed/eager/remote_context.h"
#include "distributed/eager/remote_handle.h"
#include "distributed/master/steps_together.h"
#include "graph/function.h"

namespace headrace::distributed {

// A call of a function.
struct FunctionCall {
  FunctionPtr function;
  std::vector<Tensor> inputs;
};
// Has a place run functions one behind the other, by one call of a task of ours
// (Unimplemented by others' end); their results have no place there. Null where
// they cannot go together: the task is not known to have all of the functions,
// or one gives a resource or variant.
StatusOr<std::unique_ptr<StepsTogether>> CallTogether(
    const std::shared_ptr<RemotePlace>& place,
    absl::Span<const FunctionCall> calls, std::chrono::microseconds within);

class DevicePlace : public RemotePlace,
                    public std::enable_shared_from_this<DevicePlace> {
 public:
  // `library`, which may be null: where functions are looked up before the
  // process' own.
  DevicePlace(std::shared_ptr<RemoteContext> context,
              std::shared_ptr<RemoteTask> task,
              const tensorflow::DeviceAttributes* device,
              std::shared_ptr<const FunctionLibrary> library)
      : context_(std::move(context)),
        task_(std::move(task)),
        device_(device),
        library_(std::move(library)) {}

  const std::string& device() const override { return device_->name(); }
  Status Run(const ResolvedOp& op, absl::Span<const Tensor* const> inputs,
             absl::Span<Tensor> outputs) override;
  Status Call(const FunctionPtr& function,
              absl::Span<const Tensor* const> inputs,
              std::vector<Tensor>* outputs) override;
  Status Take(const Tensor& t, Tensor* there) override;
  // As CallTogether.
  StatusOr<std::unique_ptr<StepsTogether>> Start(
      absl::Span<const FunctionCall> calls, std::chrono::microseconds within);

 private:
  struct Sending;
  struct Coming;

  Status SetInputs(absl::Span<const Tensor* const> inputs, Sending* run);
  void AddDropped(
      google::protobuf::RepeatedPtrField<tensorflow::eager::QueueItem>* items);
  bool Knows(const std::string& function);
  Status AddFunctions(const Sending& run,
                      tensorflow::eager::EnqueueRequest* request,
                      std::vector<std::string>* fresh);
  std::vector<Coming> AddSends(const Sending& run,
                               tensorflow::eager::EnqueueRequest* request);
  Status Enqueue(const tensorflow::eager::EnqueueRequest& request,
                 const std::vector<std::string>& fresh);
  RemoteHandlePtr HandleOf(int64_t op, size_t output, DType dtype);
  Status Send(Sending& run, absl::Span<Tensor> outputs);

  const std::shared_ptr<RemoteContext> context_;
  const std::shared_ptr<RemoteTask> task_;
  const tensorflow::DeviceAttributes* const device_;
  const std::shared_ptr<const FunctionLibrary> library_;
};

// A device that no task has: what is sent there is InvalidArgument.
class NoPlace : public RemotePlace {
 public:
  explicit NoPlace(std::string device) : device_(std::move(device)) {}
  const std::string& device() const override { return device_; }
  Status Run(const ResolvedOp&, absl::Span<const Tensor* const>,
             absl::Span<Tensor>) override {
    return Unknown();
  }
  Status Call(const FunctionPtr&, absl::Span<const Tensor* const>,
              std::vector<Tensor>*) override {
    return Unknown();
  }
  Status Take(const Tensor&, Tensor*) override { return Unknown(); }

 private:
  Status Unknown() const {
    return InvalidArgument(device_, " unknown device.");
  }
  const std::string device_;
};

}  // namespace headrace::distributed
