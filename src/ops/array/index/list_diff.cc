#include "op/op.h"
#include "ops/array/block_copy.h"
#include "ops/array/index/value_table.h"

namespace headrace {
namespace {

Status ListDiffRule(ShapeContext& c) {
  for (int i = 0; i < 2; ++i) {
    if (c.input(i).known_rank() && c.input(i).rank() != 1) {
      return InvalidArgument(i == 0 ? "x" : "y", " should be a 1D vector.");
    }
    c.set_output(i, Shape{Shape::kUnknown});
  }
  return OkStatus();
}

template <typename T>
std::vector<int64_t> Missing(const Tensor& x, const Tensor& y) {
  OrderTable table;
  std::vector<int64_t> owner, left;
  const T *xs = x.data<T>(), *ys = y.data<T>();
  for (int64_t i = 0; i < y.num_elements(); ++i) {
    bool added;
    table.FindOrAdd(
        HashOf(ys[i]), [&](int64_t e) { return ys[owner[e]] == ys[i]; },
        &added);
    // Entry number e of the table stands for y[owner[e]]: the table keeps no
    // keys itself.
    if (added) owner.push_back(i);
  }
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    const int64_t at = table.Find(
        HashOf(xs[i]), [&](int64_t e) { return ys[owner[e]] == xs[i]; });
    if (at < 0) left.push_back(i);
  }
  return left;
}

Status ListDiff(KernelContext& c) {
  const Tensor& x = c.input(0);
  if (c.input(1).num_elements() > OrderTable::kMostEntries) {
    return Unimplemented("ListDiff of more than ", OrderTable::kMostEntries,
                         " elements");
  }
  std::vector<int64_t> left;
  if (!DispatchDType(x.dtype(), HashableTypes{}, [&](auto tag) {
        left = Missing<typename decltype(tag)::type>(x, c.input(1));
      })) {
    return Unimplemented("ListDiff of ", DTypeName(x.dtype()));
  }
  const auto n = static_cast<int64_t>(left.size());
  HR_RETURN_IF_ERROR(c.Allocate(0, Shape{n}));
  HR_RETURN_IF_ERROR(c.Allocate(1, Shape{n}));
  for (int64_t i = 0; i < n; ++i) {
    CopyRun(x.dtype(), At(x, left[i]), At(c.output(0), i), 1);
    if (c.output(1).dtype() == DType::kInt32) {
      c.out<int32_t>(1)[i] = static_cast<int32_t>(left[i]);
    } else {
      c.out<int64_t>(1)[i] = left[i];
    }
  }
  return OkStatus();
}

HR_OP(ListDiff)
    .Input("x: T")
    .Input("y: T")
    .Output("out: T")
    .Output("idx: out_idx")
    .Attr("T: type")
    .Attr("out_idx: {int32, int64} = DT_INT32")
    .Doc("The elements of x that y lacks, and their positions.")
    .Shape(ListDiffRule)
    .Cpu(ComputeOwn<ListDiff>);

}  // namespace
}  // namespace headrace
