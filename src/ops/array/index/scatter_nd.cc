// ScatterNd and TensorScatter*: slices written into zeros or into a copy.
#include <algorithm>
#include <type_traits>

#include "base/thread_pool.h"
#include "op/vectorize.h"
#include "ops/array/element_dispatch.h"
#include "ops/array/index/nd_index.h"

namespace headrace {
namespace {

enum class Combine { kUpdate, kAdd, kSub, kMin, kMax };

template <Combine kind, typename T>
T Combined(const T& x, const T& y) {
  if constexpr (kind == Combine::kUpdate) {
    return y;
  } else if constexpr (kind == Combine::kMin) {
    return y < x ? y : x;
  } else if constexpr (kind == Combine::kMax) {
    return x < y ? y : x;
  } else if constexpr (std::is_same_v<T, std::string>) {
    return x + y;
  } else if constexpr (std::is_same_v<T, bool>) {
    return kind == Combine::kAdd ? x || y : x != y;
  } else if constexpr (std::is_integral_v<T>) {
    // Integers wrap around on overflow, which only unsigned arithmetic defines.
    const auto a = static_cast<uint64_t>(x), b = static_cast<uint64_t>(y);
    return static_cast<T>(kind == Combine::kAdd ? a + b : a - b);
  } else {
    return kind == Combine::kAdd ? T(x + y) : T(x - y);
  }
}

// Threads share the columns of the slices, so that the same place named twice
// is combined in order.
template <Combine kind, typename T>
void Apply(absl::Span<const int64_t> offsets, int64_t slice,
           const Tensor& updates, Tensor& out) {
  const T* from = static_cast<const T*>(updates.raw());
  T* to = static_cast<T*>(out.raw());
  const auto n = static_cast<int64_t>(offsets.size());
  ParallelFor(slice, 0.5 * static_cast<double>(n), [&](int64_t b, int64_t e) {
    for (int64_t k = 0; k < n; ++k) {
      // Places outside are -1 here and were refused already unless the policy
      // is IGNORE.
      if (offsets[k] < 0) continue;
      T* __restrict row = to + offsets[k];
      const T* __restrict by = from + k * slice;
      for (int64_t i = b; i < e; ++i) {
        row[i] = Combined<kind, T>(row[i], by[i]);
      }
    }
  });
}

template <Combine kind>
Status ApplyTo(absl::Span<const int64_t> offsets, int64_t slice,
               const Tensor& updates, Tensor& out) {
  bool known;
  auto run = [&](auto tag) {
    Apply<kind, typename decltype(tag)::type>(offsets, slice, updates, out);
  };
  if constexpr (kind == Combine::kUpdate) {
    known = DispatchElement(out.dtype(), run);
  } else if constexpr (kind == Combine::kMin || kind == Combine::kMax) {
    known = DispatchDType(out.dtype(), RealTypes{}, run);
  } else {
    known = DispatchDType(out.dtype(), NumberTypes{}, run) ||
            DispatchDType(out.dtype(), TypeList<bool>{}, run);
    // Strings are joined by an addition; nothing can be taken from them.
    if constexpr (kind == Combine::kAdd) {
      known = known || DispatchDType(out.dtype(), TypeList<std::string>{}, run);
    }
  }
  if (known) return OkStatus();
  return Unimplemented("scatter of ", DTypeName(out.dtype()));
}

// Writes updates (input 2 or 1) into output 0, whose elements are set already.
template <Combine kind>
Status Scatter(KernelContext& c, const Tensor& indices, const Tensor& updates) {
  Tensor& out = c.output(0);
  HR_ASSIGN_OR_RETURN(BadIndices policy, BadIndicesPolicy(c.op()));
  const int64_t depth = indices.dim(indices.rank() - 1);
  int64_t bad;
  std::vector<int64_t> offsets = PlaceOffsets(indices, out.shape(), &bad);
  if (bad >= 0 && policy == BadIndices::kError) {
    return InvalidArgument(PlaceText(indices, bad),
                           " does not index into shape ", out.shape());
  }
  const int64_t slice =
      out.shape().Product(static_cast<int>(depth), out.rank());
  // The check is behind the one of the indices, which are refused even when
  // nothing would be written.
  if (updates.num_elements() == 0 || out.num_elements() == 0) return OkStatus();
  return ApplyTo<kind>(offsets, slice, updates, out);
}

// Why updates and indices do not go together, in a graph's words.
ShapeRefusal OuterDiffer(const Shape& indices, const Shape& updates) {
  const int outer = indices.rank() - 1;
  const Shape a = indices.Sub(0, outer), b = updates.Sub(0, outer);
  return {absl::StrCat("Dimensions [0,", outer,
                       ") of indices[shape=", indices.ToString(),
                       "] = ", a.ToString(), " must match dimensions [0,",
                       outer, ") of updates[shape=", updates.ToString(),
                       "] = ", b.ToString(), ": ", NotMerged(a, b).text)};
}

// --- ScatterNd and its sibling with an input.

Status CheckScatterNd(ShapeContext& c, const Shape& shape, const Shape& indices,
                      const Shape& updates) {
  if (indices.known_rank() && indices.rank() < 1) {
    return c.Refuse(
        RankIsLess(1, 0),
        InvalidArgument("Indices shape must have rank at least one. Found:",
                        indices));
  }
  if (updates.known_rank() && updates.rank() < 1) {
    return c.Refuse(
        RankIsLess(1, 0),
        InvalidArgument("Updates shape must have rank at least one. Found:",
                        updates));
  }
  if (!indices.known_rank() || !updates.known_rank() || !shape.known_rank()) {
    return OkStatus();
  }
  const int outer = indices.rank() - 1;
  const int64_t depth = indices[outer];
  // The two texts about an empty output are for updates that surely have
  // elements to place.
  const bool something = indices.fully_known() && updates.fully_known() &&
                         indices.num_elements() > 0 &&
                         updates.num_elements() > 0;
  const bool outer_differ =
      updates.rank() < outer ||
      !updates.Sub(0, outer).CompatibleWith(indices.Sub(0, outer));
  // (Graphs look at the outer dimensions first.)
  if (something && shape.rank() == 0) {
    return c.Refuse(
        outer_differ ? OuterDiffer(indices, updates) : ShapeRefusal{},
        InvalidArgument(
            "Indices and updates specified for empty output shape"));
  }
  if (something && shape.fully_known() && shape.num_elements() == 0) {
    return c.Refuse(
        outer_differ ? OuterDiffer(indices, updates) : ShapeRefusal{},
        InvalidArgument(
            "Indices and updates specified for empty output.  indices shape: ",
            indices));
  }
  if (outer_differ) {
    return c.Refuse(
        OuterDiffer(indices, updates),
        InvalidArgument("Dimensions [0,", outer, ") of indices[shape=", indices,
                        "] must match dimensions [0,", outer,
                        ") of updates[shape=", updates, "]"));
  }
  if (depth < 0) return OkStatus();
  // Bounded, as Sub below takes no start behind the rank; the larger depth is
  // refused by the same condition.
  const int d = static_cast<int>(std::min<int64_t>(depth, shape.rank()));
  if (depth > shape.rank() ||
      !updates.Sub(outer, updates.rank())
           .CompatibleWith(shape.Sub(d, shape.rank()))) {
    return InvalidArgument("Dimensions [", depth, ",", shape.rank(),
                           ") of input[shape=", shape,
                           "] must match dimensions [", outer, ",",
                           updates.rank(), ") of updates[shape=", updates, "]");
  }
  return OkStatus();
}

Status ScatterNdRule(ShapeContext& c) {
  if (c.input(2).known_rank() && c.input(2).rank() != 1) {
    return c.Refuse(RankIsNot(1, c.input(2).rank()),
                    InvalidArgument("Shape must be a vector"));
  }
  // Once without the shape: graphs complain of indices and updates before they
  // look at the shape's value.
  HR_RETURN_IF_ERROR(
      CheckScatterNd(c, Shape::UnknownRank(), c.input(0), c.input(1)));
  absl::InlinedVector<int64_t, 8> dims;
  if (c.IntValues(2, &dims)) {
    for (int64_t d : dims) {
      if (d < 0) return InvalidArgument("Dimension ", d, " must be >= 0");
    }
  }
  HR_ASSIGN_OR_RETURN(Shape out, c.ShapeValue(2));
  HR_RETURN_IF_ERROR(CheckScatterNd(c, out, c.input(0), c.input(1)));
  c.set_output(0, std::move(out));
  return OkStatus();
}

Status ScatterNd(KernelContext& c) {
  // Places named twice add up, so the output starts from zeros and the kernel
  // adds.
  FillZero(c.output(0));
  return Scatter<Combine::kAdd>(c, c.input(0), c.input(1));
}

AttrMap Policy(const ResolvedOp& op) {
  return {{"bad_indices_policy", op.string_attr("bad_indices_policy")}};
}

// The gradient for the updates: dy at their places.
Value AtPlaces(GradientContext& g, const Value& dy, const Value& indices) {
  Value places = indices;
  // GatherNd has no uint16 indices.
  if (indices.dtype() == DType::kUint16) {
    places = g("Cast", {indices}, {{"DstT", DType::kInt32}});
  }
  return g("GatherNd", {dy, places}, Policy(g.op()));
}

Status ScatterNdGradient(GradientContext& g) {
  // Scattering is linear in the updates, so the gradient reads dy where each of
  // them went.
  g.set(1, AtPlaces(g, g.grad(), g.input(0)));
  return g.status();
}

Status VectorizeScatterNd(VectorizeContext& c) {
  HR_RETURN_IF_ERROR(c.WantShared(2));
  HR_RETURN_IF_ERROR(c.WantRank(0));
  return c.SetAll(c.Again(
      {c.WithRowNumbers(c.Stacked(0)), c.Stacked(1), c.WithCount(c.input(2))}));
}

Status VectorizeTensorScatter(VectorizeContext& c) {
  HR_RETURN_IF_ERROR(c.WantRank(1));
  return c.SetAll(
      c.Again({c.Stacked(0), c.WithRowNumbers(c.Stacked(1)), c.Stacked(2)}));
}

HR_OP(ScatterNd)
    .Input("indices: Tindices")
    .Input("updates: T")
    .Input("shape: Tindices")
    .Output("output: T")
    .Attr("T: type")
    .Attr("Tindices: {int16, int32, int64}")
    .Attr("bad_indices_policy: string = ''")
    .Doc("Zeros of a shape, with updates added at the places of indices.")
    .Shape(ScatterNdRule)
    .Gradient(ScatterNdGradient)
    .GradientSkips({1, 2}, {0})
    .Vectorize(VectorizeScatterNd)
    .Cpu(Compute<ScatterNd>);

Status AddingRule(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckScatterNd(c, c.input(0), c.input(1), c.input(2)));
  c.set_output(0, c.input(0));
  return OkStatus();
}

// --- TensorScatter*.

Status TensorScatterRule(ShapeContext& c) {
  const Shape &in = c.input(0), &indices = c.input(1), &updates = c.input(2);
  c.set_output(0, in);
  if (indices.known_rank() && indices.rank() < 1) {
    return c.Refuse(
        RankIsLess(1, 0),
        InvalidArgument("Indices shape must have rank at least one. Found:",
                        indices));
  }
  if (!in.known_rank() || !indices.known_rank() || !updates.known_rank()) {
    return OkStatus();
  }
  const int outer = indices.rank() - 1;
  const int64_t depth = indices[outer];
  if (updates.rank() < outer ||
      !updates.Sub(0, outer).CompatibleWith(indices.Sub(0, outer))) {
    return c.Refuse(
        OuterDiffer(indices, updates),
        InvalidArgument("Outer dimensions of indices and update must match. "
                        "Indices shape: ",
                        indices, ", updates shape:", updates));
  }
  if (depth < 0) return OkStatus();
  const int d = static_cast<int>(std::min<int64_t>(depth, in.rank()));
  if (depth > in.rank() || !updates.Sub(outer, updates.rank())
                                .CompatibleWith(in.Sub(d, in.rank()))) {
    return InvalidArgument(
        "Inner dimensions of output shape must match inner dimensions of "
        "updates shape. Output: ",
        in, " updates: ", updates);
  }
  return OkStatus();
}

template <Combine kind>
Status TensorScatter(KernelContext& c) {
  Tensor& out = c.output(0);
  // The output may be the input's own buffer (InPlace below), which needs no
  // copy.
  if (out.raw() != c.input(0).raw()) CopyElements(c.input(0), out);
  return Scatter<kind>(c, c.input(1), c.input(2));
}

Status UpdateGradient(GradientContext& g) {
  Value dy = g.grad();
  Value zeros = g("ZerosLike", {g.input(2)});
  // What was overwritten has no part in the result, so dy is zero there.
  g.set(0, g("TensorScatterUpdate", {dy, g.input(1), zeros}, Policy(g.op())));
  if (g.ok()) g.set(2, AtPlaces(g, dy, g.input(1)));
  return g.status();
}
template <bool negative>
Status AddGradient(GradientContext& g) {
  Value dy = g.grad();
  g.set(0, dy);
  Value at = AtPlaces(g, dy, g.input(1));
  g.set(2, negative ? g("Neg", {at}) : at);
  return g.status();
}

// Whoever equals the result shares dy equally.
Status ExtremeGradient(GradientContext& g) {
  Value dy = g.grad();
  if (!g.ok()) return g.status();
  const Value &x = g.input(0), &indices = g.input(1), &updates = g.input(2);
  const AttrMap to_dtype = {{"DstT", dy.dtype()}};
  Value x_wins = g("Cast", {g("Equal", {x, g.output(0)})}, to_dtype);
  Value there = g("GatherNd", {g.output(0), indices}, Policy(g.op()));
  Value y_wins = g("Cast", {g("Equal", {updates, there})}, to_dtype);
  if (!g.ok()) return g.status();
  Value shape = g.ShapeOf(x, indices.dtype());
  // How many among x and the updates equal the result at each place: the share
  // of dy is one over that.
  Value winners =
      g("AddV2",
        {x_wins, g("ScatterNd", {indices, y_wins, shape}, Policy(g.op()))});
  Value share = g("RealDiv", {dy, winners});
  g.set(0, g("Mul", {share, x_wins}));
  g.set(2, g("Mul", {g("GatherNd", {share, indices}, Policy(g.op())), y_wins}));
  return g.status();
}

HR_OP(ScatterNdNonAliasingAdd)
    .Input("input: T")
    .Input("indices: Tindices")
    .Input("updates: T")
    .Output("output: T")
    .Attr("T: {numbertype, bool}")
    .Attr("Tindices: {int32, int64}")
    .Attr("bad_indices_policy: string = ''")
    .Doc("The input with updates added at the places of indices.")
    .Shape(AddingRule)
    .Gradient(AddGradient<false>)
    .GradientSkips({0, 2}, {0})
    .InPlace({0})
    .Vectorize(VectorizeTensorScatter)
    .Cpu(Compute<TensorScatter<Combine::kAdd>>);

OpBuilder TensorScatterOp(const char* name, const char* indices,
                          const char* doc) {
  OpBuilder b(name);
  b.Input("tensor: T")
      .Input("indices: Tindices")
      .Input("updates: T")
      .Output("output: T")
      .Attr("T: type")
      .Attr(indices)
      .Attr("bad_indices_policy: string = ''")
      .Doc(doc)
      .Shape(TensorScatterRule)
      .InPlace({0});
  return b;
}
[[maybe_unused]] const OpRegistrar kTensorScatters[] = {
    TensorScatterOp("TensorScatterUpdate",
                    "Tindices: {int16, int32, int64, uint16}",
                    "The tensor with updates written at the places of indices.")
        .Gradient(UpdateGradient)
        .GradientSkips({0}, {0})
        .Vectorize(VectorizeTensorScatter)
        .Cpu(Compute<TensorScatter<Combine::kUpdate>>),
    TensorScatterOp("TensorScatterAdd", "Tindices: {int32, int64}",
                    "The tensor with updates added at the places of indices.")
        .Gradient(AddGradient<false>)
        .GradientSkips({0, 2}, {0})
        .Vectorize(VectorizeTensorScatter)
        .Cpu(Compute<TensorScatter<Combine::kAdd>>),
    TensorScatterOp("TensorScatterSub", "Tindices: {int32, int64}",
                    "The tensor less the updates at the places of indices.")
        .Gradient(AddGradient<true>)
        .GradientSkips({0, 2}, {0})
        .Vectorize(VectorizeTensorScatter)
        .Cpu(Compute<TensorScatter<Combine::kSub>>),
    TensorScatterOp("TensorScatterMax", "Tindices: {int32, int64}",
                    "The larger of the tensor and the updates at their places.")
        .Gradient(ExtremeGradient)
        .Vectorize(VectorizeTensorScatter)
        .Cpu(Compute<TensorScatter<Combine::kMax>>),
    TensorScatterOp(
        "TensorScatterMin", "Tindices: {int32, int64}",
        "The smaller of the tensor and the updates at their places.")
        .Gradient(ExtremeGradient)
        .Vectorize(VectorizeTensorScatter)
        .Cpu(Compute<TensorScatter<Combine::kMin>>),
};

}  // namespace
}  // namespace headrace
