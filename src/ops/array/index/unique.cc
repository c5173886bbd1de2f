// Unique and its siblings: the distinct elements (or slices), in the order in
// which they first come.
#include "base/cancellation.h"
#include "op/op.h"
#include "ops/array/block_copy.h"
#include "ops/array/index/value_table.h"

namespace headrace {
namespace {

// x seen as [before, n, run]: slice i is x[:, i, :].
struct Slices {
  int64_t before = 1, n = 0, run = 1;
};

template <typename T>
bool SameSlice(const T* x, const Slices& s, int64_t i, int64_t j) {
  for (int64_t b = 0; b < s.before; ++b) {
    const T* p = x + (b * s.n + i) * s.run;
    const T* q = x + (b * s.n + j) * s.run;
    for (int64_t k = 0; k < s.run; ++k) {
      if (!(p[k] == q[k])) return false;
    }
  }
  return true;
}

template <typename T>
uint64_t SliceHash(const T* x, const Slices& s, int64_t i) {
  if (s.before == 1 && s.run == 1) return HashOf(x[i]);
  uint64_t hash = 0;
  for (int64_t b = 0; b < s.before; ++b) {
    for (int64_t k = 0; k < s.run; ++k) {
      // The golden ratio in 64 bits, as in HashOf; the multiplication makes the
      // hash depend on the order of the elements.
      hash =
          (hash ^ HashOf(x[(b * s.n + i) * s.run + k])) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 29;
    }
  }
  return hash;
}

// idx[i] is the number of slice i; `firsts` the first slice of each number.
template <typename T, typename Index>
void Number(const T* x, const Slices& s, Index* idx,
            std::vector<int64_t>* firsts) {
  OrderTable table;
  // Single elements, the common case, are compared without the loops of
  // SameSlice.
  const bool plain = s.before == 1 && s.run == 1;
  // The loop is serial and may be long, so the meter lets a deadline or a
  // cancellation end it.
  StopMeter meter;
  const double cost = 20.0 * static_cast<double>(s.before * s.run);
  for (int64_t i = 0; i < s.n; ++i) {
    meter.Add(cost);
    bool added;
    auto equal = [&](int64_t entry) {
      const int64_t first = (*firsts)[entry];
      return plain ? x[first] == x[i] : SameSlice(x, s, first, i);
    };
    idx[i] =
        static_cast<Index>(table.FindOrAdd(SliceHash(x, s, i), equal, &added));
    if (added) firsts->push_back(i);
  }
}

// Output 0: the chosen slices of x.
Status TakeSlices(KernelContext& c, const Slices& s, int axis,
                  absl::Span<const int64_t> chosen) {
  const Tensor& x = c.input(0);
  Shape shape = x.shape();
  const auto m = static_cast<int64_t>(chosen.size());
  shape.set_dim(axis, m);
  HR_RETURN_IF_ERROR(c.Allocate(0, shape));
  Tensor& y = c.output(0);
  for (int64_t k = 0; k < m; ++k) {
    CopyBlock(x.dtype(), At(x, chosen[k] * s.run), At(y, k * s.run),
              {{s.before, s.n * s.run, m * s.run}, {s.run, 1, 1}});
  }
  return OkStatus();
}

template <typename Index>
void Count(const Tensor& idx, Tensor& counts) {
  FillZero(counts);
  for (Index i : idx.span<Index>()) ++counts.data<Index>()[i];
}

Status UniqueOf(KernelContext& c, const Slices& s, int axis) {
  HR_RETURN_IF_ERROR(c.Allocate(1, Shape{s.n}));
  Tensor& idx = c.output(1);
  if (idx.dtype() == DType::kInt32 && s.n > INT32_MAX) {
    return InvalidArgument("unique does not support input tensors larger than ",
                           INT32_MAX, " elements");
  }
  if (s.n > OrderTable::kMostEntries) {
    return Unimplemented("unique of more than ", OrderTable::kMostEntries,
                         " elements");
  }
  std::vector<int64_t> firsts;
  const bool known =
      DispatchDType(c.input(0).dtype(), HashableTypes{}, [&](auto tag) {
        using T = typename decltype(tag)::type;
        const T* x = c.in<T>(0);
        if (idx.dtype() == DType::kInt32) {
          Number(x, s, idx.data<int32_t>(), &firsts);
        } else {
          Number(x, s, idx.data<int64_t>(), &firsts);
        }
      });
  if (!known) {
    return Unimplemented("unique elements of ", DTypeName(c.input(0).dtype()));
  }
  HR_RETURN_IF_ERROR(TakeSlices(c, s, axis, firsts));
  // Only the siblings "WithCounts" have a third output.
  if (c.num_outputs() < 3) return OkStatus();
  HR_RETURN_IF_ERROR(c.Allocate(2, Shape{static_cast<int64_t>(firsts.size())}));
  if (idx.dtype() == DType::kInt32)
    Count<int32_t>(idx, c.output(2));
  else
    Count<int64_t>(idx, c.output(2));
  return OkStatus();
}

Status Unique(KernelContext& c) {
  return UniqueOf(c, {1, c.input(0).num_elements(), 1}, 0);
}

Status UniqueV2(KernelContext& c) {
  const Tensor &x = c.input(0), &axes = c.input(1);
  // An empty axis means that the input is a vector of elements.
  if (axes.num_elements() == 0) return Unique(c);
  int64_t axis = axes.IntAt(0);
  if (axis < 0) axis += x.rank();
  if (axis < 0 || axis >= x.rank()) {
    return InvalidArgument("axis expects to be in the range [", -x.rank(), ", ",
                           x.rank(), ")");
  }
  const int a = static_cast<int>(axis);
  return UniqueOf(
      c,
      {x.shape().Product(0, a), x.dim(a), x.shape().Product(a + 1, x.rank())},
      a);
}

Status UniqueRule(ShapeContext& c) {
  if (c.input(0).known_rank() && c.input(0).rank() != 1) {
    return c.Refuse(RankIsNot(1, c.input(0).rank()),
                    InvalidArgument("x expects a 1D vector."));
  }
  c.set_output(0, Shape{Shape::kUnknown});
  // idx has as many elements as x; how many of them are distinct is known at
  // run time only.
  c.set_output(1,
               c.input(0).known_rank() ? c.input(0) : Shape{Shape::kUnknown});
  if (c.num_outputs() == 3) c.set_output(2, Shape{Shape::kUnknown});
  return OkStatus();
}

Status UniqueV2Rule(ShapeContext& c) {
  const Shape &x = c.input(0), &axes = c.input(1);
  c.set_output(1, Shape{Shape::kUnknown});
  if (c.num_outputs() == 3) c.set_output(2, Shape{Shape::kUnknown});
  if (axes.known_rank() && axes.rank() != 1) {
    return InvalidArgument("axis expects a 1D vector.");
  }
  if (axes.fully_known() && axes[0] > 1) {
    return InvalidArgument(
        "axis does not support input tensors larger than 1 elements.");
  }
  if (axes.fully_known() && axes[0] == 0) return UniqueRule(c);
  if (!x.known_rank()) return OkStatus();
  Shape out = Shape::UnknownOfRank(x.rank());
  if (const Tensor* t = c.value(1)) {
    const int64_t axis = t->IntAt(0) < 0 ? t->IntAt(0) + x.rank() : t->IntAt(0);
    if (axis < 0 || axis >= x.rank()) {
      return InvalidArgument("axis expects to be in the range [", -x.rank(),
                             ", ", x.rank(), ")");
    }
    out = x;
    out.set_dim(static_cast<int>(axis), Shape::kUnknown);
    c.set_output(1, Shape{x[static_cast<int>(axis)]});
  }
  c.set_output(0, std::move(out));
  return OkStatus();
}

HR_OP(Unique)
    .Input("x: T")
    .Output("y: T")
    .Output("idx: out_idx")
    .Attr("T: type")
    .Attr("out_idx: {int32, int64} = DT_INT32")
    .Doc("The distinct elements of a vector, and where each element went.")
    .Shape(UniqueRule)
    .Cpu(ComputeOwn<Unique>);

HR_OP(UniqueWithCounts)
    .Input("x: T")
    .Output("y: T")
    .Output("idx: out_idx")
    .Output("count: out_idx")
    .Attr("T: type")
    .Attr("out_idx: {int32, int64} = DT_INT32")
    .Doc("Unique, and how often each distinct element came.")
    .Shape(UniqueRule)
    .Cpu(ComputeOwn<Unique>);

HR_OP(UniqueV2)
    .Input("x: T")
    .Input("axis: Taxis")
    .Output("y: T")
    .Output("idx: out_idx")
    .Attr("T: type")
    .Attr("Taxis: {int32, int64} = DT_INT64")
    .Attr("out_idx: {int32, int64} = DT_INT32")
    .Doc("The distinct slices of x along an axis.")
    .Shape(UniqueV2Rule)
    .Cpu(ComputeOwn<UniqueV2>);

HR_OP(UniqueWithCountsV2)
    .Input("x: T")
    .Input("axis: Taxis")
    .Output("y: T")
    .Output("idx: out_idx")
    .Output("count: out_idx")
    .Attr("T: type")
    .Attr("Taxis: {int32, int64} = DT_INT64")
    .Attr("out_idx: {int32, int64} = DT_INT32")
    .Doc("UniqueV2, and how often each distinct slice came.")
    .Shape(UniqueV2Rule)
    .Cpu(ComputeOwn<UniqueV2>);

}  // namespace
}  // namespace headrace
