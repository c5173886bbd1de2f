// What strategies of several processes share: who takes part, and how tensors
// go between them. The twin of python/headrace/distribute/multi_worker.py:
// numbers, casts and packs are the same, so that workers of both languages
// meet.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "headrace/cluster.h"
#include "headrace/variable.h"
#include "op/attr.h"

namespace headrace {
class CollectiveEngine;
}

namespace headrace::tf::internal {

// Collectives' numbers that a body drew when it was first traced, and uses
// again whenever it is traced anew: workers that trace it at different times
// still meet.
struct KeptNumbers {
  std::vector<int32_t> numbers;
};

// All workers call the same methods in the same order. Thread-safe as long as
// that order is.
class Workers {
 public:
  Workers(const distribute::TaskConfig& task,
          std::optional<distribute::Server> server,
          const distribute::CommunicationOptions& options, int replicas,
          bool elastic = false);
  ~Workers();

  int size() const { return size_; }
  int rank() const { return rank_; }
  int replicas() const { return replicas_; }  // of this worker
  // Of workers that come and go: size and rank are those of the present
  // generation, before the first one of this worker alone, and no variable
  // begins with another's value.
  bool elastic() const { return elastic_; }
  // All that may take part.
  size_t most() const { return tasks_.size(); }
  int64_t generation() const { return generation_; }
  const std::vector<std::string>& members() const { return members_; }
  // Waits for the next generation; times in seconds.
  void Regroup(size_t fewest, double all_within, double timeout);
  // Why the generation is over; OK while it is not.
  Status End() const;
  // This worker takes no part any more.
  void Leave();

  // As the strategy's methods, of sums. Of one worker these are what it has.
  Tensor Sum(const Tensor& value);
  Gradients SumAll(const Gradients& gradients);
  Tensor Rows(const Tensor& value);
  Tensor OfFirst(const Tensor& value) { return Of(0, value); }
  Tensor Of(int rank, const Tensor& value);
  // The variable begins with the first worker's value.
  void Tell(const Variable& variable);
  // All variables are the sums of the workers' from now on.
  void SumVariables(const Module& of);

 private:
  int32_t NewNumber();
  // Throws within a replica's code, which not all workers run as often.
  void CheckMayMeet() const;
  Tensor Call(const char* op, std::vector<Tensor> given, AttrMap attrs);
  Tensor Gathered(const Tensor& value);
  Gradient SumSlices(const Gradient& slices);

  int size_ = 1, rank_ = 0, replicas_ = 1;
  bool elastic_ = false;
  std::vector<std::string> tasks_, members_;  // names
  std::string own_;
  int64_t generation_ = 0;
  int32_t group_ = 0;
  distribute::CommunicationOptions options_;
  std::optional<distribute::Server> server_;
  std::shared_ptr<CollectiveEngine> engine_;
  std::atomic<int32_t> next_{1};
};

// The workers whose scope is entered on this thread; null for none and for
// strategies of one replica.
std::shared_ptr<Workers> CurrentWorkers();

// Enters their scope on this thread; with null, leaves scopes: variables begin
// with what this worker gives them.
class WorkersScope {
 public:
  explicit WorkersScope(std::shared_ptr<Workers> workers);
  ~WorkersScope();
  WorkersScope(const WorkersScope&) = delete;
  WorkersScope& operator=(const WorkersScope&) = delete;

 private:
  std::shared_ptr<Workers> outer_;
};

// While it lives, numbers that this thread draws are kept, or are those kept.
class NumberScope {
 public:
  explicit NumberScope(KeptNumbers* kept);
  ~NumberScope();
  NumberScope(const NumberScope&) = delete;
  NumberScope& operator=(const NumberScope&) = delete;

 private:
  std::pair<KeptNumbers*, size_t> outer_;
};

}  // namespace headrace::tf::internal
