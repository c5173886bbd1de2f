// UnravelIndex: flat indices as coordinates.
#include "op/op.h"

namespace headrace {
namespace {

Status UnravelShape(ShapeContext& c) {
  const Shape &indices = c.input(0), &dims = c.input(1);
  if (dims.known_rank() && dims.rank() != 1) {
    return InvalidArgument("The dims can only be 1-D, got shape: ", dims);
  }
  if (indices.known_rank() && indices.rank() > 1) {
    return InvalidArgument("The indices can only be scalar or vector got \"",
                           indices, "\"");
  }
  const int64_t n = dims.known_rank() ? dims[0] : Shape::kUnknown;
  if (indices.known_rank()) c.set_output(0, Shape{n}.Concat(indices));
  return OkStatus();
}

template <typename T>
Status Unravel(KernelContext& c) {
  const T* dims = c.in<T>(1);
  const int64_t rank = c.input(1).num_elements();
  const int64_t n = c.input(0).num_elements();
  T size = 1;
  for (int64_t d = 0; d < rank; ++d) {
    if (dims[d] == 0) {
      return InvalidArgument(
          "Input dims cannot contain a dim of zero, but dims contains zero at "
          "index ",
          d);
    }
    if (dims[d] < 0) {
      return InvalidArgument("Input dims cannot contain a dim of ", dims[d]);
    }
    // The product is formed in the type of the dims, as upstream does, so int32
    // dims overflow at 2^31.
    if (__builtin_mul_overflow(size, dims[d], &size)) {
      return InvalidArgument("Input dims product is causing integer overflow");
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    int64_t left = c.in<T>(0)[i];
    if (left < 0 || left >= size) {
      return InvalidArgument("index is out of bound as with dims");
    }
    // Row-major: the last coordinate runs fastest. The result is [rank, n], one
    // row for each dimension.
    for (int64_t d = rank; d-- > 0;) {
      c.out<T>(0)[d * n + i] = static_cast<T>(left % dims[d]);
      left /= dims[d];
    }
  }
  return OkStatus();
}

Status UnravelAny(KernelContext& c) {
  return c.input(0).dtype() == DType::kInt64 ? Unravel<int64_t>(c)
                                             : Unravel<int32_t>(c);
}

HR_OP(UnravelIndex)
    .Input("indices: Tidx")
    .Input("dims: Tidx")
    .Output("output: Tidx")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .Doc("The coordinates of flat indices in an array of shape dims.")
    .Shape(UnravelShape)
    .Cpu(Compute<UnravelAny>);

}  // namespace
}  // namespace headrace
