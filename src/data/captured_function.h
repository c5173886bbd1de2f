// The functions that datasets call: a traced function with what it captured.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "op/function_caller.h"

namespace headrace {

// Immutable and shared by the iterators of a dataset.
class CapturedFunction : public std::enable_shared_from_this<CapturedFunction> {
 public:
  // Calls of one iterator, by one thread at a time.
  class Run {
   public:
    // Consumes `args`, whose number is the function's less the captures.
    Status operator()(Element* args, Element* results);

   private:
    friend class CapturedFunction;
    std::shared_ptr<const CapturedFunction> function_;
    std::shared_ptr<BoundFunction> renewed_;  // of this iterator alone, or null
    RunServices services_;
    std::unique_ptr<FunctionRun> run_;
  };

  // The function of attribute `attr` of the op, with the inputs of its
  // argument `captures` bound behind what it is called with.
  static StatusOr<std::shared_ptr<const CapturedFunction>> Make(
      const KernelContext& c, StringView attr, StringView captures);
  // The function `ref`, with these values bound.
  static StatusOr<std::shared_ptr<const CapturedFunction>> Make(
      const KernelContext& c, const FuncRef& ref, std::vector<Tensor> captures);

  StatusOr<std::unique_ptr<Run>> Begin(const PullContext& c) const;
  int num_results() const { return function_->num_outputs(); }
  bool is_stateful() const { return function_->is_stateful(); }
  bool reads_files() const;
  // The results are the arguments.
  bool is_identity() const {
    return function_->is_identity() && num_args() == num_results();
  }
  // An error of a run, with upstream's words about where it happened. The end
  // of a sequence that the function met is no end of the iterator's: OutOfRange
  // becomes InvalidArgument.
  Status Blame(const Status& s, StringView iterator) const;
  int num_args() const {
    return function_->num_inputs() - static_cast<int>(captures_.size());
  }

 private:
  std::string name_;
  std::string owner_;  // "MapDataset:7", the dataset
  std::shared_ptr<BoundFunction> function_;
  std::vector<Tensor> captures_;
};
using FunctionRunPtr = std::unique_ptr<CapturedFunction::Run>;
using CapturedFunctionPtr = std::shared_ptr<const CapturedFunction>;

// The result of a predicate: InvalidArgument when it is no scalar bool.
StatusOr<bool> PredicateResult(const Element& results);
// The dataset that a function returned; InvalidArgument when it is none.
StatusOr<DatasetPtr> DatasetResult(const Element& results);

}  // namespace headrace
