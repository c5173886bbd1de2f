// BatchMatMul and its later forms: products of the last two dimensions, over
// batch dimensions that V2 and V3 broadcast.
#include <array>

#include "op/float_ops.h"
#include "op/op.h"
#include "op/passes/call_work.h"
#include "op/spelled_out.h"
#include "op/vectorize.h"
#include "ops/array/block_copy.h"
#include "ops/math/products/gemm.h"

namespace headrace {
namespace {

// The batch dimensions of both sides together. BatchMatMul itself does not
// broadcast.
StatusOr<Shape> BatchShape(ShapeContext& c, bool broadcasts) {
  const Shape &x = c.input(0), &y = c.input(1);
  const Shape bx = x.Sub(0, -2), by = y.Sub(0, -2);
  if (broadcasts) {
    auto merged = BroadcastShapes(bx, by);
    if (merged.ok()) return merged;
    return c.Refuse(
        NotBroadcast(bx, by),
        InvalidArgument(
            "In[0] and In[1] must have compatible batch dimensions: ", x,
            " vs. ", y));
  }
  if (bx.rank() != by.rank()) {
    return c.Refuse(NotMerged(bx, by),
                    InvalidArgument("In[0] and In[1] has different ndims: ", x,
                                    " vs. ", y));
  }
  for (int i = 0; i < bx.rank(); ++i) {
    if (bx[i] >= 0 && by[i] >= 0 && bx[i] != by[i]) {
      return c.Refuse(NotMerged(bx, by),
                      InvalidArgument("In[0].dim(", i, ") and In[1].dim(", i,
                                      ") must be the same: ", x, " vs ", y));
    }
  }
  return MergeShapes(bx, by);
}

template <bool kBroadcasts>
Status BatchMatMulShape(ShapeContext& c) {
  const Shape &x = c.input(0), &y = c.input(1);
  for (int i = 0; i < 2; ++i) {
    const Shape& s = c.input(i);
    if (s.known_rank() && s.rank() < 2) {
      return c.Refuse(
          RankIsLess(2, s.rank()),
          InvalidArgument("In[", i, "] ndims must be >= 2: ", s.rank()));
    }
  }
  if (!x.known_rank() || !y.known_rank()) return OkStatus();
  const bool ax = c.op().bool_attr("adj_x"), ay = c.op().bool_attr("adj_y");
  const int rx = x.rank(), ry = y.rank();
  // The inner sizes, by the sides that are transposed.
  const int64_t kx = x[ax ? rx - 2 : rx - 1], ky = y[ay ? ry - 1 : ry - 2];
  HR_ASSIGN_OR_RETURN(Shape out, BatchShape(c, kBroadcasts));
  if (kx >= 0 && ky >= 0 && kx != ky) {
    return c.Refuse(DimensionsDiffer(kx, ky),
                    InvalidArgument("Matrix size-incompatible: In[0]: ", x,
                                    ", In[1]: ", y));
  }
  out.AddDim(x[ax ? rx - 1 : rx - 2]);
  out.AddDim(y[ay ? ry - 2 : ry - 1]);
  c.set_output(0, std::move(out));
  return OkStatus();
}

// The steps of `s` from matrix to matrix along the batch dimensions; 0 along
// those that it is broadcast over.
absl::InlinedVector<int64_t, 8> BatchStrides(const Shape& s, int batch_rank) {
  absl::InlinedVector<int64_t, 8> strides = RowMajorStrides(s.dims());
  strides.resize(s.rank() - 2);
  for (int i = 0; i + 2 < s.rank(); ++i) {
    // Read again for each matrix of the other side.
    if (s[i] == 1) strides[i] = 0;
  }
  strides.insert(strides.begin(), batch_rank - (s.rank() - 2), 0);
  return strides;
}

StatusOr<Tensor> Conjugated(const Tensor& t) {
  HR_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(t.dtype(), t.shape()));
  DispatchDType(t.dtype(), ComplexTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < t.num_elements(); ++i) {
      out.data<T>()[i] = std::conj(t.data<T>()[i]);
    }
  });
  return out;
}

// An operand of BatchMatMulV3 in the type of its output.
StatusOr<Tensor> As(DType dtype, const Tensor& t) {
  if (t.dtype() == dtype) return t;
  HR_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(dtype, t.shape()));
  bool done = false;
  DispatchDType(t.dtype(), RealTypes{}, [&](auto from) {
    DispatchDType(dtype, RealTypes{}, [&](auto to) {
      using From = typename decltype(from)::type;
      using To = typename decltype(to)::type;
      for (int64_t i = 0; i < t.num_elements(); ++i) {
        out.data<To>()[i] = static_cast<To>(t.data<From>()[i]);
      }
      done = true;
    });
  });
  if (!done) {
    return Unimplemented("BatchMatMulV3 from ", DTypeName(t.dtype()), " to ",
                         DTypeName(dtype));
  }
  return out;
}

Status RunBatchMatMul(KernelContext& c) {
  const bool ax = c.op().bool_attr("adj_x"), ay = c.op().bool_attr("adj_y");
  const Tensor& out = c.output(0);
  HR_ASSIGN_OR_RETURN(Tensor x, As(out.dtype(), c.input(0)));
  HR_ASSIGN_OR_RETURN(Tensor y, As(out.dtype(), c.input(1)));
  // The adjoint is transposed and conjugated; Gemm only reads in another order.
  if (IsComplex(out.dtype())) {
    if (ax) {
      HR_ASSIGN_OR_RETURN(x, Conjugated(x));
    }
    if (ay) {
      HR_ASSIGN_OR_RETURN(y, Conjugated(y));
    }
  }
  const int rank = out.rank(), rx = x.rank();
  const int64_t m = out.dim(rank - 2), n = out.dim(rank - 1);
  const int64_t k = x.dim(ax ? rx - 2 : rx - 1);
  const GemmDims d = GemmDims::Dense(m, n, k, ax, ay);
  const Shape batch = out.shape().Sub(0, -2);
  // One product may use all threads itself.
  if (batch.num_elements() == 1) {
    return Gemm(out.dtype(), d, x.raw(), y.raw(), out.raw());
  }
  const std::vector<GemmOffsets> offsets = BatchOffsets(
      batch.dims(), BatchStrides(x.shape(), rank - 2),
      BatchStrides(y.shape(), rank - 2), BatchStrides(out.shape(), rank - 2));
  return BatchGemm(out.dtype(), d, x.raw(), y.raw(), out.raw(), offsets);
}

class BatchMatMulKernel : public Kernel, public KnowsWork {
 public:
  explicit BatchMatMulKernel(const ResolvedOp& op)
      : adj_x_(op.bool_attr("adj_x")), dtype_(op.output_types()[0]) {}
  Status Run(KernelContext& c) override { return RunBatchMatMul(c); }
  CallWork WorkOf(absl::Span<const Shape* const> in,
                  absl::Span<const Shape* const> out) const override {
    const Shape &x = *in[0], &y = *out[0];
    return GemmWork(dtype_, y[y.rank() - 2], y[y.rank() - 1],
                    x[x.rank() - (adj_x_ ? 2 : 1)],
                    y.Sub(0, -2).num_elements());
  }

 private:
  const bool adj_x_;
  const DType dtype_;
};

// The batch sizes of a shape, in upstream's nodes.
Value SpelledBatch(GradientContext& g, const Value& shape) {
  return Named(g, "strided_slice", "StridedSlice",
               {shape,
                {"stack", Tensor::Vector<int32_t>({0})},
                {"stack_1", Tensor::Vector<int32_t>({-2})},
                {"stack_2", Tensor::Vector<int32_t>({1})}},
               {{"begin_mask", 1}});
}
// The sides' gradients, summed where the batches of one were repeated.
void SetSpelledBatches(GradientContext& g, const std::array<Value, 2>& grads) {
  if (!g.ok()) return;
  const Shape &x = g.input(0).shape(), &y = g.input(1).shape();
  if (x.known_rank() && y.known_rank() && x.rank() >= 2 && y.rank() >= 2) {
    const Shape of_x = x.Sub(0, -2), of_y = y.Sub(0, -2);
    if (of_x.fully_known() && of_x == of_y) {
      g.set(0, grads[0]);
      g.set(1, grads[1]);
      return;
    }
  }
  const Value shapes[] = {g.ShapeOf(g.input(0)), g.ShapeOf(g.input(1))};
  const Value batches[] = {SpelledBatch(g, shapes[0]),
                           SpelledBatch(g, shapes[1])};
  const ValueList axes =
      g.All("BroadcastGradientArgs", {batches[0], batches[1]});
  for (int i = 0; g.ok() && i < 2; ++i) {
    g.set(i, g("Reshape", {g("Sum", {grads[i], axes[i]}), shapes[i]}));
  }
}

// As MatMul's; sides that were broadcast are summed.
Status BatchMatMulGradient(GradientContext& g) {
  const bool ax = g.op().bool_attr("adj_x"), ay = g.op().bool_attr("adj_y");
  Value d = g.grad(), x = g.input(0), y = g.input(1);
  if (!d) return g.status();
  const std::string& op = g.op().name();
  // Marks the product as a gradient, as upstream's graphs have it.
  auto product = [&](const Value& l, const Value& r, bool al, bool ar,
                     const char* side, DType out) {
    AttrMap attrs{{"adj_x", al}, {"adj_y", ar}, {side, true}};
    if (op == "BatchMatMulV3") attrs.Set("Tout", out);
    return Named(g, "MatMul", op, {l, r}, attrs);
  };
  Value gx, gy;
  if (g.wants(0)) {
    gx = ax ? product(y, d, ay, true, "grad_x", x.dtype())
            : product(d, y, false, !ay, "grad_x", x.dtype());
  }
  if (g.wants(1)) {
    gy = ay ? product(d, x, true, ax, "grad_y", y.dtype())
            : product(x, d, !ax, false, "grad_y", y.dtype());
  }
  // The first form did not broadcast: nothing to sum.
  if (op == "BatchMatMul") {
    if (gx) g.set(0, gx);
    if (gy) g.set(1, gy);
  } else if (SpelledOut::Now()) {
    SetSpelledBatches(g, {gx, gy});
  } else {
    g.SetBroadcast(gx, gy);
  }
  return g.status();
}

// Matrices of more batch dimensions want sizes of 1 between the rows and the
// others'.
Status VectorizeProducts(VectorizeContext& c) {
  if (c.op().name() == "BatchMatMul") return VectorizeBatched(c);
  return VectorizeBroadcast(c);
}

// What the three forms share, after their types.
OpBuilder& WithProduct(OpBuilder& op) {
  return op.Attr("adj_x: bool = false")
      .Attr("adj_y: bool = false")
      .Attr("grad_x: bool = false")
      .Attr("grad_y: bool = false")
      .Traits({OpTrait::kHeavy})
      .Gradient(BatchMatMulGradient)
      .Vectorize(VectorizeProducts)
      .GradientSkips({}, {0})
      .Cpu(Bind<BatchMatMulKernel>);
}

const OpRegistrar batch_matmul = WithProduct(
    OpBuilder("BatchMatMul")
        .Input("x: T")
        .Input("y: T")
        .Output("output: T")
        .Attr("T: {bfloat16, half, float, double, int32, int64, complex64, "
              "complex128}")
        .Doc("Products of matrices that lie in batches of one shape.")
        .Role(OpRole::kBatchMatMul)
        .Shape(BatchMatMulShape<false>));

const OpRegistrar batch_matmul_v2 = WithProduct(
    OpBuilder("BatchMatMulV2")
        .Input("x: T")
        .Input("y: T")
        .Output("output: T")
        .Attr("T: {bfloat16, half, float, double, int16, int32, int64, uint8, "
              "uint16, uint32, uint64, complex64, complex128}")
        .Doc("Products of matrices over batch dimensions that broadcast.")
        .Role(OpRole::kBatchMatMul)
        .Shape(BatchMatMulShape<true>));

constexpr char kMixedTypes[] =
    "{bfloat16, half, float, double, uint8, int8, int16, int32, int64, "
    "complex64, complex128}";
const OpRegistrar batch_matmul_v3 = WithProduct(
    OpBuilder("BatchMatMulV3")
        .Input("x: Ta")
        .Input("y: Tb")
        .Output("output: Tout")
        .Attr(absl::StrCat("Ta: ", kMixedTypes).c_str())
        .Attr(absl::StrCat("Tb: ", kMixedTypes).c_str())
        .Attr("Tout: {bfloat16, half, float, double, int16, int32, int64, "
              "complex64, complex128}")
        .Doc("BatchMatMulV2 with a type of its own for each side and for the "
             "result.")
        .Shape(BatchMatMulShape<true>));

double ProductsFloatOps(FloatOpsContext& c) {
  return 2 * c.output() * c.input_dim(0, c.op().bool_attr("adj_x") ? -2 : -1);
}
const FloatOps products_float_ops({"BatchMatMul", "BatchMatMulV2",
                                   "BatchMatMulV3"},
                                  ProductsFloatOps);

}  // namespace
}  // namespace headrace
