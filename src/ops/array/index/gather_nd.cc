#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"
#include "op/vectorize.h"
#include "ops/array/box_call.h"
#include "ops/array/element_dispatch.h"
#include "ops/array/index/nd_index.h"

namespace headrace {
namespace {

// Graphs have the same words for all that is wrong with the ranks.
Status WrongRanks(ShapeContext& c, Status rule) {
  return c.Refuse(
      {absl::StrCat("indices.shape[-1] must be <= params.rank, but saw indices "
                    "shape: ",
                    c.input(1).ToString(),
                    " and params shape: ", c.input(0).ToString())},
      std::move(rule));
}

Status GatherNdRule(ShapeContext& c) {
  const Shape &params = c.input(0), &indices = c.input(1);
  if (params.known_rank() && params.rank() == 0) {
    return WrongRanks(c, InvalidArgument("params must be at least a vector"));
  }
  if (indices.known_rank() && indices.rank() == 0) {
    return c.Refuse(RankIsLess(1, 0),
                    InvalidArgument("indices must be at least a vector"));
  }
  if (!params.known_rank() || !indices.known_rank()) return OkStatus();
  // The last dimension of the indices says how many of the params' dimensions a
  // place names.
  const int64_t depth = indices[indices.rank() - 1];
  if (depth < 0) return OkStatus();
  if (depth > params.rank()) {
    return WrongRanks(
        c, InvalidArgument(
               "index innermost dimension length must be <= params rank; saw: ",
               depth, " vs. ", params.rank()));
  }
  c.set_output(0,
               indices.Sub(0, indices.rank() - 1)
                   .Concat(params.Sub(static_cast<int>(depth), params.rank())));
  return OkStatus();
}

template <typename T>
void CopySlices(const Tensor& params, absl::Span<const int64_t> offsets,
                int64_t slice, Tensor& out) {
  const T* from = static_cast<const T*>(params.raw());
  T* to = static_cast<T*>(out.raw());
  const int64_t n = static_cast<int64_t>(offsets.size());
  const double cost = 2 + 0.1 * static_cast<double>(slice * sizeof(T));
  ParallelFor(n, cost, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      // -1 marks a place outside, which reads as zero under the policy IGNORE.
      if (offsets[i] < 0)
        std::fill_n(to + i * slice, slice, T());
      else if (slice == 1)
        to[i] = from[offsets[i]];
      else
        std::copy_n(from + offsets[i], slice, to + i * slice);
    }
  });
}

// `bad`: the place's number.
Status OutsideOfParams(StringView op, const Tensor& indices, int64_t bad,
                       const Shape& params) {
  return InvalidArgument(PlaceText(indices, bad),
                         " does not index into param shape ", params,
                         ", node name: ", op);
}

Status GatherNd(KernelContext& c) {
  const Tensor &params = c.input(0), &indices = c.input(1);
  Tensor& out = c.output(0);
  HR_ASSIGN_OR_RETURN(BadIndices policy, BadIndicesPolicy(c.op()));
  const int64_t depth = indices.dim(indices.rank() - 1);
  // No place can be inside of an empty tensor; upstream has this text for it
  // before it looks at the indices.
  if (params.num_elements() == 0 && indices.num_elements() > 0) {
    return InvalidArgument(
        "Requested more than 0 entries, but params is empty.  Params shape: ",
        params.shape());
  }
  int64_t bad;
  std::vector<int64_t> offsets = PlaceOffsets(indices, params.shape(), &bad);
  if (bad >= 0 && policy == BadIndices::kError) {
    return OutsideOfParams(c.op().name(), indices, bad, params.shape());
  }
  const int64_t slice =
      params.shape().Product(static_cast<int>(depth), params.rank());
  // The check is behind the one of the indices: bad places are an error even
  // when they would copy nothing.
  if (out.num_elements() == 0) return OkStatus();
  DispatchElement(params.dtype(), [&](auto tag) {
    CopySlices<typename decltype(tag)::type>(params, offsets, slice, out);
  });
  return OkStatus();
}

// The slice at one place, in a loop's turns.
class PlaceCall : public BoxCall {
 public:
  PlaceCall(StringView op, size_t size, const Shape& params,
            const Shape& of_indices)
      : op_(op), params_(params) {
    indices_shape_ = of_indices;
    run = static_cast<int64_t>(size);
    const auto strides = RowMajorStrides(params.dims());
    const int64_t depth = of_indices[of_indices.rank() - 1];
    for (int d = 0; d < params.rank(); ++d) {
      const int64_t step = strides[d] * run;
      if (d < depth) indices.push_back({d, params[d], step});
      if (d >= depth) box.push_back({params[d], step});
    }
    operands = {0, 1};
  }

 protected:
  Status Refusal(const Tensor& indices) const override {
    int64_t bad;
    PlaceOffsets(indices, params_, &bad);
    return bad < 0 ? OkStatus() : OutsideOfParams(op_, indices, bad, params_);
  }

 private:
  const std::string op_;
  const Shape params_;
};

class GatherNdKernel : public Kernel, public BindsIndexed {
 public:
  explicit GatherNdKernel(const ResolvedOp& op)
      : op_(op.name()),
        refuses_(Refuses(op)),
        size_(DTypeSize(op.type_attr("Tparams"))),
        index_(op.type_attr("Tindices")) {}
  Status Run(KernelContext& c) override { return GatherNd(c); }
  std::unique_ptr<const IndexedCall> BindIndexed(
      absl::Span<const BoundInput> inputs, const Shape& output,
      BoundCall* call) const override {
    const Shape &params = *inputs[0].shape, &indices = *inputs[1].shape;
    if (!refuses_ || indices.rank() == 0 ||
        indices.Product(0, indices.rank() - 1) != 1 ||
        params.num_elements() == 0) {
      return nullptr;
    }
    const int64_t depth = indices[indices.rank() - 1];
    if (depth > params.rank() ||
        indices.Sub(0, indices.rank() - 1)
                .Concat(params.Sub(static_cast<int>(depth), params.rank())) !=
            output) {
      return nullptr;
    }
    auto place = std::make_unique<PlaceCall>(op_, size_, params, indices);
    place->BindAs(index_, call);
    return place;
  }

 private:
  // Places outside.
  static bool Refuses(const ResolvedOp& op) {
    const StatusOr<BadIndices> policy = BadIndicesPolicy(op);
    return policy.ok() && *policy == BadIndices::kError;
  }

  const std::string op_;
  const bool refuses_;
  const size_t size_;
  const DType index_;
};

// Whole rows give slices, as Gather does; the rest is scattered.
Status GatherNdGradient(GradientContext& g) {
  const Value &params = g.input(0), &indices = g.input(1);
  Value dy = g.grad();
  const Shape& ids = indices.shape();
  // A last dimension of 1 names rows of the first axis, just as Gather's
  // indices do.
  if (ids.known_rank() && ids.rank() == 2 && ids[1] == 1) {
    Gradient slices;
    slices.values = dy;
    slices.indices =
        g("Squeeze", {indices},
          {{"squeeze_dims", std::vector<int64_t>{int64_t{ids.rank() - 1}}}});
    slices.dense_shape =
        g.ShapeOf(params, indices.dtype() == DType::kInt64 ? DType::kInt64
                                                           : DType::kInt32);
    g.set(0, std::move(slices));
    return g.status();
  }
  Value places = indices;
  // ScatterNd's shape is of the indices' type, and Shape gives no int16.
  if (indices.dtype() == DType::kInt16) {
    places = g("Cast", {indices}, {{"DstT", DType::kInt32}});
  }
  if (!g.ok()) return g.status();
  Value shape = g.ShapeOf(params, places.dtype());
  g.set(0,
        g("ScatterNd", {places, dy, shape},
          {{"bad_indices_policy", g.op().string_attr("bad_indices_policy")}}));
  return g.status();
}

Status VectorizeGatherNd(VectorizeContext& c) {
  if (!c.stacked(0)) return c.SetAll(c.Again({c.input(0), c.input(1)}));
  HR_RETURN_IF_ERROR(c.WantRank(1));
  return c.SetAll(c.Again({c.input(0), c.WithRowNumbers(c.Stacked(1))}));
}

HR_OP(GatherNd)
    .Input("params: Tparams")
    .Input("indices: Tindices")
    .Output("output: Tparams")
    .Attr("Tparams: type")
    .Attr("Tindices: {int16, int32, int64}")
    .Attr("bad_indices_policy: string = ''")
    .Doc("The slices of params at places of several dimensions.")
    .Shape(GatherNdRule)
    .Gradient(GatherNdGradient)
    .GradientSkips({}, {0})
    .Vectorize(VectorizeGatherNd)
    .Cpu(Bind<GatherNdKernel>);

}  // namespace
}  // namespace headrace
