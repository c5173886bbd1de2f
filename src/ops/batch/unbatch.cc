// Unbatch and UnbatchGrad: the rows of a batch given back to the calls that
// they came from, and their gradients gathered again.
#include <chrono>
#include <map>

#include "base/cancellation.h"
#include "base/timed_cond_var.h"
#include "op/resource.h"
#include "ops/array/block_copy.h"
#include "ops/batch/row_batcher.h"

namespace headrace {
namespace {

using Clock = std::chrono::steady_clock;

// Tensors that wait for whoever asks for their ids. Thread-safe.
class Exchange : public Resource {
 public:
  std::string DebugString() const override { return "UnbatchExchange"; }

  // What nobody takes goes at `until`.
  void Put(int64_t id, Tensor t, Clock::time_point until) {
    MutexLock lock(mutex_);
    const auto now = Clock::now();
    std::erase_if(kept_, [&](const auto& e) { return e.second.until < now; });
    kept_[id] = {std::move(t), until};
    changed_.NotifyAll();
  }
  // Waits until it is there; DeadlineExceeded at `until`, what CheckStop says.
  StatusOr<Tensor> Take(int64_t id, Clock::time_point until) {
    MutexLock lock(mutex_);
    while (true) {
      if (const auto at = kept_.find(id); at != kept_.end()) {
        Tensor t = std::move(at->second.tensor);
        kept_.erase(at);
        return t;
      }
      const auto now = Clock::now();
      if (now >= until) {
        return DeadlineExceeded(
            "Batched data did not arrive within timeout window.");
      }
      changed_.WaitUntil(mutex_,
                         std::min(until, now + std::chrono::milliseconds(20)));
      MutexUnlock open(mutex_);
      HR_RETURN_IF_ERROR(CheckStop());
    }
  }

  // That of the op's container and name, made where there is none.
  static StatusOr<std::shared_ptr<Exchange>> Of(const KernelContext& c) {
    std::string container = c.op().string_attr("container");
    if (container.empty()) container = "localhost";
    return c.services().resources->LookUpOrCreate<Exchange>(
        container, c.op().string_attr("shared_name"),
        []() -> StatusOr<std::shared_ptr<Exchange>> {
          return std::make_shared<Exchange>();
        });
  }

 private:
  struct Kept {
    Tensor tensor;
    Clock::time_point until;
  };

  Mutex mutex_;
  TimedCondVar changed_;
  std::map<int64_t, Kept> kept_ ABSL_GUARDED_BY(mutex_);
};

// A day: so long do gradients wait for each other, whose op has no time of its
// own.
constexpr std::chrono::hours kGradientsWait(24);

// The ids and their numbers of rows.
StatusOr<std::vector<std::pair<int64_t, int64_t>>> PartsOf(
    const Tensor& index) {
  std::vector<std::pair<int64_t, int64_t>> parts;
  const int64_t* at = index.data<int64_t>();
  for (int64_t i = 0; i < index.dim(0); ++i, at += 3) {
    if (at[1] < 0 || at[2] < at[1]) {
      return InvalidArgument("batch_index has rows from ", at[1], " to ",
                             at[2]);
    }
    parts.emplace_back(at[0], at[2] - at[1]);
  }
  return parts;
}

Status CheckIndex(ShapeContext& c, int index, int id) {
  const Shape& s = c.input(index);
  if (c.in_graph()) return OkStatus();
  if (s.known_rank() && (s.rank() != 2 || (s[1] >= 0 && s[1] != 3))) {
    return InvalidArgument("batch_index must be a matrix of 3 columns, got ",
                           s);
  }
  if (c.input(id).known_rank() && c.input(id).rank() != 0) {
    return InvalidArgument("id must be a scalar, got ", c.input(id));
  }
  return OkStatus();
}

Status RowsOfCall(KernelContext& c) {
  const Tensor& batched = c.input(0);
  const int64_t id = c.input(2).scalar<int64_t>();
  const int64_t timeout =
      std::clamp<int64_t>(c.op().int_attr("timeout_micros"), 0,
                          std::chrono::microseconds(kGradientsWait).count());
  const auto until = Clock::now() + std::chrono::microseconds(timeout);
  HR_ASSIGN_OR_RETURN(const auto parts, PartsOf(c.input(1)));
  HR_ASSIGN_OR_RETURN(const auto exchange, Exchange::Of(c));
  if (!parts.empty() && batched.rank() == 0) {
    return InvalidArgument("batched_tensor must have rows, got a scalar");
  }
  int64_t sum = 0;
  for (const auto& [_, rows] : parts) {
    if (rows > batched.dim(0) - sum) {
      return InvalidArgument(
          "Sum of split sizes must not exceed dim0-size of input tensor");
    }
    sum += rows;
  }
  HR_ASSIGN_OR_RETURN(auto kept, KeptInputs(c, 0, 1));
  int64_t at = 0;
  bool mine = false;
  for (const auto& [whose, rows] : parts) {
    Tensor part = kept[0].Rows(at, at + rows);
    at += rows;
    if (whose == id && !mine) {
      c.set_output(0, std::move(part));
      mine = true;
    } else {
      exchange->Put(whose, std::move(part), until);
    }
  }
  if (mine) return OkStatus();
  HR_ASSIGN_OR_RETURN(Tensor part, exchange->Take(id, until));
  if (part.dtype() != batched.dtype()) {
    return InvalidArgument("rows of ", DTypeName(part.dtype()),
                           " arrived where ", DTypeName(batched.dtype()),
                           " was expected");
  }
  c.set_output(0, std::move(part));
  return OkStatus();
}

Status CallShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckIndex(c, 1, 2));
  Shape s = c.input(0);
  if (s.known_rank() && s.rank() > 0) {
    s.set_dim(0, Shape::kUnknown);
    c.set_output(0, std::move(s));
  }
  return OkStatus();
}

// Ids are never used again, so all may wait in one place.
Status GradientOfUnbatch(GradientContext& g) {
  g.set(0, g("UnbatchGrad", {g.input(0), g.input(1), g.grad(), g.input(2)}));
  return g.status();
}

HR_OP(Unbatch)
    .Input("batched_tensor: T")
    .Input("batch_index: int64")
    .Input("id: int64")
    .Output("unbatched_tensor: T")
    .Attr("timeout_micros: int")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .Attr("T: type")
    .Doc(
        "The rows of a batch that are this call's (id). The call that has the "
        "batch hands the others theirs, which wait for them.")
    .Stateful()
    .Shape(CallShape)
    .Gradient(GradientOfUnbatch)
    .Cpu(ComputeOwn<RowsOfCall>);

Status GatherGradients(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const auto parts, PartsOf(c.input(1)));
  HR_ASSIGN_OR_RETURN(const auto exchange, Exchange::Of(c));
  HR_ASSIGN_OR_RETURN(auto kept, KeptInputs(c, 2, 3));
  const auto until = Clock::now() + kGradientsWait;
  exchange->Put(c.input(3).scalar<int64_t>(), std::move(kept[0]), until);
  if (parts.empty()) {
    c.set_output(0, c.input(0));
    return OkStatus();
  }
  RowBatcher::Calls calls;
  int64_t rows = 0;
  for (const auto& [id, _] : parts) {
    HR_ASSIGN_OR_RETURN(Tensor part, exchange->Take(id, until));
    if (part.rank() == 0 || part.dtype() != c.input(0).dtype() ||
        (!calls.empty() && part.shape().dims().subspan(1) !=
                               calls[0]->inputs[0].shape().dims().subspan(1))) {
      return InvalidArgument("gradients of a batch differ: ", part.Describe());
    }
    rows += part.dim(0);
    calls.push_back(std::make_shared<BatchedCall>());
    calls.back()->inputs = {std::move(part)};
  }
  HR_ASSIGN_OR_RETURN(Tensor all, JoinRows(calls, 0, rows));
  const Shape& original = c.input(0).shape();
  if (original.rank() != all.rank() || original[0] <= rows) {
    c.set_output(0, std::move(all));
    return OkStatus();
  }
  // Rows that the batch was filled up with have no gradient.
  Shape filled = all.shape();
  filled.set_dim(0, original[0]);
  HR_RETURN_IF_ERROR(c.Allocate(0, filled));
  FillZero(c.output(0));
  CopyRun(all.dtype(), all.raw(), c.output(0).raw(), all.num_elements());
  return OkStatus();
}

Status GatheredShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckIndex(c, 1, 3));
  const Shape& grad = c.input(2);
  if (grad.known_rank()) c.set_output(0, Shape::UnknownOfRank(grad.rank()));
  return OkStatus();
}

HR_OP(UnbatchGrad)
    .Input("original_input: T")
    .Input("batch_index: int64")
    .Input("grad: T")
    .Input("id: int64")
    .Output("batched_grad: T")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .Attr("T: type")
    .Doc(
        "Gradients of the calls of a batch, gathered for the one that had it; "
        "the others give theirs and get no rows.")
    .Stateful()
    .Shape(GatheredShape)
    .Cpu(ComputeOwn<GatherGradients>);

}  // namespace
}  // namespace headrace
