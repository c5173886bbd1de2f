#include <complex>

#include "absl/strings/str_join.h"
#include "base/thread_pool.h"
#include "op/op.h"
#include "op/shared_refusal.h"
#include "op/spelled_out.h"
#include "op/vectorize.h"
#include "ops/array/block_copy.h"

namespace headrace {
namespace {

using Permutation = absl::InlinedVector<int, 8>;

// `c`: the shape rule's, null in the kernel.
StatusOr<Permutation> ReadPermutation(const Tensor& perm, int rank,
                                      ShapeContext* c) {
  if (perm.rank() != 1) {
    return InvalidArgument("perm must be rank 1, got shape ", perm.shape());
  }
  if (perm.num_elements() != rank) {
    return Refuse(c, DimensionIsNot(rank, perm.num_elements()),
                  InvalidArgument("transpose expects a vector of size ", rank,
                                  ". But input(1) is a vector of size ",
                                  perm.num_elements()));
  }
  Permutation p(rank);
  absl::InlinedVector<bool, 8> seen(rank, false);
  for (int i = 0; i < rank; ++i) {
    int64_t d = perm.IntAt(i);
    if (d < -rank || d >= rank) {
      return Refuse(c,
                    {absl::StrCat("perm dim ", d,
                                  " is out of range of input rank ", rank),
                     2},
                    InvalidArgument(d, " is out of range [0 .. ", rank, ")"));
    }
    if (d < 0) d += rank;
    p[i] = static_cast<int>(d);
    seen[d] = true;
  }
  for (int i = 0; i < rank; ++i) {
    if (!seen[i]) {
      return InvalidArgument(i, " is missing from {", absl::StrJoin(p, ","),
                             "}.");
    }
  }
  return p;
}

Status TransposeRule(ShapeContext& c) {
  const Shape& in = c.input(0);
  const Shape& perm = c.input(1);
  if (perm.known_rank() && perm.rank() != 1) {
    return c.Refuse(RankIsNot(1, perm.rank()),
                    InvalidArgument("perm must be rank 1, got shape ", perm));
  }
  if (!in.known_rank()) {
    // The length of the permutation is the rank.
    if (perm.known_rank() && perm[0] >= 0 && perm[0] <= Shape::kMaxRank) {
      c.set_output(0, Shape::UnknownOfRank(static_cast<int>(perm[0])));
    }
    return OkStatus();
  }
  if (c.value(1) == nullptr) {
    c.set_output(0, Shape::UnknownOfRank(in.rank()));
    return OkStatus();
  }
  HR_ASSIGN_OR_RETURN(Permutation p,
                      ReadPermutation(*c.value(1), in.rank(), &c));
  Shape out;
  for (int d : p) out.AddDim(in[d]);
  c.set_output(0, std::move(out));
  return OkStatus();
}

Status Transpose(KernelContext& c) {
  const Tensor& in = c.input(0);
  Tensor& out = c.output(0);
  HR_ASSIGN_OR_RETURN(Permutation p,
                      ReadPermutation(c.input(1), in.rank(), nullptr));
  const auto from = RowMajorStrides(in.shape().dims());
  const auto to = RowMajorStrides(out.shape().dims());
  BlockDims dims;
  for (int i = 0; i < out.rank(); ++i) {
    dims.push_back({out.dim(i), from[p[i]], to[i]});
  }
  CopyBlock(in.dtype(), in.raw(), out.raw(), std::move(dims));
  return OkStatus();
}

Status ConjugateTranspose(KernelContext& c) {
  HR_RETURN_IF_ERROR(Transpose(c));
  Tensor& out = c.output(0);
  DispatchDType(out.dtype(), ComplexTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* y = out.data<T>();
    ParallelFor(out.num_elements(), 0.5, [y](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) y[i] = std::conj(y[i]);
    });
  });
  return OkStatus();
}

template <bool conjugate>
Status TransposeGradient(GradientContext& g) {
  Value back = g("InvertPermutation", {g.input(1)});
  g.set(0, Named(g, "transpose", conjugate ? "ConjugateTranspose" : "Transpose",
                 {g.grad(), back}));
  return g.status();
}

Status VectorizeTranspose(VectorizeContext& c) {
  HR_RETURN_IF_ERROR(c.WantShared(1));
  return c.SetAll(
      c.Again({c.input(0), c.WithFirst(c.ShiftAxes(c.input(1)), 0)}));
}

HR_OP(Transpose)
    .Traits({OpTrait::kMovesNumbers})
    .Input("x: T")
    .Input("perm: Tperm")
    .Output("y: T")
    .Attr("T: type")
    .Attr("Tperm: {int32, int64} = DT_INT32")
    .Doc("Dimension i of y is dimension perm[i] of x.")
    .Role(OpRole::kTranspose)
    .Shape(TransposeRule)
    .Gradient(TransposeGradient<false>)
    .GradientSkips({0}, {0})
    .Vectorize(VectorizeTranspose)
    .Cpu(Compute<Transpose>);

HR_OP(ConjugateTranspose)
    .Input("x: T")
    .Input("perm: Tperm")
    .Output("y: T")
    .Attr("T: type")
    .Attr("Tperm: {int32, int64} = DT_INT32")
    .Doc("The complex conjugate of Transpose.")
    .Shape(TransposeRule)
    .Gradient(TransposeGradient<true>)
    .GradientSkips({0}, {0})
    .Vectorize(VectorizeTranspose)
    .Cpu(Compute<ConjugateTranspose>);

Status InvertPermutationRule(ShapeContext& c) {
  if (c.input(0).known_rank() && c.input(0).rank() != 1) {
    return InvalidArgument("invert_permutation expects a 1D vector.");
  }
  c.set_output(0,
               c.input(0).known_rank() ? c.input(0) : Shape{Shape::kUnknown});
  return OkStatus();
}

template <typename T>
Status Invert(KernelContext& c) {
  const int64_t n = c.input(0).num_elements();
  const T* x = c.in<T>(0);
  T* y = c.out<T>(0);
  // -1 marks places that no element has named, so that a second name is
  // noticed.
  std::fill_n(y, n, T(-1));
  for (int64_t i = 0; i < n; ++i) {
    int64_t d = x[i];
    if (d < 0) d += n;  // as Transpose reads it
    if (d < 0 || d >= n) {
      return InvalidArgument(x[i], " is not between 0 and ", n);
    }
    if (y[d] != -1) {
      return InvalidArgument(x[i], " is duplicated in the input.");
    }
    y[d] = static_cast<T>(i);
  }
  return OkStatus();
}
Status InvertPermutation(KernelContext& c) {
  return c.input(0).dtype() == DType::kInt32 ? Invert<int32_t>(c)
                                             : Invert<int64_t>(c);
}

HR_OP(InvertPermutation)
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {int32, int64} = DT_INT32")
    .Doc("The permutation that undoes x.")
    .Shape(InvertPermutationRule)
    .NoGradient()
    .Cpu(Compute<InvertPermutation>);

}  // namespace
}  // namespace headrace
