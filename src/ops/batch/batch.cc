// Batch: rows of calls of a graph at the same time, handed to one of them.
#include <atomic>

#include "ops/batch/row_batcher.h"

namespace headrace {
namespace {

// Which rows of a batch are a call's.
std::atomic<int64_t> next_batch_id{1};

// A call's results: its id, then, for one of them, all rows and whose they are.
Status GatherBatch(const RowBatcher::Calls& calls, const BatchRules& rules) {
  int64_t rows = 0;
  for (const BatchedCallPtr& call : calls) {
    call->results = {
        Tensor::Scalar<int64_t>(next_batch_id.fetch_add(1)),
    };
    rows += call->rows;
  }
  std::vector<Tensor> all;
  for (size_t i = 0; i < calls[0]->inputs.size(); ++i) {
    HR_ASSIGN_OR_RETURN(all.emplace_back(),
                        JoinRows(calls, i, rules.Padded(rows)));
  }
  HR_ASSIGN_OR_RETURN(
      Tensor index,
      Tensor::Allocate(DType::kInt64,
                       Shape{static_cast<int64_t>(calls.size()), 3}));
  int64_t* to = index.data<int64_t>();
  int64_t at = 0;
  for (const BatchedCallPtr& call : calls) {
    *to++ = call->results[0].scalar<int64_t>();
    *to++ = at;
    *to++ = at += call->rows;
  }
  std::vector<Tensor>& last = calls.back()->results;
  last.push_back(std::move(index));
  for (Tensor& t : all) last.push_back(std::move(t));
  return OkStatus();
}

Status RowsTogether(KernelContext& c) {
  const ResolvedOp& op = c.op();
  HR_ASSIGN_OR_RETURN(BatchRules rules, BatchRules::Make(op));
  if (rules.threads <= 0) {
    return InvalidArgument("num_batch_threads must be positive; was ",
                           rules.threads);
  }
  if (!rules.sizes.empty() && rules.sizes.back() != rules.largest) {
    return InvalidArgument(
        "final entry in allowed_batch_sizes must equal max_batch_size");
  }
  HR_ASSIGN_OR_RETURN(auto inputs, KeptInputs(c, 0, c.num_inputs()));
  HR_RETURN_IF_ERROR(CheckRows(inputs));
  HR_ASSIGN_OR_RETURN(
      const auto batcher,
      RowBatcher::Of(c, rules, op.string_attr("batching_queue")));
  HR_ASSIGN_OR_RETURN(const auto pieces,
                      batcher->Join(std::move(inputs), [&](const auto& calls) {
                        return GatherBatch(calls, rules);
                      }));
  const BatchedCall& call = *pieces[0];
  const int n = c.num_inputs();
  c.set_output(n + 1, call.results[0]);
  if (call.results.size() > 1) {
    c.set_output(n, call.results[1]);
    for (int i = 0; i < n; ++i) c.set_output(i, call.results[i + 2]);
    return OkStatus();
  }
  HR_RETURN_IF_ERROR(c.Allocate(n, Shape{0, 3}));
  for (int i = 0; i < n; ++i) {
    Shape none = c.input(i).shape();
    none.set_dim(0, 0);
    HR_RETURN_IF_ERROR(c.Allocate(i, none));
  }
  return OkStatus();
}

Status TogetherShapes(ShapeContext& c) {
  const int n = c.num_inputs();
  for (int i = 0; i < n; ++i) {
    Shape s = c.input(i);
    if (s.known_rank() && s.rank() > 0) {
      s.set_dim(0, Shape::kUnknown);
      c.set_output(i, std::move(s));
    }
  }
  c.set_output(n, Shape{Shape::kUnknown, 3});
  c.set_output(n + 1, Shape());
  return OkStatus();
}

// Each call's rows of the gradients, from the call that has them.
Status GradientOfBatch(GradientContext& g) {
  const int n = g.num_inputs();
  const AttrMap attrs = {
      {"timeout_micros", g.op().int_attr("grad_timeout_micros")}};
  for (int i = 0; i < n; ++i) {
    if (!IsDifferentiable(g.op().input_types()[i])) continue;
    g.set(i, g("Unbatch", {g.grad_or_zeros(i), g.output(n), g.output(n + 1)},
               attrs));
  }
  return g.status();
}

// Its state has a name in graphs, as effects do; upstream's is not stateful.
HR_OP(Batch)
    .Input("in_tensors: T")
    .Output("batched_tensors: T")
    .Output("batch_index: int64")
    .Output("id: int64")
    .Attr("num_batch_threads: int")
    .Attr("max_batch_size: int")
    .Attr("max_enqueued_batches: int = 10")
    .Attr("batch_timeout_micros: int")
    .Attr("allowed_batch_sizes: list(int) = []")
    .Attr("grad_timeout_micros: int")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .Attr("batching_queue: string = ''")
    .Attr("T: list(type) >= 1")
    .Doc(
        "The rows of several calls at the same time, given to one of them; "
        "the others get none. Each call has an id, and batch_index says which "
        "rows are whose: id, begin, end.")
    .Stateful()
    .Shape(TogetherShapes)
    .Gradient(GradientOfBatch)
    .Cpu(ComputeOwn<RowsTogether>);

}  // namespace
}  // namespace headrace
