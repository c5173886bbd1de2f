// TileGrad: what Tile repeated, summed. Graphs of version 3 on have sums
// instead.
#include "op/op.h"
#include "ops/math/loops/wrapping.h"

namespace headrace {
namespace {

StatusOr<Shape> Untiled(const KernelContext& c) {
  const Shape& in = c.input(0).shape();
  const Tensor& multiples = c.input(1);
  if (multiples.rank() != 1 || multiples.num_elements() != in.rank()) {
    return InvalidArgument("Expected multiples argument to be a vector of ",
                           "length ", in.rank(), " but got shape ",
                           multiples.shape());
  }
  Shape out;
  for (int i = 0; i < in.rank(); ++i) {
    const int64_t times = multiples.IntAt(i);
    if (times <= 0 || in[i] % times != 0) {
      return InvalidArgument("Expected multiples[", i, "] to divide ", in[i],
                             ", but got ", times);
    }
    out.AddDim(in[i] / times);
  }
  return out;
}

template <typename T>
void SumRepeats(const Tensor& in, const Tensor& out) {
  const int rank = in.rank();
  std::vector<int64_t> at(rank, 0), step(rank, 1);
  for (int i = rank - 2; i >= 0; --i) step[i] = step[i + 1] * out.dim(i + 1);
  const T* from = in.data<T>();
  T* to = out.data<T>();
  for (int64_t k = 0; k < in.num_elements(); ++k) {
    int64_t place = 0;
    for (int i = 0; i < rank; ++i) place += at[i] % out.dim(i) * step[i];
    to[place] = Plus(to[place], from[k]);
    for (int i = rank - 1; i >= 0 && ++at[i] == in.dim(i); --i) at[i] = 0;
  }
}

Status UndoTile(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const Shape shape, Untiled(c));
  HR_RETURN_IF_ERROR(c.Allocate(0, shape));
  FillZero(c.output(0));
  const Tensor& in = c.input(0);
  const bool known = DispatchDType(in.dtype(), NumberTypes{}, [&](auto tag) {
    SumRepeats<typename decltype(tag)::type>(in, c.output(0));
  });
  return known ? OkStatus()
               : Unimplemented("TileGrad of ", DTypeName(in.dtype()));
}

HR_OP(TileGrad)
    .Input("input: T")
    .Input("multiples: int32")
    .Output("output: T")
    .Attr("T: type")
    .Deprecated(3, "TileGrad has been replaced with reduce_sum")
    .Doc("The sum of what a tile repeated.")
    .Shape(UnknownShape)
    .Cpu(ComputeOwn<UndoTile>);

}  // namespace
}  // namespace headrace
