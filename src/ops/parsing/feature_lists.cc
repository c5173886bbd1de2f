#include "ops/parsing/feature_lists.h"

#include <algorithm>

namespace headrace {
namespace {

// The begin of each step's values, and the end of the last.
StatusOr<std::vector<int64_t>> ValueBegins(const ListCells& lists) {
  std::vector<int64_t> begins(lists.cells.size() + 1);
  for (size_t i = 0; i < lists.cells.size(); ++i) {
    if (__builtin_add_overflow(begins[i], lists.cells[i].count,
                               &begins[i + 1])) {
      return ResourceExhausted("too many values in a batch of examples");
    }
  }
  return begins;
}

Status CopyAll(const ListCells& lists, absl::Span<const int64_t> begins,
               Tensor& values) {
  for (size_t i = 0; i < lists.cells.size(); ++i) {
    if (lists.cells[i].count == 0) continue;
    HR_RETURN_IF_ERROR(CopyCell(lists.cells[i], begins[i], values));
  }
  return OkStatus();
}

Status EmitDense(KernelContext& c, const Column& column, const ListCells& lists,
                 bool batched, const ListOutputs& out) {
  const int64_t steps = lists.most_steps(), stride = column.stride();
  std::vector<int64_t> dims;
  if (batched) dims.push_back(lists.examples());
  dims.push_back(steps);
  const auto inner = column.shape.dims();
  dims.insert(dims.end(), inner.begin(), inner.end());
  HR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
  HR_RETURN_IF_ERROR(c.Allocate(out.values, shape));
  FillZero(c.output(out.values));
  int64_t* lengths = nullptr;  // one op tells none
  if (out.lengths >= 0) {
    HR_RETURN_IF_ERROR(
        c.Allocate(out.lengths, batched ? Shape{lists.examples()} : Shape()));
    lengths = c.out<int64_t>(out.lengths);
  }
  for (int64_t i = 0; i < lists.examples(); ++i) {
    const int64_t begin = lists.begins[i], end = lists.begins[i + 1];
    if (lengths) lengths[i] = end - begin;
    for (int64_t k = begin; k < end; ++k) {
      HR_RETURN_IF_ERROR(CopyCell(lists.cells[k],
                                  (i * steps + k - begin) * stride,
                                  c.output(out.values)));
    }
  }
  return OkStatus();
}

Status EmitSparse(KernelContext& c, const ListCells& lists, bool batched,
                  const ListOutputs& out) {
  HR_ASSIGN_OR_RETURN(const auto begins, ValueBegins(lists));
  const int64_t total = begins.back(), width = batched ? 3 : 2;
  HR_ASSIGN_OR_RETURN(const Shape indices_shape, Shape::Make({total, width}));
  HR_RETURN_IF_ERROR(c.Allocate(out.indices, indices_shape));
  HR_RETURN_IF_ERROR(c.Allocate(out.values, Shape{total}));
  HR_RETURN_IF_ERROR(c.Allocate(out.shape, Shape{width}));
  int64_t* index = c.out<int64_t>(out.indices);
  int64_t most = 0;
  for (int64_t i = 0; i < lists.examples(); ++i) {
    for (int64_t k = lists.begins[i]; k < lists.begins[i + 1]; ++k) {
      most = std::max(most, lists.cells[k].count);
      for (int64_t j = 0; j < lists.cells[k].count; ++j) {
        if (batched) *index++ = i;
        *index++ = k - lists.begins[i];
        *index++ = j;
      }
    }
  }
  int64_t* shape = c.out<int64_t>(out.shape);
  if (batched) *shape++ = lists.examples();
  *shape++ = lists.most_steps();
  *shape = most;
  return CopyAll(lists, begins, c.output(out.values));
}

Status EmitRagged(KernelContext& c, const Column& column,
                  const ListCells& lists, bool batched,
                  const ListOutputs& out) {
  HR_ASSIGN_OR_RETURN(const auto begins, ValueBegins(lists));
  HR_RETURN_IF_ERROR(c.Allocate(out.values, Shape{begins.back()}));
  HR_RETURN_IF_ERROR(
      EmitSplits(c, out.inner_splits, column.split_type, begins));
  HR_RETURN_IF_ERROR(EmitSplits(c, out.outer_splits, column.split_type,
                                batched ? absl::MakeConstSpan(lists.begins)
                                        : absl::Span<const int64_t>()));
  return CopyAll(lists, begins, c.output(out.values));
}

}  // namespace

int64_t ListCells::most_steps() const {
  int64_t most = 0;
  for (int64_t i = 0; i < examples(); ++i) {
    most = std::max(most, begins[i + 1] - begins[i]);
  }
  return most;
}

Status EmitLists(KernelContext& c, const Column& column, const ListCells& lists,
                 bool batched, const ListOutputs& out) {
  switch (column.kind) {
    case Column::kDense:
      return EmitDense(c, column, lists, batched, out);
    case Column::kSparse:
      return EmitSparse(c, lists, batched, out);
    case Column::kRagged:
      return EmitRagged(c, column, lists, batched, out);
  }
  return OkStatus();
}

}  // namespace headrace
