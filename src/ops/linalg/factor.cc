// Qr, Lu, SelfAdjointEigV2, Svd, Eig.
#include <algorithm>

#include "op/vectorize.h"
#include "ops/linalg/factor_gradients.h"
#include "ops/linalg/matrix_op.h"
#include "ops/linalg/old_forms.h"

namespace headrace {
namespace {

int64_t Least(int64_t m, int64_t n) {
  return m < 0 || n < 0 ? -1 : std::min(m, n);
}

Status CheckMatrix(const Shape& s) {
  if (s.known_rank() && s.rank() < 2) {
    return InvalidArgument("Shape must be at least rank 2 but is rank ",
                           s.rank());
  }
  return OkStatus();
}

Status QrShape(ShapeContext& c) {
  const Shape& a = c.input(0);
  HR_RETURN_IF_ERROR(CheckMatrix(a));
  const int64_t m = FromEnd(a, 2), n = FromEnd(a, 1);
  const int64_t k = c.op().bool_attr("full_matrices") ? m : Least(m, n);
  c.set_output(0, WithMatrix(BatchOf(a), m, k));
  c.set_output(1, WithMatrix(BatchOf(a), k, n));
  return OkStatus();
}

struct QrOp {
  template <typename T>
  static Status Run(KernelContext& c) {
    const Shape& a = c.input(0).shape();
    const int64_t m = FromEnd(a, 2), n = FromEnd(a, 1);
    const bool full = c.op().bool_attr("full_matrices");
    const int64_t k = full ? m : std::min(m, n);
    return ForMatrices(
        BatchOf(a).num_elements(), 3.0 * m * n * k, [&](int64_t i) {
          Linalg<T>::Qr(c.in<T>(0) + i * m * n, m, n, full,
                        c.out<T>(0) + i * m * k, c.out<T>(1) + i * k * n);
          return OkStatus();
        });
  }
};

HR_OP(Qr)
    .Input("input: T")
    .Output("q: T")
    .Output("r: T")
    .Attr("full_matrices: bool = false")
    .Attr(kMatrixTypes)
    .Doc("Orthogonal and upper triangular factors of matrices.")
    .Shape(QrShape)
    .Gradient(QrGradient)
    .GradientSkips({0}, {})
    .Vectorize(VectorizeBatched)
    .Cpu(ComputeFor<PickMatrix<QrOp>>);

Status LuShape(ShapeContext& c) {
  const Shape& a = c.input(0);
  HR_RETURN_IF_ERROR(CheckSquare(c, a));
  c.set_output(0, a);
  if (a.known_rank()) c.set_output(1, a.Sub(0, -1));
  return OkStatus();
}

struct LuOp {
  template <typename T>
  static Status Run(KernelContext& c) {
    const Shape& a = c.input(0).shape();
    const int64_t n = FromEnd(a, 1);
    return ForMatrices(
        BatchOf(a).num_elements(), 1.0 * n * n * n, [&](int64_t i) {
          std::vector<int64_t> p(n);
          HR_RETURN_IF_ERROR(Linalg<T>::Lu(c.in<T>(0) + i * n * n, n,
                                           c.out<T>(0) + i * n * n, p.data()));
          DispatchDType(c.output(1).dtype(), IndexTypes{}, [&](auto tag) {
            using I = typename decltype(tag)::type;
            for (int64_t j = 0; j < n; ++j) {
              c.out<I>(1)[i * n + j] = static_cast<I>(p[j]);
            }
          });
          return OkStatus();
        });
  }
};

HR_OP(Lu)
    .Input("input: T")
    .Output("lu: T")
    .Output("p: output_idx_type")
    .Attr("T: {double, float, half, complex64, complex128}")
    .Attr("output_idx_type: {int32, int64} = int32")
    .Doc(
        "Lower and upper triangular factors of matrices whose rows are "
        "permuted.")
    .Shape(LuShape)
    .Vectorize(VectorizeBatched)
    .Cpu(ComputeFor<PickMatrix<LuOp>>);

// Vectors that are not asked for are no elements, however many rows there are.
Status VectorizeSpectral(VectorizeContext& c) {
  const bool vectors = c.op().bool_attr(
      c.op().def().FindAttr("compute_v") ? "compute_v" : "compute_uv");
  HR_RETURN_IF_ERROR(VectorizeBatched(c));
  for (size_t i = 1; i < c.results().size() && !vectors; ++i) {
    c.results()[i].rows = Stacking::kShared;
  }
  return OkStatus();
}

Status EigShape(ShapeContext& c) {
  const Shape& a = c.input(0);
  HR_RETURN_IF_ERROR(CheckSquare(c, a));
  if (a.known_rank()) c.set_output(0, a.Sub(0, -1));
  // Upstream's rule says [0] where no vectors are asked for, whatever the
  // batch.
  c.set_output(1, c.op().bool_attr("compute_v") ? a : Shape{0});
  return OkStatus();
}

struct SelfAdjointEigOp {
  template <typename T>
  static Status Run(KernelContext& c) {
    const Shape& a = c.input(0).shape();
    const int64_t n = FromEnd(a, 1);
    const bool vectors = c.op().bool_attr("compute_v");
    return ForMatrices(BatchOf(a).num_elements(), 9.0 * n * n * n,
                       [&](int64_t i) {
                         return Spectral<T>::SelfAdjointEig(
                             c.in<T>(0) + i * n * n, n, c.out<T>(0) + i * n,
                             vectors ? c.out<T>(1) + i * n * n : nullptr);
                       });
  }
};

HR_OP(SelfAdjointEigV2)
    .Input("input: T")
    .Output("e: T")
    .Output("v: T")
    .Attr("compute_v: bool = true")
    .Attr(kMatrixTypes)
    .Doc("Eigenvalues and vectors of hermitian matrices.")
    .Shape(EigShape)
    .Gradient(SelfAdjointEigGradient)
    .Vectorize(VectorizeSpectral)
    .Cpu(ComputeFor<PickMatrix<SelfAdjointEigOp>>);

struct EigOp {
  template <typename T>
  static Status Run(KernelContext& c) {
    using C = std::complex<Real<T>>;
    const Shape& a = c.input(0).shape();
    const int64_t n = FromEnd(a, 1);
    const bool vectors = c.op().bool_attr("compute_v");
    if (c.output(0).dtype() != DTypeOf<C>) {
      return InvalidArgument(
          "Invalid output dtype ", DTypeName(c.output(0).dtype()), ": that of ",
          DTypeName(c.input(0).dtype()), " is ", DTypeName(DTypeOf<C>));
    }
    return ForMatrices(
        BatchOf(a).num_elements(), 25.0 * n * n * n, [&](int64_t i) {
          return Spectral<T>::Eig(c.in<T>(0) + i * n * n, n,
                                  c.out<C>(0) + i * n,
                                  vectors ? c.out<C>(1) + i * n * n : nullptr);
        });
  }
};

HR_OP(Eig)
    .Input("input: T")
    .Output("e: Tout")
    .Output("v: Tout")
    .Attr("compute_v: bool = true")
    .Attr("T: {float, double, complex64, complex128}")
    .Attr("Tout: {complex64, complex128}")
    .Doc("Eigenvalues and vectors of square matrices.")
    .Shape(EigShape)
    .Gradient(EigGradient)
    .Vectorize(VectorizeSpectral)
    .Cpu(ComputeFor<PickMatrix<EigOp>>);

Status SvdShape(ShapeContext& c) {
  const Shape& a = c.input(0);
  HR_RETURN_IF_ERROR(CheckMatrix(a));
  const int64_t m = FromEnd(a, 2), n = FromEnd(a, 1), k = Least(m, n);
  Shape s = BatchOf(a);
  if (s.known_rank()) s.AddDim(k);
  c.set_output(0, std::move(s));
  if (!c.op().bool_attr("compute_uv")) {
    c.set_output(1, Shape{0});
    c.set_output(2, Shape{0});
    return OkStatus();
  }
  const bool full = c.op().bool_attr("full_matrices");
  c.set_output(1, WithMatrix(BatchOf(a), m, full ? m : k));
  c.set_output(2, WithMatrix(BatchOf(a), n, full ? n : k));
  return OkStatus();
}

struct SvdOp {
  template <typename T>
  static Status Run(KernelContext& c) {
    const Shape& a = c.input(0).shape();
    const int64_t m = FromEnd(a, 2), n = FromEnd(a, 1), k = std::min(m, n);
    const bool vectors = c.op().bool_attr("compute_uv");
    const bool full = c.op().bool_attr("full_matrices");
    const int64_t u = m * (full ? m : k), v = n * (full ? n : k);
    return ForMatrices(
        BatchOf(a).num_elements(), 20.0 * m * n * k, [&](int64_t i) {
          return Spectral<T>::Svd(c.in<T>(0) + i * m * n, m, n, full,
                                  c.out<T>(0) + i * k,
                                  vectors ? c.out<T>(1) + i * u : nullptr,
                                  vectors ? c.out<T>(2) + i * v : nullptr);
        });
  }
};

HR_OP(Svd)
    .Input("input: T")
    .Output("s: T")
    .Output("u: T")
    .Output("v: T")
    .Attr("compute_uv: bool = true")
    .Attr("full_matrices: bool = false")
    .Attr(kMatrixTypes)
    .Doc("Singular values and vectors of matrices.")
    .Shape(SvdShape)
    .Gradient(SvdGradient)
    .Vectorize(VectorizeSpectral)
    .Cpu(ComputeFor<PickMatrix<SvdOp>>);

[[maybe_unused]] const bool kOldFactors[] = {
    RegisterLike("BatchSelfAdjointEigV2", "SelfAdjointEigV2",
                 [](OpDef& def) {
                   UntilVersion(def, 13, "SelfAdjointEigV2",
                                {DType::kDouble, DType::kFloat});
                 }),
    RegisterLike("BatchSvd", "Svd",
                 [](OpDef& def) {
                   UntilVersion(def, 13, "Svd",
                                {DType::kDouble, DType::kFloat,
                                 DType::kComplex64, DType::kComplex128});
                 }),
};

// The first form has the values in the first row above the vectors.
Status EigInOneShape(ShapeContext& c) {
  const Shape& a = c.input(0);
  HR_RETURN_IF_ERROR(CheckSquare(c, a));
  const int64_t n = FromEnd(a, 1);
  c.set_output(0, WithMatrix(BatchOf(a), n >= 0 ? n + 1 : -1, n));
  return OkStatus();
}

struct EigInOneOp {
  template <typename T>
  static Status Run(KernelContext& c) {
    const Shape& a = c.input(0).shape();
    const int64_t n = FromEnd(a, 1);
    return ForMatrices(BatchOf(a).num_elements(), 9.0 * n * n * n,
                       [&](int64_t i) {
                         T* out = c.out<T>(0) + i * n * (n + 1);
                         return Spectral<T>::SelfAdjointEig(
                             c.in<T>(0) + i * n * n, n, out, out + n);
                       });
  }
};

OpBuilder EigInOne(const char* name, const char* types) {
  OpBuilder b(name);
  b.Input("input: T")
      .Output("output: T")
      .Attr(types)
      .Deprecated(11, "Use SelfAdjointEigV2 instead.")
      .Doc("Eigenvalues, and below them the vectors, of hermitian matrices.")
      .Shape(EigInOneShape)
      .Cpu(ComputeFor<PickMatrix<EigInOneOp, TypeList<float, double>>>);
  return b;
}
[[maybe_unused]] const OpRegistrar kEigsInOne[] = {
    EigInOne("SelfAdjointEig", "T: {double, float, half}"),
    EigInOne("BatchSelfAdjointEig", "T: {double, float}"),
};

}  // namespace
}  // namespace headrace
