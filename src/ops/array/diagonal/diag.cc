// Diag, DiagPart: a tensor as the diagonal of one of twice its rank.
#include "op/op.h"
#include "op/vectorize.h"
#include "ops/array/block_copy.h"

namespace headrace {
namespace {

Status DiagRule(ShapeContext& c) {
  const Shape& in = c.input(0);
  if (!in.known_rank()) return OkStatus();
  if (in.rank() < 1) {
    return InvalidArgument("Input must be at least rank 1, got ", in.rank());
  }
  Shape out = in.Concat(in);
  if (out.fully_known()) {
    HR_ASSIGN_OR_RETURN(out, Shape::Make(out.dims()));
  }
  c.set_output(0, std::move(out));
  return OkStatus();
}
Status Diag(KernelContext& c) {
  const Tensor& in = c.input(0);
  FillZero(c.output(0));
  const int64_t n = in.num_elements();
  // From one element of the diagonal to the next.
  CopyBlock(in.dtype(), in.raw(), c.output(0).raw(), {{n, 1, n + 1}});
  return OkStatus();
}

Status DiagPartRule(ShapeContext& c) {
  const Shape& in = c.input(0);
  if (!in.known_rank()) return OkStatus();
  if (in.rank() == 0) {
    return InvalidArgument(
        "Input must have even and non-zero rank, input rank is 0");
  }
  if (in.rank() % 2 != 0) {
    // The gap is upstream's.
    return InvalidArgument(
        "The rank of the tensor should be                                  "
        "        even and positive, got shape ",
        in);
  }
  const int half = in.rank() / 2;
  Shape out;
  for (int i = 0; i < half; ++i) {
    const int64_t a = in[i], b = in[half + i];
    if (a >= 0 && b >= 0 && a != b) {
      return InvalidArgument("Invalid shape ", in, ": dimensions ", i, " and ",
                             half + i, " do not match.");
    }
    out.AddDim(a >= 0 ? a : b);
  }
  c.set_output(0, std::move(out));
  return OkStatus();
}
Status DiagPart(KernelContext& c) {
  const int64_t n = c.output(0).num_elements();
  CopyBlock(c.input(0).dtype(), c.input(0).raw(), c.output(0).raw(),
            {{n, n + 1, 1}});
  return OkStatus();
}

Status DiagGradient(GradientContext& g) {
  g.set(0, g("DiagPart", {g.grad()}));
  return g.status();
}
Status DiagPartGradient(GradientContext& g) {
  g.set(0, g("Diag", {g.grad()}));
  return g.status();
}

constexpr char kDiagTypes[] =
    "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}";
// A row's tensor as a vector, whose matrix is the result's elements.
Status VectorizeDiag(VectorizeContext& c) {
  Value sizes = c.Sizes(c.input(0), 1);
  Value flat =
      c.Reshape(c.input(0), c.Join({c.CountSizes(), c.Product(sizes)}));
  return c.Set(c.Reshape(c("MatrixDiag", {flat}),
                         c.Join({c.CountSizes(), sizes, sizes})));
}
Status VectorizeDiagPart(VectorizeContext& c) {
  HR_RETURN_IF_ERROR(c.WantRank(0));
  const int half = c.row_rank(0) / 2;
  Value sizes = c.Sizes(c.input(0), 1, 1 + half);
  Value size = c.Product(sizes);
  Value matrix = c.Reshape(c.input(0), c.Join({c.CountSizes(), size, size}));
  return c.Set(c.Reshape(c("MatrixDiagPart", {matrix}),
                         c.Join({c.CountSizes(), sizes})));
}

HR_OP(Diag)
    .Input("diagonal: T")
    .Output("output: T")
    .Attr(kDiagTypes)
    .Doc("Zeros with the elements of a tensor on the diagonal.")
    .Shape(DiagRule)
    .Gradient(DiagGradient)
    .GradientSkips({0}, {0})
    .Vectorize(VectorizeDiag)
    .Cpu(Compute<Diag>);

HR_OP(DiagPart)
    .Input("input: T")
    .Output("diagonal: T")
    .Attr(kDiagTypes)
    .Doc("The diagonal of a tensor whose shape is the same twice.")
    .Shape(DiagPartRule)
    .Gradient(DiagPartGradient)
    .GradientSkips({0}, {0})
    .Vectorize(VectorizeDiagPart)
    .Cpu(Compute<DiagPart>);

}  // namespace
}  // namespace headrace
