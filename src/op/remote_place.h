// Where eager ops run that do not run in this process: the door of eager code
// to the tasks of a cluster.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "op/resolved_op.h"
#include "tensor/tensor.h"
#include "tensor/variant.h"

namespace headrace {

struct Function;  // graph/function.h; opaque here

// One device of another task. Thread-safe.
class RemotePlace {
 public:
  RemotePlace() { NoteAny(); }
  virtual ~RemotePlace() = default;
  virtual const std::string& device() const = 0;  // its full name
  // Runs there; inputs may lie anywhere. Outputs come here, but for resources
  // and variants, of which only names do.
  virtual Status Run(const ResolvedOp& op,
                     absl::Span<const Tensor* const> inputs,
                     absl::Span<Tensor> outputs) = 0;
  virtual Status Call(const std::shared_ptr<const Function>& function,
                      absl::Span<const Tensor* const> inputs,
                      std::vector<Tensor>* outputs) = 0;
  // The same value, which the device has as well from now on. InvalidArgument
  // for a resource or variant that lies elsewhere.
  virtual Status Take(const Tensor& t, Tensor* there) = 0;

  // Whether any was ever made, or could be.
  static bool Any() { return any_.load(std::memory_order_relaxed); }
  static void NoteAny() { any_.store(true, std::memory_order_relaxed); }

 private:
  static inline std::atomic<bool> any_{false};
};

// The tasks of a cluster, which functions of this process may name within.
// Thread-safe.
class RemoteTasks {
 public:
  RemoteTasks() { RemotePlace::NoteAny(); }
  virtual ~RemoteTasks() = default;
  // Calls a function of which nodes, or those of functions that it calls, name
  // other tasks than that of `place` (null: this process), where all else runs;
  // or one that takes resources both of this process and of tasks. False, and
  // nothing is run, for others.
  virtual StatusOr<bool> Call(const std::shared_ptr<const Function>& function,
                              const std::shared_ptr<RemotePlace>& place,
                              absl::Span<const Tensor* const> inputs,
                              std::vector<Tensor>* outputs) = 0;
  // The same of an op that calls a function. Unimplemented where it is given
  // such functions for anything else.
  virtual StatusOr<bool> Run(const ResolvedOp& op,
                             const std::shared_ptr<RemotePlace>& place,
                             absl::Span<const Tensor* const> inputs,
                             absl::Span<Tensor> outputs) = 0;
};
// Those that this process is connected to, or null.
std::shared_ptr<RemoteTasks> ConnectedTasks();
void SetConnectedTasks(std::shared_ptr<RemoteTasks> tasks);

// The place that this thread's ops go to; null: this process.
RemotePlace* ThisPlace();
void SetThisPlace(std::shared_ptr<RemotePlace> place);
// Where an op of these inputs runs: where its resources and variants are, else
// `otherwise`, which is ThisPlace if none is given. Null: here.
std::shared_ptr<RemotePlace> PlaceFor(absl::Span<const Tensor* const> inputs,
                                      std::shared_ptr<RemotePlace> otherwise);
std::shared_ptr<RemotePlace> PlaceFor(absl::Span<const Tensor* const> inputs);

// A tensor of another task, of which this process has the name alone: what a
// resource tensor or a variant of it holds here.
class RemoteName {
 public:
  virtual ~RemoteName() = default;
  virtual const std::shared_ptr<RemotePlace>& place() const = 0;
};
// Of a scalar of a resource or variant; null where it is of this process.
const RemoteName* RemoteNameOf(const Tensor& t);

}  // namespace headrace
