#include "serving/batch/batch_tensors.h"

#include <algorithm>
#include <cstring>

namespace headrace::serving {
namespace {

constexpr int kMostPaddedRank = 6;

// Fills a plain or string tensor with its first `from` element.
Status FillWithFirst(const Tensor& from, Tensor& to) {
  const int64_t count = to.num_elements();
  if (IsPlain(to.dtype())) {
    const size_t size = DTypeSize(to.dtype());
    for (int64_t i = 0; i < count; ++i) {
      std::memcpy(to.data<char>() + i * size, from.raw(), size);
    }
    return OkStatus();
  }
  if (to.dtype() != DType::kString) {
    return Unimplemented("padding of inputs of type ", DTypeName(to.dtype()));
  }
  std::fill_n(to.data<std::string>(), count, *from.data<std::string>());
  return OkStatus();
}

// Copies the last dimension's run `run` of `from` to where it lies in a larger
// tensor of the same rank.
void CopyRun(const Tensor& from, int64_t run, Tensor& to) {
  const int last = from.rank() - 1;
  const int64_t length = from.dim(last);
  int64_t place = 0, stride = to.dim(last), rest = run;
  for (int i = last - 1; i >= 0; --i) {
    place += rest % from.dim(i) * stride;
    rest /= from.dim(i);
    stride *= to.dim(i);
  }
  if (IsPlain(from.dtype())) {
    const size_t size = DTypeSize(from.dtype());
    std::memcpy(to.data<char>() + place * size,
                from.data<char>() + run * length * size, length * size);
  } else {
    std::copy_n(from.data<std::string>() + run * length, length,
                to.data<std::string>() + place);
  }
}

// Copies the rows of `from` to as many rows of `to`, whose other dimensions may
// be longer.
Status CopyPadded(const Tensor& from, Tensor to) {
  if (from.num_elements() == to.num_elements()) {
    CopyElements(from, to);
    return OkStatus();
  }
  HR_RETURN_IF_ERROR(FillWithFirst(from, to));
  const int64_t runs = from.shape().Product(0, from.rank() - 1);
  for (int64_t run = 0; run < runs; ++run) CopyRun(from, run, to);
  return OkStatus();
}

// The shape that holds input `i` of all tasks.
StatusOr<Shape> JoinedShape(absl::Span<BatchTask> tasks, size_t i,
                            int64_t size) {
  Shape shape = tasks[0].inputs[i].shape();
  for (const BatchTask& task : tasks.subspan(1)) {
    for (int d = 1; d < shape.rank(); ++d) {
      shape.set_dim(d, std::max(shape[d], task.inputs[i].dim(d)));
    }
  }
  shape.set_dim(0, size);
  return Shape::Make(shape.dims());
}

StatusOr<Tensor> JoinInput(absl::Span<BatchTask> tasks, size_t i,
                           int64_t size) {
  HR_ASSIGN_OR_RETURN(const Shape shape, JoinedShape(tasks, i, size));
  HR_ASSIGN_OR_RETURN(Tensor joined,
                      Tensor::Allocate(tasks[0].inputs[i].dtype(), shape));
  int64_t row = 0, first = 0;  // of the last task that has rows
  for (const BatchTask& task : tasks) {
    if (task.rows == 0) continue;
    first = row;
    HR_RETURN_IF_ERROR(
        CopyPadded(task.inputs[i], joined.Rows(row, row + task.rows)));
    row += task.rows;
  }
  const Tensor filling = joined.Rows(first, std::min(first + 1, size));
  for (; row < size; ++row) {
    Tensor to = joined.Rows(row, row + 1);
    CopyElements(filling, to);
  }
  return joined;
}

}  // namespace

StatusOr<int64_t> RowsOf(const Tensors& inputs, bool padded) {
  if (inputs.empty()) {
    return InvalidArgument(
        "Batching Run() must have at least one input tensor");
  }
  for (const Tensor& t : inputs) {
    if (t.rank() < 1) {
      return InvalidArgument(
          "Batching Run() input tensors must have at least one dimension");
    }
    if (t.dim(0) != inputs[0].dim(0)) {
      return InvalidArgument(
          "Batching Run() input tensors must have equal 0th-dimension size");
    }
    if (!padded) continue;
    if (t.rank() > kMostPaddedRank) {
      return InvalidArgument(
          "Only tensors with rank from 1 to 6 can be padded.");
    }
    if (t.num_elements() == 0) {
      return InvalidArgument("An empty tensor cannot be padded; its shape is ",
                             t.shape());
    }
  }
  return inputs[0].dim(0);
}

int64_t ExecutionSize(const BatchingOptions& options, int64_t rows) {
  const auto& sizes = options.allowed_batch_sizes;
  const auto it = std::lower_bound(sizes.begin(), sizes.end(), rows);
  // Without rows there is none to fill up with.
  return it == sizes.end() || rows == 0 ? rows : *it;
}

StatusOr<Tensors> JoinInputs(absl::Span<BatchTask> tasks, int64_t size) {
  if (tasks.size() == 1 && tasks[0].rows == size) {
    return std::move(tasks[0].inputs);
  }
  Tensors joined;
  joined.reserve(tasks[0].inputs.size());
  for (size_t i = 0; i < tasks[0].inputs.size(); ++i) {
    HR_ASSIGN_OR_RETURN(Tensor input, JoinInput(tasks, i, size));
    joined.push_back(std::move(input));
  }
  return joined;
}

Status CheckOutputs(const Tensors& outputs, int64_t size) {
  for (const Tensor& t : outputs) {
    if (t.rank() < 1) {
      return FailedPrecondition("Batched output tensor has 0 dimensions");
    }
    if (t.dim(0) != size) {
      return FailedPrecondition(
          "Batched output tensor's 0th dimension does not equal the sum of the "
          "0th dimension sizes of the input tensors");
    }
  }
  return OkStatus();
}

Tensors RowsOfAll(const Tensors& outputs, int64_t begin, int64_t rows) {
  Tensors cut;
  cut.reserve(outputs.size());
  for (const Tensor& t : outputs) cut.push_back(t.Rows(begin, begin + rows));
  return cut;
}

StatusOr<Tensor> JoinOutputPieces(absl::Span<const Tensor> pieces) {
  Shape shape = pieces[0].shape();
  int64_t rows = 0;
  for (const Tensor& piece : pieces) {
    if (piece.dtype() != pieces[0].dtype() ||
        piece.shape().Sub(1, piece.rank()) != shape.Sub(1, shape.rank())) {
      return FailedPrecondition(
          "The batches into which a request was split gave outputs ",
          pieces[0].Describe(), " and ", piece.Describe(),
          ", which do not fit together");
    }
    rows += piece.dim(0);
  }
  shape.set_dim(0, rows);
  HR_ASSIGN_OR_RETURN(Tensor joined,
                      Tensor::Allocate(pieces[0].dtype(), shape));
  int64_t row = 0;
  for (const Tensor& piece : pieces) {
    Tensor to = joined.Rows(row, row + piece.dim(0));
    CopyElements(piece, to);
    row += piece.dim(0);
  }
  return joined;
}

}  // namespace headrace::serving
