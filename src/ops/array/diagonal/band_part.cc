#include "base/thread_pool.h"
#include "op/op.h"
#include "op/vectorize.h"
#include "ops/array/element_dispatch.h"

namespace headrace {
namespace {

Status BandRule(ShapeContext& c) {
  const Shape& in = c.input(0);
  if (in.known_rank() && in.rank() < 2) {
    return c.Refuse(
        RankIsLess(2, in.rank()),
        InvalidArgument("input must be at least 2-dim, received shape: ", in));
  }
  c.set_output(0, in);
  for (int i = 1; i < 3; ++i) {
    const StringView name = i == 1 ? "num_lower" : "num_upper";
    if (c.input(i).known_rank() && c.input(i).rank() != 0) {
      return InvalidArgument(name, " must be scalar, got shape ", c.input(i));
    }
    bool known;
    int64_t n;
    HR_RETURN_IF_ERROR(c.IntValue(i, &known, &n));
    if (!known || !in.known_rank()) continue;
    const int64_t size = in[in.rank() - (i == 1 ? 2 : 1)];
    if (size >= 0 && n > size) {
      return InvalidArgument(name, " must be negative or less or equal to ",
                             "number of ", i == 1 ? "rows" : "columns", " (",
                             size, ") got: ", n);
    }
  }
  return OkStatus();
}

template <typename T>
void KeepBand(const T* in, T* out, int64_t all_rows, int64_t rows,
              int64_t columns, int64_t lower, int64_t upper) {
  ParallelFor(
      all_rows, 0.5 * static_cast<double>(columns), [&](int64_t b, int64_t e) {
        for (int64_t r = b; r < e; ++r) {
          const int64_t i = r % rows;
          const T* x = in + r * columns;
          T* y = out + r * columns;
          // Negative numbers keep everything on their side.
          const int64_t first =
              lower < 0 ? 0 : std::clamp<int64_t>(i - lower, 0, columns);
          const int64_t last =
              upper < 0 ? columns
                        : std::clamp<int64_t>(i + upper + 1, first, columns);
          std::fill(y, y + first, T());
          // In place what is kept stays.
          if (x != y) std::copy(x + first, x + last, y + first);
          std::fill(y + last, y + columns, T());
        }
      });
}

Status BandPart(KernelContext& c) {
  const Tensor& in = c.input(0);
  Tensor& out = c.output(0);
  const int rank = in.rank();
  const int64_t rows = in.dim(rank - 2), columns = in.dim(rank - 1);
  if (out.num_elements() == 0) return OkStatus();
  DispatchElement(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    KeepBand(static_cast<const T*>(in.raw()), static_cast<T*>(out.raw()),
             in.shape().Product(0, rank - 1), rows, columns,
             c.input(1).IntAt(0), c.input(2).IntAt(0));
  });
  return OkStatus();
}

Status BandGradient(GradientContext& g) {
  g.set(0, g("MatrixBandPart", {g.grad(), g.input(1), g.input(2)}));
  return g.status();
}

HR_OP(MatrixBandPart)
    .Input("input: T")
    .Input("num_lower: Tindex")
    .Input("num_upper: Tindex")
    .Output("band: T")
    .Attr("T: type")
    .Attr("Tindex: {int32, int64} = DT_INT64")
    .Doc("Matrices with zeros outside a band around the main diagonal.")
    .Shape(BandRule)
    .Gradient(BandGradient)
    .GradientSkips({0}, {0})
    .InPlace({0})
    .Vectorize(VectorizeFirst)
    .Cpu(Compute<BandPart>);

HR_OP(BatchMatrixBandPart)
    .Input("input: T")
    .Input("num_lower: int64")
    .Input("num_upper: int64")
    .Output("band: T")
    .Attr("T: type")
    .Deprecated(14, "Use MatrixBandPart")
    .Doc("Matrices with zeros outside a band around the main diagonal.")
    .Shape(BandRule)
    .InPlace({0})
    .Cpu(Compute<BandPart>);

}  // namespace
}  // namespace headrace
