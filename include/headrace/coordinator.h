// Parameter servers and a coordinator: tf.distribute.ParameterServerStrategy
// and tf.distribute.coordinator.ClusterCoordinator
// (https://www.tensorflow.org/api_docs/python/tf/distribute). One process, the
// coordinator, makes variables, which lie on the servers, and schedules traced
// functions, which the workers run. Servers and workers do nothing but join:
// they are Servers of cluster.h, tf.distribute.Server of Python, or what
// `headrace run` started.
//
//   using namespace tf::distribute;
//   ParameterServerStrategy strategy;  // by TF_CONFIG: jobs "ps" and "worker"
//   ClusterCoordinator coordinator(strategy);
//   ParameterServerStrategy::Scope scope(strategy);
//   tf::layers::Sequential model(...);  // its variables go to the servers
//   tf::SGD sgd(0.1);
//   auto step = tf::function([&](const WorkerIterator& batches) {
//     const tf::data::Element batch = batches.Next();
//     ...  // a tape, sgd.Apply(...)
//     return loss;
//   });
//   const PerWorkerDataset data = coordinator.CreatePerWorkerDataset(batches);
//   const WorkerIterator iterator = data.Begin();
//   for (int i = 0; i < 100; ++i) loss = coordinator.Schedule(step, iterator);
//   coordinator.Join();
//   loss.Fetch();  // a tf::Tensor
//
// Tasks talk over gRPC, by libheadrace_grpc.so: where that is not installed,
// what needs it throws kFailedPrecondition, which says what to install.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "headrace/cluster.h"
#include "headrace/data.h"
#include "headrace/function.h"

namespace headrace::tf::internal {
class Coordinating;
class IteratorOfWorkers;
class ScheduledCall;
class Servers;
class ServersScope;
struct DatasetOfWorkers;
}  // namespace headrace::tf::internal

namespace headrace::tf::distribute {

// Into how many parts a variable of that shape is divided, one number an axis:
// 1 for all but the first axis.
using Partitioner =
    std::function<std::vector<int64_t>(const TensorShape& shape, DType dtype)>;

namespace partitioners {
// So many parts, or as many as there are rows. These throw kInvalidArgument for
// numbers below 1; none is a number of bytes that is too large.
HR_API Partitioner FixedShards(int64_t num_shards);
// Parts of at least so many bytes, and at most `max_shards`; an element of
// strings counts 16 bytes.
HR_API Partitioner MinSize(int64_t min_shard_bytes = 256 << 10,
                           int64_t max_shards = 1);
// Parts of at most so many bytes (a row is never divided), and at most
// `max_shards`, where that is not 0.
HR_API Partitioner MaxSize(int64_t max_shard_bytes, int64_t max_shards = 0);
}  // namespace partitioners

// A variable in parts along its first axis, whose first rows the first part
// has. As a module it owns the parts: they are what variables() and optimizers
// see. In checkpoints it is one variable, of the whole, and so are its slots of
// an optimizer when all parts have theirs: any number of parts, a variable of
// one process, and Python's take their values. Moves as modules do.
class HR_API ShardedVariable : public Module {
 public:
  const std::vector<Variable>& parts() const { return parts_; }
  DType dtype() const;
  TensorShape shape() const;  // of the whole
  // The whole, of all servers.
  Tensor value() const;
  // The rows [indices..., ...] at those indices, int32 or int64 of any shape;
  // each server is asked for its rows alone, also for gradients, which are
  // slices of the parts. Throws kInvalidArgument for rows that there are not
  // (where it runs) and for other dtypes.
  Tensor Lookup(const Tensor& indices) const;
  // Each part takes its rows of a value of the whole shape and dtype, else
  // kInvalidArgument.
  void assign(const Tensor& value) const;
  void assign_add(const Tensor& delta) const;
  void assign_sub(const Tensor& delta) const;

 private:
  friend class ParameterServerStrategy;
  explicit ShardedVariable(std::vector<Variable> parts);
  std::vector<Tensor> RowsOf(const Tensor& whole) const;
  std::vector<Variable> parts_;
  std::vector<int64_t> sizes_;  // rows of each
};

struct ParameterServerOptions {
  // For MakeSharded alone; none: variables are whole.
  Partitioner variable_partitioner = {};
  // How long servers that are not up yet are waited for, in seconds;
  // kDeadlineExceeded or kUnavailable then.
  double timeout_seconds = 600;
};

// A handle; thread-safe. What the servers have for it ends with the last copy
// of the strategy, its coordinators and its variables' users, or ten minutes
// after the process' last word. A strategy that starts ends what programs
// before it have left on the tasks in this way. One a process.
class HR_API ParameterServerStrategy {
 public:
  using Options = ParameterServerOptions;
  // The cluster of TF_CONFIG, with tasks "ps" and "worker"; this process is its
  // task "chief", or none of it. Meets all servers. Throws kInvalidArgument for
  // a cluster without servers or workers, with several chiefs, or of which
  // this process is a server or a worker, and what Server throws.
  explicit ParameterServerStrategy(const Options& options = {});
  explicit ParameterServerStrategy(const TaskConfig& task,
                                   const Options& options = {});
  explicit ParameterServerStrategy(const ClusterSpec& cluster,
                                   const Options& options = {});

  int num_servers() const;
  int num_workers() const;

  // A variable in parts, as the partitioner says, each on the next server; one
  // part where there is no partitioner. Throws kInvalidArgument for scalars and
  // for parts along other axes than the first.
  ShardedVariable MakeSharded(const Tensor& initial,
                              const std::string& name = "Variable",
                              bool trainable = true) const;

  // While it lives, on the thread that made it: variables are made on the
  // servers, in turn, and hold their value there. Optimizers' slots lie beside
  // their variables. Reading or assigning them outside of scheduled functions
  // is a call to the server each. Where a server does not answer that is
  // kUnavailable. Ends on its thread, scopes in reverse order.
  class HR_API Scope {
   public:
    explicit Scope(const ParameterServerStrategy& strategy);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    std::unique_ptr<internal::ServersScope> scope_;
  };

 private:
  friend class ClusterCoordinator;
  explicit ParameterServerStrategy(std::shared_ptr<internal::Servers> servers);
  std::shared_ptr<internal::Servers> servers_;
};

// An iterator for each worker: an argument of scheduled functions, of which
// each takes elements of its worker's. Begins with a function's first use on a
// worker, and anew in each life of the worker. Copies are the same iterator.
class HR_API WorkerIterator {
 public:
  // The next element, in a function that is traced; the function fails with
  // kOutOfRange behind the last one. kFailedPrecondition elsewhere.
  data::Element Next() const;
  const data::ElementSpec& spec() const { return spec_; }

 private:
  friend class PerWorkerDataset;
  friend struct StructureTraits<WorkerIterator>;
  void TakeApart(tf::internal::Parts& parts) const;
  static WorkerIterator PutTogether(tf::internal::Reader& reader);
  Tensor handle_;
  data::ElementSpec spec_;
};

// A dataset for each worker.
class HR_API PerWorkerDataset {
 public:
  WorkerIterator Begin() const;
  const data::ElementSpec& spec() const;

 private:
  friend class ClusterCoordinator;
  std::shared_ptr<const internal::DatasetOfWorkers> state_;
};

// What a scheduled function will give, an R. Copies are the same value, which
// comes to this process when the function has run and outlives its worker.
// Thread-safe.
template <typename R>
class RemoteValue {
 public:
  RemoteValue() = default;  // none; fetching it throws kInvalidArgument
  // The value, waited for. Throws the function's error, and kCancelled where
  // another one's had it cancelled or the coordinator is gone.
  R Fetch() const;
  // Whether Fetch would not wait.
  bool IsSettled() const;

 private:
  friend class ClusterCoordinator;
  std::shared_ptr<internal::ScheduledCall> call_;
};

// Has the workers of a strategy run functions. Made twice of one strategy it is
// the same coordinator. Thread-safe. With its last copy all that were scheduled
// are cancelled.
//
// **Functions run at least once.** When a worker dies, or does not answer for
// nine seconds, another one runs what it had begun, and the worker is used
// again when it has come back; none of them need be there at first. Workers
// that are away for an hour are given up; without any left all calls throw
// kUnavailable. When a server is gone, or has come back without its variables,
// Schedule, Join and Done throw a kUnavailable that names it: start again from
// a checkpoint. Other errors of a function are thrown once by these, and
// cancel all that were scheduled.
class HR_API ClusterCoordinator {
 public:
  explicit ClusterCoordinator(const ParameterServerStrategy& strategy);
  ParameterServerStrategy strategy() const;

  // Has some worker run a function, by and by; returns at once, but where 2^18
  // functions wait. The function is traced here, in the strategy's scope. Its
  // tensors and what it captures are sent to the worker, large captures once.
  // Throws what tracing throws, the error of a function that was scheduled
  // before, kInvalidArgument for functions that use variables, datasets or
  // iterators of this process, kUnimplemented for those that give a resource,
  // and kFailedPrecondition in a function that is traced. Where loops or
  // branches of it use variables of several tasks the function is not one call:
  // its ops, and the turns, are one each, and begin anew with another worker.
  template <typename R, typename... A>
  RemoteValue<R> Schedule(const TracedFunction<R(A...)>& function,
                          const std::type_identity_t<A>&... args) const {
    const auto all = std::tie(args...);
    using All = std::tuple<const A&...>;
    RemoteValue<R> value;
    value.call_ =
        Scheduled(function.untyped(), tf::internal::GivenAll<All>(all));
    return value;
  }

  // Waits until all functions have run.
  void Join() const;
  // Whether all have run.
  bool Done() const;

  // A dataset for each worker: what the function gives for its number, from 0.
  // It is called here, and the datasets are sent as their graphs: kInvalid-
  // Argument or kUnimplemented for what has none, such as generators, and for
  // datasets of unlike elements.
  PerWorkerDataset CreatePerWorkerDataset(
      const std::function<data::Dataset(int worker)>& dataset) const;
  // A copy of one dataset for each.
  PerWorkerDataset CreatePerWorkerDataset(const data::Dataset& dataset) const;

 private:
  std::shared_ptr<internal::ScheduledCall> Scheduled(
      const Function& function, tf::internal::Given args) const;
  std::shared_ptr<internal::Coordinating> state_;
};

}  // namespace headrace::tf::distribute

namespace headrace::tf {

namespace internal {
// Waits for a call's end and puts its result there.
HR_API void FetchResult(const std::shared_ptr<ScheduledCall>& call,
                        Taken result);
HR_API bool IsSettled(const std::shared_ptr<ScheduledCall>& call);
}  // namespace internal

template <>
struct StructureTraits<distribute::WorkerIterator> {
  static void TakeApart(internal::Parts& p,
                        const distribute::WorkerIterator& i) {
    i.TakeApart(p);
  }
  static distribute::WorkerIterator PutTogether(internal::Reader& r) {
    return distribute::WorkerIterator::PutTogether(r);
  }
};

template <typename R>
R distribute::RemoteValue<R>::Fetch() const {
  return internal::Result<R>(
      [&](internal::Taken to) { internal::FetchResult(call_, to); });
}
template <typename R>
bool distribute::RemoteValue<R>::IsSettled() const {
  return internal::IsSettled(call_);
}

}  // namespace headrace::tf
