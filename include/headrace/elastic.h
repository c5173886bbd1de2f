// Workers that come and go while the others train on: the twin of
// tf.distribute.experimental.ElasticStrategy and ElasticState of this library's
// Python, which TensorFlow has no like of.
//
//   tf::distribute::ElasticStrategy strategy;  // by TF_CONFIG
//   std::optional<tf::distribute::ElasticStrategy::Scope> scope(strategy);
//   ...                                        // model, optimizer, variables
//   tf::distribute::ElasticState state(strategy, {{"model", model},
//                                                 {"sgd", sgd}});
//   state.Run([&] {  // begins again whenever workers are other ones
//     while (state.commits() < 1000) {
//       ...          // a step
//       state.Commit();
//     }
//   });
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "headrace/checkpoint.h"
#include "headrace/cluster.h"

namespace headrace::tf::distribute {

struct ElasticOptions {
  // With fewer nobody trains on; 0: more than half of all. Where half of them
  // suffice, a network that is cut in two may leave two halves that both go on.
  int min_workers = 0;
  // How long the first generation waits for all workers, before fewer suffice,
  // and how long `min_workers` are waited for; in seconds.
  double start_seconds = 60, timeout_seconds = 600;
  CommunicationOptions communication = {};
  int replicas = 1;  // of each worker
};

// A MultiWorkerMirroredStrategy whose workers may come and go: those that are
// there train on without a restart. The cluster names all that may take part,
// of which some may never be there; of Python, too, where the programs do the
// same. Until ElasticState::Run a worker is alone with its variables; size()
// and rank() are those of the generation of workers from then on, and traced
// functions are traced anew in each. (ConcreteFunctions that a program keeps
// belong to their generation.)
class HR_API ElasticStrategy : public MultiWorkerMirroredStrategy {
 public:
  // Throws kInvalidArgument for numbers that cannot be, and what
  // MultiWorkerMirroredStrategy throws.
  explicit ElasticStrategy(const ElasticOptions& options = {});
  explicit ElasticStrategy(const TaskConfig& task,
                           const ElasticOptions& options = {});

 private:
  friend class ElasticState;
  ElasticOptions options_;
};

// What the workers of an ElasticStrategy have alike, and keep when others come
// or go: the variables that a Checkpoint of the same parts would hold. They are
// set back to the last commit when a step fails with its workers, and given to
// workers that come. (Iterators are given to those that come, and not set
// back.) Variables that are made in Run are to be made alike by all: by equal
// seeds; optimizers' slots need nothing. Of one thread.
class HR_API ElasticState {
 public:
  // Names of parts are distinct; modules must outlive the state.
  ElasticState(const ElasticStrategy& strategy,
               const std::vector<Checkpoint::Part>& parts);
  ~ElasticState();

  int64_t commits() const;     // how often the workers have committed
  int64_t generation() const;  // of workers, from 1; 0 before Run
  // The names of the workers that take part, by rank.
  std::vector<std::string> members() const;
  // [first, behind the last) of this worker's of `count` parts of a step, which
  // are numbered alike whoever takes part. kInvalidArgument below 0.
  std::pair<int64_t, int64_t> Share(int64_t count) const;

  // Keeps the variables as they are now, on all workers behind the same step.
  // Throws kAborted where other workers take part from now on (Run goes on with
  // them), and kFailedPrecondition where the variables of workers differ behind
  // the first step together.
  void Commit();

  // What train() gives, which trains on from the state that it finds. It begins
  // when the workers have one state, and begins again, behind the last commit,
  // whenever they become other ones; Run ends when it has ended on all. Throws
  // kDeadlineExceeded where too few workers are there, which tells what is
  // known of each, kOutOfRange where the others have done their work and left,
  // kFailedPrecondition under HEADRACE_COLLECTIVES=mpi, and other errors of
  // train() that are not of other workers.
  template <typename F>
  auto Run(const F& train) {
    using R = std::invoke_result_t<const F&>;
    if constexpr (std::is_void_v<R>) {
      RunAgain([&] { train(); });
    } else {
      std::optional<R> found;
      RunAgain([&] { found.emplace(train()); });
      return *std::move(found);
    }
  }

 private:
  void RunAgain(const std::function<void()>& train);
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace::tf::distribute
