#include "ops/sparse/sparse_input.h"

namespace headrace {
namespace {

template <typename T>
Status AddTo(const Tensor& places, const Tensor& values, Tensor& out) {
  const int64_t n = places.dim(0), rank = places.dim(1);
  for (int64_t i = 0; i < n; ++i) {
    int64_t at = 0;
    for (int64_t d = 0; d < rank; ++d) {
      at = at * out.dim(static_cast<int>(d)) + places.IntAt(i * rank + d);
    }
    // A place named twice adds twice, as upstream does.
    T& y = out.data<T>()[at];
    y = T(y + values.data<T>()[i]);
  }
  return OkStatus();
}

Status DenseAdd(KernelContext& c) {
  const Tensor &places = c.input(0), &values = c.input(1), &b = c.input(3);
  if (places.rank() != 2 || values.rank() != 1 || c.input(2).rank() != 1) {
    return InvalidArgument(
        "Indices must be a matrix, values and shape vectors: got indices ",
        places.shape(), ", values ", values.shape(), ", shape ",
        c.input(2).shape());
  }
  for (auto [of_indices, wanted] :
       {std::pair(places.dim(0), values.dim(0)),
        std::pair(places.dim(1), c.input(2).dim(0))}) {
    if (of_indices == wanted) continue;
    return InvalidArgument("Dimensions ", of_indices, " and ", wanted,
                           " are not compatible");
  }
  const Dims dims = IntsOf(c.input(2));
  if (static_cast<int>(dims.size()) != b.rank()) {
    return InvalidArgument("Two operands have different ndims; received: ",
                           dims.size(), " and ", b.rank());
  }
  for (int d = 0; d < b.rank(); ++d) {
    if (dims[d] == b.dim(d)) continue;
    return InvalidArgument("Dimension ", d,
                           " does not equal (no broadcasting is supported): "
                           "sparse side ",
                           dims[d], " vs dense side ", b.dim(d));
  }
  // All places are checked before the first is written: an error leaves the
  // output unset.
  for (int64_t i = 0; i < places.num_elements(); ++i) {
    const int64_t d = i % b.rank(), at = places.IntAt(i);
    if (at >= 0 && at < b.dim(static_cast<int>(d))) continue;
    return InvalidArgument("Sparse tensor has an invalid index on dimension ",
                           d, ": a_indices(", i / b.rank(), ",", d, ") = ", at,
                           ", dense tensor shape: ", JoinInts(dims));
  }
  CopyElements(b, c.output(0));
  Status status =
      Unimplemented("SparseTensorDenseAdd of ", DTypeName(b.dtype()));
  DispatchDType(b.dtype(), NumberTypes{}, [&](auto tag) {
    status = AddTo<typename decltype(tag)::type>(places, values, c.output(0));
  });
  return status;
}

Status DenseAddGradient(GradientContext& g) {
  Value dy = g.grad();
  g.set(1, g("GatherNd", {dy, g.input(0)}));
  g.set(3, dy);
  return g.status();
}

HR_OP(SparseTensorDenseAdd)
    .Input("a_indices: Tindices")
    .Input("a_values: T")
    .Input("a_shape: Tindices")
    .Input("b: T")
    .Output("output: T")
    .Attr("T: numbertype")
    .Attr("Tindices: {int32, int64}")
    .Doc("The sum of a sparse and a dense tensor, dense.")
    .Shape(LikeInput<3>)
    .Gradient(DenseAddGradient)
    .GradientSkips({1, 2, 3}, {0})
    .Cpu(Compute<DenseAdd>);

}  // namespace
}  // namespace headrace
