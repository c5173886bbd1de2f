// Clusters: tf.distribute.Server, tf.train.ClusterSpec, tf.compat.v1.Session of
// a server's target, and tf.distribute.MultiWorkerMirroredStrategy
// (https://www.tensorflow.org/api_docs/python/tf/distribute). Tasks of C++ and
// of Python are of one cluster: they share variables of parameter servers, and
// meet in the same sums.
//
//   tf::distribute::MultiWorkerMirroredStrategy strategy;  // by TF_CONFIG
//   tf::distribute::MultiWorkerMirroredStrategy::Scope scope(strategy);
//   tf::layers::Sequential model(...);  // the first worker's values
//   tf::SGD sgd(0.1);                   // of all workers' gradients
//   tf::train::Fit(model, sgd, loss, batches, {.steps = 100});
//
// Tasks talk over gRPC, by libheadrace_grpc.so: where that is not installed,
// what needs it throws kFailedPrecondition, which says what to install.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "headrace/gradient.h"
#include "headrace/tensor.h"

namespace headrace::tf {
namespace internal {
class Workers;
class WorkersScope;

// A call of a strategy's Run.
class HR_API ReplicaRun {
 public:
  explicit ReplicaRun(std::shared_ptr<Workers> workers);
  // What replicas left to the end, and End did not do, is dropped.
  ~ReplicaRun();
  ReplicaRun(const ReplicaRun&) = delete;
  ReplicaRun& operator=(const ReplicaRun&) = delete;
  void Begin(int replica);
  void End();

  struct State;

 private:
  std::unique_ptr<State> state_;
};
}  // namespace internal
}  // namespace headrace::tf

namespace headrace::tf::distribute {

// The jobs of a cluster, each of tasks that have a number and an address
// ("host:port"). Nothing is looked at but what the methods ask for: a Server
// refuses addresses that are none.
class HR_API ClusterSpec {
 public:
  using Tasks = std::map<int, std::string>;  // addresses by number

  ClusterSpec() = default;  // no job
  // Addresses of tasks 0, 1, ... of each job:
  //   ClusterSpec{{"ps", {"a:1"}}, {"worker", {"b:1", "c:1"}}}
  ClusterSpec(std::initializer_list<
              std::pair<const std::string, std::vector<std::string>>>
                  jobs)
      : ClusterSpec(std::map<std::string, std::vector<std::string>>(jobs)) {}
  explicit ClusterSpec(
      const std::map<std::string, std::vector<std::string>>& jobs);
  // For numbers with holes.
  static ClusterSpec OfTasks(std::map<std::string, Tasks> jobs);

  std::vector<std::string> jobs() const;  // sorted
  bool HasJob(const std::string& job) const { return jobs_.contains(job); }
  // These throw kInvalidArgument for a job, or a task, that is not there.
  const Tasks& tasks(const std::string& job) const;
  const std::string& address(const std::string& job, int index) const;

 private:
  std::map<std::string, Tasks> jobs_;
};

// Which task of which cluster a process is.
struct HR_API TaskConfig {
  ClusterSpec cluster;
  std::string job;  // "": not said
  int index = -1;   // -1: not said

  // The text of TF_CONFIG, as operators set it:
  //   {"cluster": {"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]},
  //    "task": {"type": "worker", "index": 0}}
  // Tasks of a job may also stand by number ({"1": "b:1"}). Keys beside these
  // are not looked at. "" is an empty cluster. Throws kInvalidArgument for what
  // is no JSON, and for parts of other kinds, which it names.
  static TaskConfig Parse(const std::string& text);
  // Of the environment's TF_CONFIG, an empty cluster where it is not set.
  static TaskConfig FromEnvironment();
};

// A task of a cluster. It runs parts of graphs, holds their variables and hands
// out what they send, from the constructor to Stop(), or until the last copy of
// the handle and the last strategy that uses it are gone. Thread-safe.
class HR_API Server {
 public:
  // Listens at the task's own address in the cluster; with port 0 at one that
  // is free. Throws as Python's does: kInternal for a cluster without the task,
  // also where it is not said, kInvalidArgument for addresses that are not
  // host:port, kUnknown where it cannot listen, and kFailedPrecondition without
  // the library of gRPC.
  Server(const ClusterSpec& cluster, const std::string& job, int index);
  explicit Server(const TaskConfig& task);

  // "grpc://host:port": what a Session takes to reach it.
  const std::string& target() const;
  // Waits until Stop is called, by another thread, or what ends the thread's
  // work (cancellation.h) ends the wait.
  void Join() const;
  // Ends sessions and steps under way, and answers nobody from then on; members
  // of groups first take what they are to get, for ten seconds at most. Twice
  // is once.
  void Stop() const;

 private:
  friend class internal::Workers;
  struct State;
  std::shared_ptr<State> state_;
};

struct SessionOptions {
  // How long a run, or what makes the session, may take, in seconds;
  // kDeadlineExceeded then. 0: no limit for runs, and ten minutes for the tasks
  // of the cluster to come.
  double operation_timeout = 0;
  // Which tasks the session knows and waits for, the server's own among them:
  // {"/job:ps", "/job:worker/task:1"} leaves other workers out. Empty: all.
  std::vector<std::string> device_filters;
};

// A session of a server's target: runs parts of a graph on the tasks of its
// cluster, each operation on the task that its device names
// ("/job:ps/task:0"). State lies on tasks and not in sessions: variables of one
// container and name (shared_name) are one variable, whichever session or
// language named them. Thread-safe; runs overlap.
class HR_API Session {
 public:
  using Named = std::vector<std::pair<std::string, Tensor>>;

  // `graph_def`: a serialised GraphDef, such as
  // graph.as_graph_def().SerializeToString() of Python gives. Nobody is asked
  // before the first Run. Throws kInvalidArgument for bytes that are no graph
  // and for a target that is no "grpc://host:port", kNotFound for unknown
  // operations, kFailedPrecondition without the library of gRPC.
  Session(const std::string& target, const std::string& graph_def,
          const SessionOptions& options = {});
  // The same with the graph of a serialised MetaGraphDef, as savers and
  // tf.compat.v1.train.export_meta_graph write it.
  static Session OfMetaGraph(const std::string& target,
                             const std::string& meta_graph_def,
                             const SessionOptions& options = {});

  // The tensors of `fetches`, in their order, and runs the operations of
  // `targets`. Tensors are named "node:1", and "node" is "node:0"; feeds take
  // the place of what the graph would compute, and have elements (traced
  // tensors are kInvalidArgument). Throws kInvalidArgument for names that the
  // graph does not have, feeds of another dtype and a run of nothing,
  // kUnavailable and kAborted where a task is gone, kDeadlineExceeded,
  // kCancelled behind Close, and the first error of an operation.
  std::vector<Tensor> Run(const Named& feeds,
                          const std::vector<std::string>& fetches,
                          const std::vector<std::string>& targets = {}) const;
  // Names of the tasks' devices: "/job:ps/replica:0/task:0/device:CPU:0", ...
  std::vector<std::string> Devices() const;
  // Runs under way end. Twice is once; the last copy's end does it, too.
  void Close() const;

 private:
  struct State;
  explicit Session(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

enum class ReduceOp { kSum, kMean };

struct CommunicationOptions {
  // Small tensors of one dtype are summed together, in packs of at most so many
  // bytes; 0: a megabyte. All workers say the same.
  int64_t bytes_per_pack = 0;
  // How long a collective may wait for other workers, in seconds;
  // kDeadlineExceeded then. 0: ten minutes.
  double timeout_seconds = 0;
};

// All workers alike, of as many replicas each: every worker runs the same
// program, and what they have is summed. Workers are the tasks of the jobs
// chief, master and worker, in this order; others (ps, evaluator) take no part.
// With one worker, or without a cluster, nothing travels.
//
// **All do the same.** Workers meet in the order of the program: none may sum,
// or make a variable in the scope, alone. In a traced function a collective has
// its number from the trace, so it meets itself at each call. Two that do not
// agree on a shape, a dtype or an operation throw kInvalidArgument or kInternal
// that names both; when a worker dies or ends, others' calls throw kUnavailable
// within ten seconds, and so do all further ones.
//
// **With Python.** Numbers of groups and collectives, first values of variables
// and packs of gradients are those of tf.distribute.MultiWorkerMirroredStrategy
// of this library's Python: a worker of C++ and one of Python train in one
// ring, with equal weights, where both programs make the same variables and
// steps in the same order. That holds for loops by hand and for train::Fit
// beside model.fit (below), also with several replicas a worker (Python:
// logical CPUs), as long as all have as many. Not there: the RING of
// TensorFlow's own workers (HEADRACE_TENSORFLOW_PEERS), NCCL asked for by
// options, and strategies in C++ and Python of one process, which count their
// groups apart.
class HR_API MultiWorkerMirroredStrategy {
 public:
  // By TF_CONFIG; starts the process' task. Throws what Server throws,
  // kInvalidArgument where there are several workers and the task is none of
  // them.
  // `replicas`: of each worker, from 1 (kInvalidArgument).
  explicit MultiWorkerMirroredStrategy(const CommunicationOptions& options = {},
                                       int replicas = 1);
  explicit MultiWorkerMirroredStrategy(const TaskConfig& task,
                                       const CommunicationOptions& options = {},
                                       int replicas = 1);
  // By a server that is there, of `task`.
  MultiWorkerMirroredStrategy(const TaskConfig& task, const Server& server,
                              const CommunicationOptions& options = {},
                              int replicas = 1);

  // How many workers there are, and which one this is, from 0.
  int size() const;
  int rank() const;
  // How many replicas this worker has, and all workers together.
  int replicas() const;
  int num_replicas() const { return size() * replicas(); }

  // What code gives for each of this worker's replicas, in their order:
  //   auto losses = strategy.Run([&](int replica) {
  //     tf::GradientTape tape;
  //     const tf::Tensor loss = LossOf(parts[replica]) /
  //                             strategy.num_replicas();
  //     sgd.Apply(tape.gradient(loss, variables), variables);
  //     return loss;
  //   });
  // One runs behind the other; in a traced function their parts of the graph
  // run side by side. All see the variables as they were before: what
  // optimizers of the scope are given is summed and applied behind the last
  // replica, once. Assignments are made where they stand, so the moving
  // averages of a batch normalization see the replicas one behind the other
  // (Python's take their mean). Sums of workers within are kFailedPrecondition,
  // as are a Run within a Run and optimizers that are not of the scope;
  // kInvalidArgument where replicas apply gradients of other variables.
  template <typename F>
  auto Run(const F& code) const {
    using R = std::invoke_result_t<const F&, int>;
    tf::internal::ReplicaRun run(workers_);
    if constexpr (std::is_void_v<R>) {
      for (int r = 0; r < replicas(); ++r) run.Begin(r), code(r);
      run.End();
    } else {
      std::vector<R> results;
      for (int r = 0; r < replicas(); ++r) {
        run.Begin(r);
        results.push_back(code(r));
      }
      run.End();
      return results;
    }
  }
  // The rows of a batch for each replica of this worker, as evenly as can be:
  // the first ones have a row more. Throws kInvalidArgument for components
  // without rows, of different or unknown numbers of rows, and for fewer rows
  // than replicas.
  std::vector<std::vector<Tensor>> Split(
      const std::vector<Tensor>& batch) const;
  // The sum or mean over all replicas of what each of this worker's has.
  // kInvalidArgument for another number of values, and as AllReduce.
  Tensor Reduce(ReduceOp op, const std::vector<Tensor>& of_replicas) const;

  // The sum or mean of a tensor over all workers, which have it in one shape;
  // of numbers or bools (which are summed as int32). Same bits on all workers.
  // kInvalidArgument for a mean of integers, kUnimplemented for strings.
  Tensor AllReduce(ReduceOp op, const Tensor& value) const;
  // The same of each; small ones go together.
  std::vector<Tensor> AllReduce(ReduceOp op,
                                const std::vector<Tensor>& values) const;
  // Sums of gradients; slices of all workers come one behind the other, and
  // null ones stay null.
  Gradients AllReduce(ReduceOp op, const Gradients& gradients) const;
  // The rows of all workers' tensors, by rank, of [rows, ...] with the same
  // further sizes; numbers of rows may differ.
  Tensor AllGather(const Tensor& value) const;
  // The first worker's value; all have one of that shape and dtype.
  Tensor Broadcast(const Tensor& value) const;
  // Waits for all workers.
  void Barrier() const;

  // While it lives, on the thread that made it: variables begin with the first
  // worker's value (of strings none can be made: kUnimplemented), and
  // optimizers that are made sum the gradients that they are given
  // (Optimizer::Apply), so that losses are to be divided by the number of
  // workers, or by the size of the global batch. Ends on its thread, scopes in
  // reverse order.
  //
  // train::Fit with such an optimizer divides the loss by the number of
  // replicas, as Keras does, and each batch among the worker's replicas
  // (Split); losses and metrics of reports are of all workers. Give all workers
  // as many batches of the same shapes, each its own part of the data
  // (Dataset::Shard(size(), rank())), and metrics, made in the scope, to all
  // alike. Beside model.fit of Python, whose metrics are made by compile():
  // make the optimizer and then the metrics. Epochs with validation data are
  // not in step with model.fit's.
  class HR_API Scope {
   public:
    explicit Scope(const MultiWorkerMirroredStrategy& strategy);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    std::unique_ptr<internal::WorkersScope> scope_;
  };

 protected:
  explicit MultiWorkerMirroredStrategy(
      std::shared_ptr<internal::Workers> workers)
      : workers_(std::move(workers)) {}
  std::shared_ptr<internal::Workers> workers_;
};

// One process with several replicas, a worker without others:
// tf.distribute.MirroredStrategy of so many CPUs (Python: logical devices). All
// share each variable.
class HR_API MirroredStrategy : public MultiWorkerMirroredStrategy {
 public:
  explicit MirroredStrategy(int replicas)
      : MultiWorkerMirroredStrategy(TaskConfig(), CommunicationOptions(),
                                    replicas) {}
};

}  // namespace headrace::tf::distribute
