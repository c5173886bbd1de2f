#include <algorithm>

#include "ops/array/block_copy.h"
#include "ops/array/element_dispatch.h"
#include "ops/sparse/sparse_input.h"

namespace headrace {
namespace {

Status ToDenseRule(ShapeContext& c) {
  if (c.input(1).known_rank() && c.input(1).rank() != 1) {
    return InvalidArgument("output_shape must be rank 1, got shape ",
                           c.input(1));
  }
  HR_ASSIGN_OR_RETURN(Shape out, c.ShapeValue(1));
  if (c.value(1)) {
    HR_ASSIGN_OR_RETURN(out, Shape::Make(out.dims()));
  }
  c.set_output(0, std::move(out));
  return OkStatus();
}

// Indices as a matrix: a scalar or vector names places of a vector.
StatusOr<Tensor> AsMatrix(const Tensor& indices) {
  switch (indices.rank()) {
    case 0:
      return indices.WithShape(Shape{1, 1});
    case 1:
      return indices.WithShape(Shape{indices.dim(0), 1});
    case 2:
      return indices;
    default:
      return InvalidArgument(
          "sparse_indices should be a scalar, vector, or matrix, got shape ",
          indices.shape());
  }
}

template <typename T, typename I>
void PlaceRows(const I* row, int64_t n, int64_t rank, const T* x, bool one,
               Tensor& out) {
  T* y = static_cast<T*>(out.raw());
  if (rank == 2) {
    const int64_t width = out.dim(1);
    for (int64_t i = 0; i < n; ++i) {
      y[row[2 * i] * width + row[2 * i + 1]] = x[one ? 0 : i];
    }
    return;
  }
  const Dims dims(out.shape().dims().begin(), out.shape().dims().end());
  for (int64_t i = 0; i < n; ++i, row += rank) {
    int64_t at = 0;
    for (int64_t d = 0; d < rank; ++d) at = at * dims[d] + row[d];
    y[at] = x[one ? 0 : i];
  }
}

template <typename T>
void Place(const Tensor& places, const Tensor& values, const T& fallback,
           Tensor& out) {
  FillRun(out.dtype(), out.raw(), &fallback, out.num_elements());
  const T* x = static_cast<const T*>(values.raw());
  const int64_t n = places.dim(0), rank = places.dim(1);
  const bool one = values.rank() == 0;
  if (places.dtype() == DType::kInt32) {
    PlaceRows(places.data<int32_t>(), n, rank, x, one, out);
  } else {
    PlaceRows(places.data<int64_t>(), n, rank, x, one, out);
  }
}

Status ToDense(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(Tensor places, AsMatrix(c.input(0)));
  const Tensor &shape = c.input(1), &values = c.input(2);
  if (shape.rank() != 1) {
    return InvalidArgument("output_shape must be rank 1, got shape ",
                           shape.shape());
  }
  if (shape.num_elements() != places.dim(1)) {
    return InvalidArgument("output_shape has incorrect number of elements: ",
                           shape.num_elements(), " should be: ", places.dim(1));
  }
  if (values.rank() != 0 &&
      (values.rank() != 1 || values.dim(0) != places.dim(0))) {
    return InvalidArgument("sparse_values has incorrect shape ", values.shape(),
                           ", should be [] or [", places.dim(0), "]");
  }
  if (c.input(3).rank() != 0) {
    return InvalidArgument("default_value should be a scalar.");
  }
  const Dims dims = IntsOf(shape);
  const bool validate = c.op().bool_attr("validate_indices");
  if (validate) {
    HR_RETURN_IF_ERROR(CheckPlaces(places, dims, /*ordered=*/true));
  }
  HR_ASSIGN_OR_RETURN(Shape out, Shape::Make(dims));
  // Unvalidated means unordered or repeated; outside nothing may be written.
  if (!validate && !CheckPlaces(places, dims, /*ordered=*/false).ok()) {
    return InvalidArgument("Indices are not valid (out of bounds).  Shape: ",
                           out);
  }
  HR_RETURN_IF_ERROR(c.Allocate(0, out));
  DispatchElement(values.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    Place<T>(places, values, *static_cast<const T*>(c.input(3).raw()),
             c.output(0));
  });
  return OkStatus();
}

// All axes of `x`.
Value SumAll(GradientContext& g, const Value& x) {
  Value axes = g("Range", {g.Int32(0), g("Rank", {x}), g.Int32(1)});
  return g("Sum", {x, axes});
}

Status ToDenseGradient(GradientContext& g) {
  Value dy = g.grad();
  Value values = g("GatherNd", {dy, g.input(0)});
  if (!g.ok()) return g.status();
  if (g.input(2).shape().IsScalar()) {
    g.set(2, SumAll(g, values));
  } else {
    g.set(2, values);
  }
  // The default stands where no value does.
  g.set(3, g("Sub", {SumAll(g, dy), SumAll(g, values)}));
  return g.status();
}

HR_OP(SparseToDense)
    .Input("sparse_indices: Tindices")
    .Input("output_shape: Tindices")
    .Input("sparse_values: T")
    .Input("default_value: T")
    .Output("dense: T")
    .Attr("validate_indices: bool = true")
    .Attr("T: type")
    .Attr("Tindices: {int32, int64}")
    .Doc("A dense tensor with the values at their places.")
    .Shape(ToDenseRule)
    .Gradient(ToDenseGradient)
    .GradientSkips({1, 3}, {0})
    .Cpu(ComputeOwn<ToDense>);

}  // namespace
}  // namespace headrace
