// MaxPoolWithArgmax, which also says where the maxima are, and its gradients.
#include "ops/nn/pool/pool_op.h"

namespace headrace {
namespace {

// Indices count elements of one image, or of the whole batch.
template <typename I>
void WriteIndices(const PoolGeometry& g, const int64_t* places, bool batch,
                  I* out) {
  const int64_t image = g.out_pixels() * g.channels;
  const int64_t in_image = g.in_pixels() * g.channels;
  for (int64_t i = 0; i < g.batch * image; ++i) {
    // Places are pixels; indices count elements.
    int64_t at = places[i] < 0 ? -1 : places[i] * g.channels + i % g.channels;
    if (at >= 0 && batch) at += i / image * in_image;
    out[i] = static_cast<I>(at);
  }
}

Status RunWithArgmax(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(PoolRun r, PoolRun::Make(c, c.input(0).shape()));
  HR_ASSIGN_OR_RETURN(Tensor places, r.Places(c));
  const Tensor& x = c.input(0);
  HR_RETURN_IF_ERROR(
      MaxPoolForward(x.dtype(), r.geometry(), x.raw(), c.output(0).raw()));
  const bool batch = c.op().bool_attr("include_batch_in_index");
  DispatchDType(c.output(1).dtype(), IndexTypes{}, [&](auto tag) {
    using I = typename decltype(tag)::type;
    WriteIndices(r.geometry(), places.data<int64_t>(), batch, c.out<I>(1));
  });
  return OkStatus();
}

// Input i has the shape of input 0 pooled; sizes are checked before.
Status CheckPooled(const KernelContext& c, int i, const char* what) {
  HR_ASSIGN_OR_RETURN(const PoolAttrs attrs, PoolAttrs::Make(c.op()));
  HR_ASSIGN_OR_RETURN(const Shape pooled, attrs.Output(c.input(0).shape()));
  if (c.input(i).shape() == pooled) return OkStatus();
  return InvalidArgument("Expected ", what, " shape to be ", pooled,
                         ", but got ", c.input(i).shape());
}

// Input `argmax`'s indices as pixels of their images.
StatusOr<Tensor> PlacesFrom(const KernelContext& c, const PoolGeometry& g,
                            int argmax) {
  const Tensor& at = c.input(argmax);
  const int64_t n = at.num_elements();
  HR_RETURN_IF_ERROR(CheckPooled(c, argmax, "argmax"));
  HR_ASSIGN_OR_RETURN(Tensor places, c.Temporary(DType::kInt64, Shape{n}));
  const bool batch = c.op().bool_attr("include_batch_in_index");
  const int64_t image = n / std::max<int64_t>(g.batch, 1);
  const int64_t in_image = g.in_pixels() * g.channels;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t base = batch ? i / image * in_image : 0;
    const int64_t v = at.IntAt(i) - base;
    // An index into another channel would scatter where no window looked.
    if (v < 0 || v >= in_image || v % g.channels != i % g.channels) {
      return InvalidArgument("Invalid input index ", at.IntAt(i),
                             ", outside of [0, ", in_image * g.batch, ")");
    }
    places.data<int64_t>()[i] = v / g.channels;
  }
  return places;
}

Status RunArgmaxGrad(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(PoolRun r, PoolRun::Make(c, c.input(0).shape()));
  HR_RETURN_IF_ERROR(CheckPooled(c, 1, "grad"));
  HR_ASSIGN_OR_RETURN(Tensor places, PlacesFrom(c, r.geometry(), 2));
  return ScatterPlaces(c.input(0).dtype(), r.geometry(), places.data<int64_t>(),
                       c.input(1).raw(), c.output(0).raw());
}

Status RunArgmaxGradGrad(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(PoolRun r, PoolRun::Make(c, c.input(0).shape()));
  HR_ASSIGN_OR_RETURN(Tensor places, PlacesFrom(c, r.geometry(), 2));
  return GatherPlaces(c.input(0).dtype(), r.geometry(), places.data<int64_t>(),
                      c.input(1).raw(), c.output(0).raw());
}

Status GradGradShape(ShapeContext& c) {
  if (!c.input(0).CompatibleWith(c.input(1))) {
    return InvalidArgument("Expected grad shape to be ", c.input(0),
                           ", but got ", c.input(1));
  }
  return PooledShape(c);
}

Status WithArgmaxGradient(GradientContext& g) {
  Value d = g.grad();
  if (!d) return g.status();
  g.set(0, g("MaxPoolGradWithArgmax", {g.input(0), d, g.output(1)},
             PoolAttrMap(g.op())));
  return g.status();
}

Status ArgmaxGradGradient(GradientContext& g) {
  Value d = g.grad();
  if (!d) return g.status();
  g.set(0, g("ZerosLike", {g.input(0)}));
  g.set(1, g("MaxPoolGradGradWithArgmax", {g.input(0), d, g.input(2)},
             PoolAttrMap(g.op())));
  return g.status();
}

HR_OP(MaxPoolWithArgmax)
    .Input("input: T")
    .Output("output: T")
    .Output("argmax: Targmax")
    .Attr("ksize: list(int) >= 4")
    .Attr("strides: list(int) >= 4")
    .Attr("Targmax: {int32, int64} = int64")
    .Attr("padding: {'SAME', 'VALID'}")
    .Attr("include_batch_in_index: bool = false")
    .Attr("T: realnumbertype")
    .Doc("Maxima over sliding windows, and where they are.")
    .Shape(PooledShape)
    .Gradient(WithArgmaxGradient)
    .GradientSkips({}, {0})
    .Cpu(Compute<RunWithArgmax>);

HR_OP(MaxPoolGradWithArgmax)
    .Input("input: T")
    .Input("grad: T")
    .Input("argmax: Targmax")
    .Output("output: T")
    .Attr("ksize: list(int) >= 4")
    .Attr("strides: list(int) >= 4")
    .Attr("padding: {'SAME', 'VALID'}")
    .Attr("include_batch_in_index: bool = false")
    .Attr("Targmax: {int32, int64}")
    .Attr("T: realnumbertype")
    .Doc("Gradient of MaxPoolWithArgmax.")
    .Shape(LikeInput<0>)
    .Gradient(ArgmaxGradGradient)
    .GradientSkips({1}, {0})
    .Cpu(Compute<RunArgmaxGrad>);

HR_OP(MaxPoolGradGradWithArgmax)
    .Input("input: T")
    .Input("grad: T")
    .Input("argmax: Targmax")
    .Output("output: T")
    .Attr("ksize: list(int) >= 4")
    .Attr("strides: list(int) >= 4")
    .Attr("padding: {'SAME', 'VALID'}")
    .Attr("include_batch_in_index: bool = false")
    .Attr("Targmax: {int32, int64}")
    .Attr("T: realnumbertype")
    .Doc("Second gradient of MaxPoolWithArgmax.")
    .Shape(GradGradShape)
    .Cpu(Compute<RunArgmaxGradGrad>);

}  // namespace
}  // namespace headrace
