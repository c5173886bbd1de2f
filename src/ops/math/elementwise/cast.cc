// Conversions: of values, and of bytes.
#include <cstring>

#include "base/thread_pool.h"
#include "op/passes/partial_sizes.h"
#include "op/passes/simplify.h"
#include "op/vectorize.h"
#include "ops/array/forward_input.h"
#include "ops/math/elementwise/elementwise.h"

namespace headrace {
namespace {

// The plain type whose values those of `d` are.
DType CastAs(DType d) {
  switch (d) {
    case DType::kQint8:
      return DType::kInt8;
    case DType::kQuint8:
      return DType::kUint8;
    case DType::kQint16:
      return DType::kInt16;
    case DType::kQuint16:
      return DType::kUint16;
    case DType::kQint32:
      return DType::kInt32;
    default:
      return d;
  }
}

// With Truncate, a float keeps the leading bits of its mantissa that the
// narrower type has room for; the rest are cleared before converting.
template <typename T, typename Bits>
void ClearBits(const void* x, void* y, int64_t n, int bits) {
  const Bits* from = static_cast<const Bits*>(x);
  Bits* to = static_cast<Bits*>(y);
  const Bits mask = ~((Bits{1} << bits) - 1);
  for (int64_t i = 0; i < n; ++i) {
    T v;
    std::memcpy(&v, &from[i], sizeof(v));
    // A NaN whose bits are cleared could become an infinity.
    to[i] = v == v ? from[i] & mask : from[i];
  }
}

// Bits of the mantissa; 0 for types that are not truncated to or from.
int MantissaBits(DType d) {
  switch (d) {
    case DType::kDouble:
      return 52;
    case DType::kFloat:
      return 23;
    case DType::kHalf:
      return 10;
    case DType::kBfloat16:
      return 7;
    case DType::kFloat8E5m2:
    case DType::kFloat8E5m2fnuz:
      return 2;
    case DType::kFloat8E4m3fn:
    case DType::kFloat8E4m3fnuz:
    case DType::kFloat8E4m3b11fnuz:
      return 3;
    default:
      return 0;
  }
}

class CastKernel : public Kernel, public BindsCalls {
 public:
  CastKernel(UnaryLoop fn, int cleared, const ResolvedOp& op)
      : fn_(fn),
        cleared_(cleared),
        in_size_(DTypeSize(op.type_attr("SrcT"))),
        out_size_(DTypeSize(op.type_attr("DstT"))) {
    // What fuses with the cast calls the same loop.
    loop_.fn = reinterpret_cast<const void*>(fn);
  }
  Status Run(KernelContext& c) override {
    const Tensor& x = c.input(0);
    const char* from = static_cast<const char*>(x.raw());
    char* to = static_cast<char*>(c.output(0).raw());
    const int64_t n = x.num_elements();
    // Empty tensors have no memory to offset from.
    if (n == 0) return OkStatus();
    Tensor cleared;
    if (cleared_ > 0) {
      HR_ASSIGN_OR_RETURN(cleared, c.Temporary(x.dtype(), x.shape()));
      // Only floats and doubles are truncated, see MakeCast.
      if (x.dtype() == DType::kDouble) {
        ClearBits<double, uint64_t>(from, cleared.raw(), n, cleared_);
      } else {
        ClearBits<float, uint32_t>(from, cleared.raw(), n, cleared_);
      }
      from = static_cast<const char*>(cleared.raw());
    }
    ParallelFor(n, 0.3, [&](int64_t b, int64_t e) {
      fn_(from + b * in_size_, to + b * out_size_, e - b);
    });
    return OkStatus();
  }
  const ElementwiseLoop* elementwise() const override {
    // A fused loop has no place for the copy with cleared bits.
    return cleared_ > 0 ? nullptr : &loop_;
  }
  bool BindTo(absl::Span<const BoundInput> inputs, const Shape& output,
              BoundCall* call) const override {
    return cleared_ == 0 && BindUnaryLoop(fn_, {}, inputs, output, call);
  }

 private:
  const UnaryLoop fn_;
  const int cleared_;
  const size_t in_size_, out_size_;
  ElementwiseLoop loop_;
};

StatusOr<std::unique_ptr<Kernel>> MakeCast(const ResolvedOp& op) {
  const DType from = op.type_attr("SrcT"), to = op.type_attr("DstT");
  // Upstream's Cast to the same type is the tensor itself.
  if (from == to) return MakeKernel(ForwardInput, /*own_outputs=*/true);
  UnaryLoop fn = FindCastLoop(static_cast<int>(CastAs(from)),
                              static_cast<int>(CastAs(to)));
  if (fn == nullptr) {
    return Unimplemented("Cast ", DTypeName(from), " to ", DTypeName(to),
                         " is not supported");
  }
  int cleared = 0;
  if (op.bool_attr("Truncate") &&
      (from == DType::kFloat || from == DType::kDouble) &&
      MantissaBits(to) > 0) {
    cleared = MantissaBits(from) - MantissaBits(to);
  }
  return std::unique_ptr<Kernel>(std::make_unique<CastKernel>(fn, cleared, op));
}

bool CarriesGradient(DType d) {
  // The small floats of 8 bits; quantized and integer types have no gradient.
  return d == DType::kHalf || d == DType::kFloat || d == DType::kDouble ||
         d == DType::kBfloat16 || IsComplex(d) ||
         (IsFloating(d) && DTypeSize(d) == 1);
}
Status CastGrad(GradientContext& g) {
  const DType from = g.op().type_attr("SrcT"), to = g.op().type_attr("DstT");
  // Casts by way of integers have none: None, not zeros.
  if (CarriesGradient(from) && CarriesGradient(to)) {
    g.set(0, from == to ? g.grad() : g("Cast", {g.grad()}, {{"DstT", from}}));
  }
  return g.status();
}

Status SkipIdleCast(SimplifyContext& c) {
  if (c.input_dtype(0) == c.output_dtype(0)) c.Replace(0, c.input(0));
  return c.status();
}

HR_OP(Cast)
    .PartialSizes(SizesOfInput)
    .Input("x: SrcT")
    .Output("y: DstT")
    .Attr("SrcT: type")
    .Attr("DstT: type")
    .Attr("Truncate: bool = false")
    .Doc(
        "x converted to DstT. Floats lose their fraction on the way to "
        "integers; complex numbers lose their imaginary part.")
    .Simplify(SkipIdleCast)
    .Shape(UnchangedShape)
    .Vectorize(VectorizeBroadcast)
    .Gradient(CastGrad)
    .GradientSkips({0}, {0})
    .Cpu(MakeCast);

// --- Bitcast.

Status BitcastShape(ShapeContext& c) {
  const Shape& in = c.input(0);
  const int64_t from = DTypeSize(c.input_dtype(0));
  const int64_t to = DTypeSize(c.op().type_attr("type"));
  if (!in.known_rank()) return OkStatus();
  Shape out = in;
  if (from > to) {
    out.AddDim(from / to);
  } else if (from < to) {
    const int last = in.rank() - 1;
    // A scalar has no dimension of smaller elements to merge.
    if (last < 0 || (in[last] >= 0 && in[last] != to / from)) {
      // Upstream names the sizes in this order.
      return InvalidArgument("Cannot bitcast from ", to, " to ", from);
    }
    out.RemoveDim(last);
  }
  c.set_output(0, std::move(out));
  return OkStatus();
}
Status RunBitcast(KernelContext& c) {
  // The shape rule again, as the plan may not have known the shape.
  const Shape* const input = &c.input(0).shape();
  ShapeContext shapes(c.op(), absl::MakeConstSpan(&input, 1), {});
  HR_RETURN_IF_ERROR(BitcastShape(shapes));
  // The same bytes under another type: no copy.
  c.set_output(0,
               c.input(0).WithType(c.op().type_attr("type"), shapes.output(0)));
  return OkStatus();
}

constexpr char kBitcastTypes[] =
    "{bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, "
    "uint64, int8, int16, complex64, complex128, qint8, quint8, qint16, "
    "quint16, qint32}";
HR_OP(Bitcast)
    .Input("input: T")
    .Output("output: type")
    .Attr(absl::StrCat("T: ", kBitcastTypes).c_str())
    .Attr(absl::StrCat("type: ", kBitcastTypes).c_str())
    .Doc(
        "The same bytes read as another type: a wider one takes up the last "
        "dimension, a narrower one adds a dimension.")
    .Shape(BitcastShape)
    .View()
    .Cpu(ComputeOwn<RunBitcast>);

}  // namespace
}  // namespace headrace
