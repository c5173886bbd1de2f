#include "base/thread_pool.h"
#include "op/op.h"
#include "op/vectorize.h"
#include "ops/array/block_copy.h"
#include "ops/array/element_dispatch.h"

namespace headrace {
namespace {

Status CheckScalar(const Shape& s, StringView name) {
  if (!s.known_rank() || s.rank() == 0) return OkStatus();
  return InvalidArgument(name, " must be a scalar, but got: ", s);
}

Status OneHotRule(ShapeContext& c) {
  const Shape& in = c.input(0);
  HR_RETURN_IF_ERROR(CheckScalar(c.input(1), "depth"));
  HR_RETURN_IF_ERROR(CheckScalar(c.input(2), "on_value"));
  HR_RETURN_IF_ERROR(CheckScalar(c.input(3), "off_value"));
  bool known;
  int64_t depth;
  HR_RETURN_IF_ERROR(c.IntValue(1, &known, &depth));
  if (known && depth < 0) {
    return InvalidArgument("depth must be non-negative, got: ", depth);
  }
  if (!in.known_rank()) return OkStatus();
  const int64_t axis = c.op().int_attr("axis");
  // -1 alone means "last" here; other negative axes are refused, as upstream
  // does.
  if (axis != -1 && (axis < 0 || axis > in.rank())) {
    return InvalidArgument("Expected axis to be -1 or between [0, ",
                           in.rank() + 1, ").  But received: ", axis);
  }
  Shape out = in;
  out.InsertDim(axis < 0 ? in.rank() : static_cast<int>(axis),
                known ? depth : Shape::kUnknown);
  // A large depth may make a shape whose count of elements overflows; Make
  // refuses it.
  if (out.fully_known()) {
    HR_ASSIGN_OR_RETURN(out, Shape::Make(out.dims()));
  }
  c.set_output(0, std::move(out));
  return OkStatus();
}

// indices is [before, after], out [before, depth, after].
template <typename T, typename Index>
void SetOnes(const Index* indices, const T& on, T* out, int64_t before,
             int64_t depth, int64_t after) {
  ParallelFor(
      before, 2.0 * static_cast<double>(after), [&](int64_t b, int64_t e) {
        for (int64_t i = b; i < e; ++i) {
          for (int64_t k = 0; k < after; ++k) {
            const auto at = static_cast<int64_t>(indices[i * after + k]);
            // An index outside leaves its row all off, by the definition of
            // one_hot.
            if (at < 0 || at >= depth) continue;
            out[(i * depth + at) * after + k] = on;
          }
        }
      });
}

Status OneHot(KernelContext& c) {
  const Tensor& indices = c.input(0);
  Tensor& out = c.output(0);
  if (out.num_elements() == 0) return OkStatus();
  const int64_t given = c.op().int_attr("axis");
  const int axis = given < 0 ? indices.rank() : static_cast<int>(given);
  const int64_t before = indices.shape().Product(0, axis);
  const int64_t after = indices.shape().Product(axis, indices.rank());
  // The off value everywhere first: one pass of memset speed, after which only
  // one element in `depth` is touched.
  FillRun(out.dtype(), out.raw(), c.input(3).raw(), out.num_elements());
  DispatchElement(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    DispatchDType(
        indices.dtype(), TypeList<int32_t, int64_t, uint8_t, int8_t>{},
        [&](auto index_tag) {
          using Index = typename decltype(index_tag)::type;
          SetOnes(indices.data<Index>(), *static_cast<T*>(c.input(2).raw()),
                  static_cast<T*>(out.raw()), before, out.dim(axis), after);
        });
  });
  return OkStatus();
}

Status VectorizeOneHot(VectorizeContext& c) {
  HR_RETURN_IF_ERROR(c.WantSharedFrom(1));
  const int64_t axis = c.op().int_attr("axis");
  return c.SetAll(c.AgainWith({c.input(0), c.input(1), c.input(2), c.input(3)},
                              {{"axis", axis >= 0 ? axis + 1 : axis}}));
}

HR_OP(OneHot)
    .Input("indices: TI")
    .Input("depth: int32")
    .Input("on_value: T")
    .Input("off_value: T")
    .Output("output: T")
    .Attr("axis: int = -1")
    .Attr("T: type")
    .Attr("TI: {uint8, int8, int32, int64} = DT_INT64")
    .Doc("A new dimension with on_value at each index and off_value elsewhere.")
    .Shape(OneHotRule)
    .NoGradient()
    .Vectorize(VectorizeOneHot)
    .Cpu(Compute<OneHot>);

}  // namespace
}  // namespace headrace
