// BatchFunction: a function called once for the rows of several calls.
#include <numeric>

#include "op/function_caller.h"
#include "ops/array/block_copy.h"
#include "ops/batch/row_batcher.h"

namespace headrace {
namespace {

Status CheckResults(const std::vector<Tensor>& results, size_t wanted,
                    int64_t rows, int64_t size) {
  if (results.size() != wanted) {
    return Internal("Wrong number of batched output tensors");
  }
  for (const Tensor& t : results) {
    if (t.rank() == 0) {
      return FailedPrecondition("Batched output tensor has 0 dimensions");
    }
    if (t.dim(0) == size) continue;
    return FailedPrecondition(
        "Batched output tensor's 0th dimension does not equal the sum of the "
        "0th dimension sizes of the input tensors. 0th dimension size: ",
        t.dim(0), "; batch size: ", rows,
        "; unbatched tasks size: 0; padding size: ", size - rows);
  }
  return OkStatus();
}

// A function, and the tensors that all its calls get behind the rows.
struct BatchedFunction {
  BoundFunction* function;
  const RunServices& services;
  std::vector<Tensor> captured;
  size_t results;

  Status Call(const RowBatcher::Calls& calls, const BatchRules& rules) const {
    int64_t rows = 0;
    for (const BatchedCallPtr& call : calls) rows += call->rows;
    const int64_t size = rules.Padded(rows);
    std::vector<Tensor> inputs, found;
    for (size_t i = 0; i < calls[0]->inputs.size(); ++i) {
      HR_ASSIGN_OR_RETURN(inputs.emplace_back(), JoinRows(calls, i, size));
    }
    inputs.insert(inputs.end(), captured.begin(), captured.end());
    if (static_cast<int>(inputs.size()) != function->num_inputs()) {
      return InvalidArgument("Function takes ", function->num_inputs(),
                             " argument(s) but ", inputs.size(),
                             " argument(s) were passed");
    }
    HR_RETURN_IF_ERROR(
        function->Call(services, absl::MakeSpan(inputs), &found));
    HR_RETURN_IF_ERROR(CheckResults(found, results, rows, size));
    int64_t at = 0;
    for (const BatchedCallPtr& call : calls) {
      for (const Tensor& t : found) {
        call->results.push_back(t.Rows(at, at + call->rows));
      }
      at += call->rows;
    }
    return OkStatus();
  }
};

class BatchFunctionKernel : public Kernel {
 public:
  BatchFunctionKernel(const ResolvedOp& op, BatchRules rules)
      : f_(op.attr<FuncRef>("f")), rules_(std::move(rules)) {}

  static StatusOr<std::unique_ptr<Kernel>> Make(const ResolvedOp& op) {
    HR_ASSIGN_OR_RETURN(BatchRules rules, BatchRules::Make(op));
    if (!rules.sizes.empty() && !rules.split &&
        rules.sizes.back() != rules.largest) {
      return InvalidArgument(
          "final entry in allowed_batch_sizes must equal max_batch_size when "
          "enable_large_batch_splitting is False");
    }
    return std::unique_ptr<Kernel>(
        new BatchFunctionKernel(op, std::move(rules)));
  }
  bool own_outputs() const override { return true; }

  Status Run(KernelContext& c) override {
    const ArgRange in = c.op().input_range("in_tensors");
    HR_ASSIGN_OR_RETURN(auto inputs, KeptInputs(c, in.begin, in.end));
    HR_RETURN_IF_ERROR(CheckRows(inputs));
    HR_ASSIGN_OR_RETURN(const std::shared_ptr<BoundFunction> f,
                        CallerOf(c.services()).BindLoosely(f_));
    BatchedFunction function{
        f.get(), c.services(), {}, static_cast<size_t>(c.num_outputs())};
    HR_ASSIGN_OR_RETURN(function.captured,
                        KeptInputs(c, in.end, c.num_inputs()));
    HR_ASSIGN_OR_RETURN(
        const auto batcher,
        RowBatcher::Of(
            c, rules_,
            absl::StrCat(f_.name, "/", c.op().string_attr("batching_queue"))));
    HR_ASSIGN_OR_RETURN(
        const auto pieces,
        batcher->Join(std::move(inputs), [&](const auto& calls) {
          return function.Call(calls, rules_);
        }));
    return SetResults(c, pieces);
  }

 private:
  static Status SetResults(KernelContext& c, const RowBatcher::Calls& pieces) {
    for (int i = 0; i < c.num_outputs(); ++i) {
      const DType wanted = c.op().output_types()[i];
      if (pieces[0]->results[i].dtype() != wanted) {
        return InvalidArgument("output ", i, " is a ",
                               DTypeName(pieces[0]->results[i].dtype()),
                               " tensor, expected ", DTypeName(wanted));
      }
      if (pieces.size() == 1) {
        c.set_output(i, pieces[0]->results[i]);
        continue;
      }
      // As if the results were the inputs of calls.
      RowBatcher::Calls parts;
      int64_t rows = 0;
      for (const BatchedCallPtr& piece : pieces) {
        parts.push_back(std::make_shared<BatchedCall>());
        parts.back()->inputs = {piece->results[i]};
        rows += piece->rows;
      }
      HR_ASSIGN_OR_RETURN(Tensor all, JoinRows(parts, 0, rows));
      c.set_output(i, std::move(all));
    }
    return OkStatus();
  }

  const FuncRef f_;
  const BatchRules rules_;
};

// No call has a low priority here, so what is said of these has nothing to do.
HR_OP(BatchFunction)
    .Input("in_tensors: Tin")
    .Input("captured_tensors: Tcaptured")
    .Output("out_tensors: Tout")
    .Attr("f: func")
    .Attr("num_batch_threads: int")
    .Attr("max_batch_size: int")
    .Attr("batch_timeout_micros: int")
    .Attr("max_enqueued_batches: int = 10")
    .Attr("allowed_batch_sizes: list(int) = []")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .Attr("batching_queue: string = ''")
    .Attr("low_priority_max_batch_size: int = 0")
    .Attr("low_priority_batch_timeout_micros: int = 0")
    .Attr("low_priority_allowed_batch_sizes: list(int) = []")
    .Attr("low_priority_max_enqueued_batches: int = 0")
    .Attr(
        "mixed_priority_policy: "
        "{'low_priority_padding_with_max_batch_size', "
        "'low_priority_padding_with_next_allowed_batch_size', "
        "'priority_isolation', 'priority_merge'} = "
        "'low_priority_padding_with_max_batch_size'")
    .Attr(
        "batch_padding_policy: {'PAD_UP', 'BATCH_DOWN', "
        "'MINIMIZE_TPU_COST_PER_REQUEST'} = 'PAD_UP'")
    .Attr("Tin: list(type) >= 1")
    .Attr("Tcaptured: list(type) >= 0")
    .Attr("Tout: list(type) >= 1")
    .Attr("enable_large_batch_splitting: bool = false")
    .Doc(
        "Calls f once for the rows of several calls at the same time, filled "
        "up to a size that is allowed, and gives each its rows of the "
        "results.")
    .Stateful()
    .Shape(UnknownShape)
    .Cpu(BatchFunctionKernel::Make);

}  // namespace
}  // namespace headrace
