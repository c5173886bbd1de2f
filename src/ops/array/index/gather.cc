// Gather, GatherV2: rows of a tensor by their numbers.
#include <atomic>
#include <cstring>

#include "base/thread_pool.h"
#include "op/op.h"
#include "op/passes/partial_sizes.h"
#include "op/shared_refusal.h"
#include "op/spelled_out.h"
#include "op/vectorize.h"
#include "ops/array/block_copy.h"
#include "ops/array/box_call.h"
#include "ops/array/element_dispatch.h"
#include "ops/array/index/nd_index.h"

namespace headrace {
namespace {

// params is [batch, outer, limit, inner], indices [batch, count], the result
// [batch, outer, count, inner].
struct GatherSizes {
  int64_t batch, outer, limit, inner, count;
};

// How many rows ahead of the copy the next rows are asked for.
constexpr int64_t kAhead = 8;

// One row of `n` elements; the commonest sizes are known to the compiler.
template <typename T>
void CopyRow(const T* from, T* to, int64_t n) {
  if constexpr (std::is_trivially_copyable_v<T>) {
    // A plain assignment, as memcpy of a size that the compiler does not know
    // is a call.
    if (n == 1)
      *to = *from;
    else
      std::memcpy(static_cast<void*>(to), from, n * sizeof(T));
  } else {
    std::copy_n(from, n, to);
  }
}

// Copies rows [begin, end) of the result, numbered through batch, outer and
// count. Returns the first bad position among the indices, or -1.
template <typename T, typename Index>
int64_t GatherRows(const T* params, const Index* indices, T* out,
                   const GatherSizes& s, int64_t begin, int64_t end) {
  // A block of a thread may begin in the middle of a slab, so the first slab
  // starts at k and every later one at 0.
  int64_t k = begin % s.count, slab = begin / s.count;
  for (int64_t r = begin; r < end;) {
    // All `outer` slabs of a batch share that batch's indices.
    const Index* ids = indices + slab / s.outer * s.count;
    const T* from = params + slab * s.limit * s.inner;
    const int64_t stop = std::min(s.count, k + (end - r));
    for (; k < stop; ++k, ++r) {
      // As unsigned a negative index is larger than any limit, so one
      // comparison checks both ends.
      const auto id = static_cast<uint64_t>(static_cast<int64_t>(ids[k]));
      if (id >= static_cast<uint64_t>(s.limit)) [[unlikely]] {
        return slab / s.outer * s.count + k;
      }
      if (k + kAhead < stop) {
        const auto next =
            static_cast<uint64_t>(static_cast<int64_t>(ids[k + kAhead]));
        // A bad index further on must not be turned into an address, even for a
        // prefetch.
        if (next < static_cast<uint64_t>(s.limit)) {
          const char* row =
              reinterpret_cast<const char*>(from + next * s.inner);
          __builtin_prefetch(row);
          // Two cache lines; the hardware's own prefetcher takes over from
          // there.
          __builtin_prefetch(row + 64);
        }
      }
      CopyRow(from + id * s.inner, out + r * s.inner, s.inner);
    }
    k = 0;
    ++slab;
  }
  return -1;
}

template <typename T>
int64_t GatherOf(const Tensor& params, const Tensor& indices, Tensor& out,
                 const GatherSizes& s) {
  std::atomic<int64_t> bad{INT64_MAX};
  // About three units for the index, and a tenth for each byte that is copied.
  const double cost = 3 + 0.1 * static_cast<double>(s.inner * sizeof(T));
  auto run = [&](auto tag) {
    using Index = typename decltype(tag)::type;
    ParallelFor(s.batch * s.outer * s.count, cost, [&](int64_t b, int64_t e) {
      int64_t at =
          GatherRows(static_cast<const T*>(params.raw()), indices.data<Index>(),
                     static_cast<T*>(out.raw()), s, b, e);
      if (at < 0) return;
      int64_t seen = bad.load();
      // The least position wins, whichever thread is first, so that the message
      // does not depend on the threads. (A failed exchange loads `seen` anew.)
      while (at < seen && !bad.compare_exchange_weak(seen, at)) {
      }
    });
  };
  DispatchDType(indices.dtype(), TypeList<int32_t, int64_t, int16_t>{}, run);
  return bad.load() == INT64_MAX ? -1 : bad.load();
}

GatherSizes SizesOf(const Shape& params, const Shape& indices, int axis,
                    int batch_dims) {
  GatherSizes s;
  s.batch = params.Product(0, batch_dims);
  s.outer = params.Product(batch_dims, axis);
  s.limit = params[axis];
  s.inner = params.Product(axis + 1, params.rank());
  s.count = indices.Product(batch_dims, indices.rank());
  return s;
}

Status GatherInto(const Tensor& params, const Tensor& indices, Tensor& out,
                  int axis, int batch_dims) {
  const GatherSizes s =
      SizesOf(params.shape(), indices.shape(), axis, batch_dims);
  if (s.batch * s.count == 0) return OkStatus();
  int64_t bad = -1;
  if (s.outer * s.inner == 0) {  // nothing to copy, but indices count
    for (int64_t i = 0; i < s.batch * s.count && bad < 0; ++i) {
      const int64_t id = IndexAt(indices, i);
      if (id < 0 || id >= s.limit) bad = i;
    }
  } else {
    DispatchElement(params.dtype(), [&](auto tag) {
      bad = GatherOf<typename decltype(tag)::type>(params, indices, out, s);
    });
  }
  return bad < 0 ? OkStatus() : BadIndex(indices, bad, s.limit);
}

Status CheckParams(ShapeContext& c) {
  if (c.input(0).known_rank() && c.input(0).rank() == 0) {
    // The first text is the one of a graph's shape function, the second the one
    // of the eager kernel.
    return c.Refuse(RankIsLess(1, 0),
                    InvalidArgument("params must be at least 1 dimensional"));
  }
  return OkStatus();
}

Status GatherRule(ShapeContext& c) {
  const Shape &params = c.input(0), &indices = c.input(1);
  HR_RETURN_IF_ERROR(CheckParams(c));
  if (params.known_rank() && indices.known_rank()) {
    c.set_output(0, indices.Concat(params.Sub(1, params.rank())));
  }
  return OkStatus();
}

// batch_dims counted from the front, and checked, by the rank of the indices.
Status CheckBatch(const Shape& indices, int64_t* batch_dims) {
  const int rank = indices.rank();
  if (*batch_dims < -rank || *batch_dims > rank) {
    return InvalidArgument("Expected batch_dims in the range [", -rank, ", ",
                           rank, "], but got ", *batch_dims);
  }
  // A negative batch_dims counts over the rank of the indices, a negative axis
  // over that of the params.
  if (*batch_dims < 0) *batch_dims += rank;
  return OkStatus();
}

// batch_dims and axis counted from the front, and checked. `c`: the shape
// rule's, null in the kernel.
Status NormalizeBatch(const Shape& params, const Shape& indices, int64_t* axis,
                      int64_t* batch_dims, ShapeContext* c) {
  if (indices.known_rank()) {
    HR_RETURN_IF_ERROR(CheckBatch(indices, batch_dims));
  } else if (*batch_dims < 0) {
    return OkStatus();
  }
  if (!params.known_rank()) return OkStatus();
  // Unsigned, as -axis of the least int64 is not defined.
  const auto at = static_cast<uint64_t>(*axis);
  const uint64_t need = *axis < 0 ? -at : at + 1;
  if (need > static_cast<uint64_t>(params.rank())) {
    return Refuse(c, {"", 4},
                  InvalidArgument("Shape must be at least rank ", need,
                                  " but is rank ", params.rank()));
  }
  if (*axis < 0) *axis += params.rank();
  // The batch dimensions must lie before the axis, because they are shared and
  // not gathered from.
  if (*batch_dims > *axis) {
    return InvalidArgument("batch_dims (", *batch_dims,
                           ") must be less than or equal to axis (", *axis,
                           ").");
  }
  for (int i = 0; i < *batch_dims; ++i) {
    // Unknown sizes are -1 and agree with everything.
    const int64_t a = params[i], b = indices.known_rank() ? indices[i] : -1;
    if (a >= 0 && b >= 0 && a != b) {
      return InvalidArgument("params.shape[", i, "]: ", a,
                             " should be equal to indices.shape[", i, "]: ", b);
    }
  }
  return OkStatus();
}

Status GatherV2Rule(ShapeContext& c) {
  const Shape &params = c.input(0), &indices = c.input(1);
  if (c.input(2).known_rank() && c.input(2).rank() != 0) {
    return c.Refuse(
        params.rank() == 0 ? RankIsLess(1, 0) : RankIsNot(0, c.input(2).rank()),
        InvalidArgument("axis must be scalar"));
  }
  HR_RETURN_IF_ERROR(CheckParams(c));
  bool known;
  int64_t axis, batch_dims = c.op().int_attr("batch_dims");
  HR_RETURN_IF_ERROR(c.IntValue(2, &known, &axis));
  if (!known) {
    if (params.known_rank() && indices.known_rank()) {
      HR_RETURN_IF_ERROR(CheckBatch(indices, &batch_dims));
      // The axis goes, the indices' own dimensions come, and the batch
      // dimensions, which both have, count once.
      const int64_t rank = params.rank() + indices.rank() - 1 - batch_dims;
      if (rank >= 0) {
        c.set_output(0, Shape::UnknownOfRank(static_cast<int>(rank)));
      }
    }
    return OkStatus();
  }
  HR_RETURN_IF_ERROR(NormalizeBatch(params, indices, &axis, &batch_dims, &c));
  if (!params.known_rank() || !indices.known_rank()) return OkStatus();
  Shape out = params.Sub(0, static_cast<int>(axis));
  for (int i = 0; i < batch_dims; ++i) {
    // A batch size that the params do not tell may be known from the indices.
    if (out[i] < 0) out.set_dim(i, indices[i]);
  }
  const int a = static_cast<int>(axis), b = static_cast<int>(batch_dims);
  out = out.Concat(indices.Sub(b, indices.rank()))
            .Concat(params.Sub(a + 1, params.rank()));
  c.set_output(0, std::move(out));
  return OkStatus();
}

// One row, in a loop's turns.
class RowCall : public BoxCall {
 public:
  RowCall(const GatherSizes& s, size_t size, const Shape& of_indices)
      : limit_(s.limit) {
    indices_shape_ = of_indices;
    run = static_cast<int64_t>(size);
    const int64_t row = s.inner * run;
    box = {{s.outer, s.limit * row}, {s.inner, run}};
    indices = {{0, s.limit, row}};
    operands = {0, 1};
  }

 protected:
  Status Refusal(const Tensor& indices) const override {
    const int64_t i = IndexAt(indices, 0);
    return i >= 0 && i < limit_ ? OkStatus() : BadIndex(indices, 0, limit_);
  }

 private:
  const int64_t limit_;
};

// Several rows, in a loop's turns.
class RowsCall : public IndexedCall {
 public:
  RowsCall(const GatherSizes& s, size_t size, DType index,
           const Shape& of_indices, BoundCall* call)
      : sizes_(s), index_(index), shape_(of_indices) {
    operands = {0, 1};
    call->loop = this;
    // Rows as bytes, but for the commonest types.
    if (size == 4) {
      call->run = RunFor<uint32_t>(index);
    } else if (size == 8) {
      call->run = RunFor<uint64_t>(index);
    } else {
      sizes_.inner *= static_cast<int64_t>(size);
      call->run = RunFor<uint8_t>(index);
    }
  }
  bool may_fail() const override { return true; }
  Status Failure(const BoundCall& call) const override {
    return BadIndex(
        Tensor::Borrow(index_, shape_, const_cast<void*>(call.in[1])), call.n,
        sizes_.limit);
  }

 private:
  template <typename T, typename Index>
  static void RunAs(BoundCall& c) {
    const GatherSizes& s = static_cast<const RowsCall*>(c.loop)->sizes_;
    const int64_t bad = GatherRows(
        static_cast<const T*>(c.in[0]), static_cast<const Index*>(c.in[1]),
        static_cast<T*>(c.out), s, 0, s.batch * s.outer * s.count);
    if (bad >= 0) [[unlikely]] {
      c.error = 1;
      c.n = bad;
    }
    RunNext(c);
  }
  template <typename T>
  static void (*RunFor(DType index))(BoundCall&) {
    return index == DType::kInt64   ? RunAs<T, int64_t>
           : index == DType::kInt16 ? RunAs<T, int16_t>
                                    : RunAs<T, int32_t>;
  }

  GatherSizes sizes_;
  const DType index_;
  const Shape shape_;
};

// Gather, which has no axis, and GatherV2.
class GatherKernel : public Kernel, public BindsIndexed {
 public:
  explicit GatherKernel(const ResolvedOp& op)
      : has_axis_(op.num_inputs() > 2),
        batch_dims_(has_axis_ ? op.int_attr("batch_dims") : 0),
        size_(DTypeSize(op.type_attr("Tparams"))),
        index_(op.type_attr("Tindices")) {}

  Status Run(KernelContext& c) override {
    int64_t axis = has_axis_ ? c.input(2).IntAt(0) : 0;
    int64_t batch_dims = batch_dims_;
    // The kernel checks again, as a graph may have been built without the
    // shapes or the axis.
    if (has_axis_) {
      HR_RETURN_IF_ERROR(NormalizeBatch(c.input(0).shape(), c.input(1).shape(),
                                        &axis, &batch_dims, nullptr));
    }
    return GatherInto(c.input(0), c.input(1), c.output(0),
                      static_cast<int>(axis), static_cast<int>(batch_dims));
  }

  std::unique_ptr<const IndexedCall> BindIndexed(
      absl::Span<const BoundInput> inputs, const Shape& output,
      BoundCall* call) const override {
    const Shape &params = *inputs[0].shape, &indices = *inputs[1].shape;
    if (has_axis_ && inputs[2].constant == nullptr) return nullptr;
    int64_t axis = has_axis_ ? inputs[2].constant->IntAt(0) : 0;
    int64_t batch_dims = batch_dims_;
    if (params.rank() == 0 ||
        !NormalizeBatch(params, indices, &axis, &batch_dims, nullptr).ok()) {
      return nullptr;
    }
    const int a = static_cast<int>(axis), b = static_cast<int>(batch_dims);
    const GatherSizes s = SizesOf(params, indices, a, b);
    const Shape made = params.Sub(0, a)
                           .Concat(indices.Sub(b, indices.rank()))
                           .Concat(params.Sub(a + 1, params.rank()));
    if (made != output) return nullptr;
    if (s.batch * s.count != 1) {
      return std::make_unique<RowsCall>(s, size_, index_, indices, call);
    }
    auto row = std::make_unique<RowCall>(s, size_, indices);
    row->BindAs(index_, call);
    return row;
  }

 private:
  const bool has_axis_;
  const int64_t batch_dims_;
  const size_t size_;
  const DType index_;
};

// Slices: the rows of dy and the numbers of the params' rows they belong to.
Gradient RowSlices(GradientContext& g) {
  const Value &params = g.input(0), &indices = g.input(1);
  Value dy = g.grad();
  Gradient slices;
  if (!g.ok()) return slices;
  if (SpelledOut::Now()) {
    return SpelledRowSlices(g, g.ShapeOf(params), indices);
  }
  slices.dense_shape = g.ShapeOf(params);
  slices.indices = g("Reshape", {indices, g.Int32s({-1})});
  const Shape& p = params.shape();
  Value shape;
  if (p.known_rank() && Shape(p.Sub(1, p.rank())).fully_known() &&
      p.Product(1, p.rank()) > 0) {
    std::vector<int32_t> dims(p.dims().begin(), p.dims().end());
    // The count of rows is left to Reshape, so that a batch of unknown size
    // needs no shape ops. (A row of no elements would make -1 ambiguous.)
    dims[0] = -1;
    shape = g.Int32s(dims);
  } else {
    // The row shape is known at run time only: it is params' shape without the
    // first size.
    Value rows = g("Size", {indices});
    Value count = g("ExpandDims", {rows, g.Int32(0)});
    Value tail =
        g("StridedSlice",
          {slices.dense_shape, g.Int32s({1}), g.Int32s({0}), g.Int32s({1})},
          {{"end_mask", 1}});
    shape = g("ConcatV2", {count, tail, g.Int32(0)});
  }
  slices.values = g("Reshape", {dy, shape});
  return slices;
}

Status GatherGradient(GradientContext& g) {
  g.set(0, RowSlices(g));
  return g.status();
}

// The product of elements [begin, end) of a shape vector, as a scalar.
Value ProductOf(GradientContext& g, const Value& shape, const Value& begin,
                const Value& end) {
  Value at = g.Int32(0);
  Value part = g("StridedSlice", {shape, g("ExpandDims", {begin, at}),
                                  g("ExpandDims", {end, at}), g.Int32s({1})});
  return g("Prod", {part, at});
}

// Any axis and batch: dy turned to [batch, count, outer, inner], its rows
// summed into [batch * limit, outer, inner], and that turned back.
Status GeneralGradient(GradientContext& g, int64_t batch_dims) {
  const Value &params = g.input(0), &indices = g.input(1);
  Value dy = g.grad(), zero = g.Int32(0), one = g.Int32(1);
  Value shape = g.ShapeOf(params), ids_shape = g.ShapeOf(indices);
  Value rank = g("Size", {shape});
  Value axis = g("Cast", {g.input(2)}, {{"DstT", DType::kInt32}});
  // FloorMod brings a negative axis into [0, rank) without a branch in the
  // graph.
  axis = g("FloorMod", {axis, rank});
  Value after = g("AddV2", {axis, one});
  Value split = g.Int32(static_cast<int32_t>(batch_dims));
  Value batch = ProductOf(g, shape, zero, split);
  Value outer = ProductOf(g, shape, split, axis);
  Value limit = ProductOf(g, shape, axis, after);
  Value inner = ProductOf(g, shape, after, rank);
  Value count = ProductOf(g, ids_shape, split, g("Size", {ids_shape}));
  Value rows = g("Reshape", {dy, g("Pack", {batch, outer, count, inner})});
  rows = g("Transpose", {rows, g.Int32s({0, 2, 1, 3})});
  rows =
      g("Reshape", {rows, g("Pack", {g("Mul", {batch, count}), outer, inner})});
  Value ids = g("Cast", {indices}, {{"DstT", DType::kInt32}});
  ids = g("Reshape", {ids, g("Pack", {batch, count})});
  // Batch b's rows begin at b * limit once the batches are laid into one list
  // of segments.
  Value base = g("Mul", {g("Range", {zero, batch, one}), limit});
  ids = g("AddV2", {ids, g("ExpandDims", {base, one})});
  ids = g("Reshape", {ids, g.Int32s({-1})});
  Value sum = g("UnsortedSegmentSum", {rows, ids, g("Mul", {batch, limit})});
  sum = g("Reshape", {sum, g("Pack", {batch, limit, outer, inner})});
  sum = g("Transpose", {sum, g.Int32s({0, 2, 1, 3})});
  g.set(0, g("Reshape", {sum, shape}));
  return g.status();
}

Status GatherV2Gradient(GradientContext& g) {
  int64_t batch_dims = g.op().int_attr("batch_dims");
  if (batch_dims < 0 && g.input(1).shape().known_rank()) {
    batch_dims += g.input(1).rank();
  }
  if (batch_dims < 0) {
    return Unimplemented("GatherV2: the gradient for a negative batch_dims ",
                         "needs the rank of indices");
  }
  const Tensor* axis = g.Known(g.input(2));
  const Shape& params = g.input(0).shape();
  // Only a gather along the first axis may give slices, as IndexedSlices hold
  // whole rows of it.
  const bool first =
      axis && batch_dims == 0 &&
      (axis->IntAt(0) == 0 ||
       (params.known_rank() && axis->IntAt(0) + params.rank() == 0));
  if (!first) return GeneralGradient(g, batch_dims);
  g.set(0, RowSlices(g));
  return g.status();
}

// Rows' own indices into `x`, shared or stacked, along `axis` of a row.
Status GatherRows(VectorizeContext& c, const Value& axis, int64_t batch_dims) {
  const Value &x = c.input(0), &i = c.input(1);
  if (c.stacked(0) && !c.stacked(1) && batch_dims == 0) {
    return c.Set(c("GatherV2", {x, i, c.ShiftAxes(axis)}));
  }
  if (!c.stacked(0) && batch_dims == 0) {
    const Tensor* known = c.Known(axis);
    int64_t at = -1;
    if (known && known->num_elements() == 1) {
      at = known->dtype() == DType::kInt32 ? known->data<int32_t>()[0]
                                           : known->data<int64_t>()[0];
      if (at < 0) at += c.row_rank(0);
    }
    if (at == 0 || (at > 0 && c.row_rank(0) >= 0 && c.row_rank(1) >= 0)) {
      Value y = c("GatherV2", {x, i, axis});
      HR_RETURN_IF_ERROR(c.status());
      return c.Set(c.Move(y, static_cast<int>(at), 0));
    }
  }
  if (batch_dims >= 0) ++batch_dims;
  return c.Set(c("GatherV2", {c.Stacked(0), c.Stacked(1), c.ShiftAxes(axis)},
                 {{"batch_dims", batch_dims}}));
}

Status VectorizeGather(VectorizeContext& c) {
  return GatherRows(c, c.Int32(0), 0);
}

Status VectorizeGatherV2(VectorizeContext& c) {
  HR_RETURN_IF_ERROR(c.WantShared(2));
  return GatherRows(c, c.input(2), c.op().int_attr("batch_dims"));
}

HR_OP(Gather)
    .Traits({OpTrait::kMovesNumbers})
    .Input("params: Tparams")
    .Input("indices: Tindices")
    .Output("output: Tparams")
    .Attr("validate_indices: bool = true")
    .Attr("Tparams: type")
    .Attr("Tindices: {int32, int64}")
    .Doc("The rows of params that indices names.")
    .Shape(GatherRule)
    .Gradient(GatherGradient)
    .GradientSkips({}, {0})
    .Vectorize(VectorizeGather)
    .Cpu(Bind<GatherKernel>);

Shape GatherV2Sizes(PartialSizes& c) {
  if (c.is_scalar()) {
    const std::optional<int64_t> at = c.ConstantScalar(1);
    // A negative index fails at run time, so nothing is claimed of it here.
    return at && *at >= 0 ? Shape{c.SizeAt(0, *at)} : c.Uncertain();
  }
  const Tensor* at = c.Constant(1);
  const Shape s = c.Vector(0);
  if (at == nullptr || at->rank() != 1 || !s.known_rank() ||
      !PartialSizes::HoldsSizes(at->dtype())) {
    return Shape::UnknownRank();
  }
  Shape out;
  for (int64_t i = 0; i < at->num_elements(); ++i) {
    const int64_t k = at->IntAt(i);
    const bool there = k >= 0 && k < s.rank();
    out.AddDim(there ? s[static_cast<int>(k)] : Shape::kUnknown);
  }
  return out;
}

HR_OP(GatherV2)
    .PartialSizes(GatherV2Sizes)
    .Input("params: Tparams")
    .Input("indices: Tindices")
    .Input("axis: Taxis")
    .Output("output: Tparams")
    .Attr("batch_dims: int = 0")
    .Attr("Tparams: type")
    .Attr("Tindices: {int16, int32, int64}")
    .Attr("Taxis: {int32, int64}")
    .Doc("The slices of params along `axis` that indices names.")
    .Shape(GatherV2Rule)
    .Gradient(GatherV2Gradient)
    .GradientSkips({}, {0})
    .Vectorize(VectorizeGatherV2)
    .Cpu(Bind<GatherKernel>);

}  // namespace
}  // namespace headrace
