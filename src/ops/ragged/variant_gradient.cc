// RaggedTensorToVariantGradient: the rows' gradients as one of the values. Sums
// and zeros of ragged tensors in variants.
#include "op/op.h"
#include "ops/math/elementwise/variant_add.h"
#include "ops/ragged/variant.h"

namespace headrace {
namespace {

StatusOr<Variant> AddRagged(Variant va, const Variant& vb) {
  const auto* a = va.get<RaggedVariant>();
  const auto* b = vb.get<RaggedVariant>();
  if (a->splits != b->splits || a->values.shape() != b->values.shape() ||
      a->values.dtype() != b->values.dtype()) {
    return InvalidArgument(
        "Can only add ragged tensors with the same row splits and values of "
        "one "
        "dtype and shape");
  }
  auto sum = std::make_shared<RaggedVariant>();
  sum->splits = a->splits;
  HR_ASSIGN_OR_RETURN(sum->values, AddTensors(a->values, b->values));
  return Variant(std::move(sum));
}

[[maybe_unused]] const bool sum_registered =
    RegisterVariantAdd("RaggedTensorVariant", AddRagged);

// Where row i's values begin, of n rows; a scalar split says one row a value.
StatusOr<std::vector<int64_t>> Splits(const Tensor& t, int64_t n,
                                      int64_t values) {
  std::vector<int64_t> splits;
  if (t.rank() == 0) {
    for (int64_t i = 0; i <= n; ++i) splits.push_back(i);
  } else {
    for (int64_t i = 0; i < t.num_elements(); ++i) {
      splits.push_back(t.IntAt(i));
    }
  }
  if (static_cast<int64_t>(splits.size()) != n + 1 || splits[0] != 0 ||
      splits[n] > values || !std::is_sorted(splits.begin(), splits.end())) {
    return InvalidArgument("row_splits of ", splits.size(),
                           " do not fit gradients of ", n, " rows and ", values,
                           " values");
  }
  return splits;
}

Status RowsRule(ShapeContext& c) {
  HR_ASSIGN_OR_RETURN(Shape shape, c.ShapeValue(2));
  c.set_output(0, std::move(shape));
  return OkStatus();
}

// Rows without a gradient (empty variants) stay zero.
Status GatherRows(KernelContext& c) {
  const Tensor& rows = c.input(0);
  Tensor& out = c.output(0);
  const Shape& shape = out.shape();
  FillZero(out);
  const bool batched = rows.rank() == 1;
  if (rows.rank() > 1) {
    return InvalidArgument(
        "encoded_ragged_grad must be a scalar or vector, got ", rows.shape());
  }
  if (batched && shape.rank() < 1) {
    return InvalidArgument("values of a batch must be at least a vector");
  }
  std::vector<int64_t> splits{0, shape.rank() > 0 ? shape[0] : 1};
  if (batched) {
    HR_ASSIGN_OR_RETURN(splits,
                        Splits(c.input(1), rows.num_elements(), shape[0]));
  }
  for (int64_t i = 0; i < rows.num_elements(); ++i) {
    const Variant& v = rows.span<Variant>()[i];
    if (v.empty()) continue;
    const auto* p = v.get<RaggedVariant>();
    if (p == nullptr) {
      return InvalidArgument("Input Variant element does not hold a ",
                             "RaggedTensorVariant");
    }
    Tensor to = batched ? out.Rows(splits[i], splits[i + 1]) : out;
    if (p->values.dtype() != out.dtype() ||
        p->values.num_elements() != to.num_elements()) {
      return InvalidArgument("the gradient of row ", i, " has ",
                             p->values.num_elements(), " values of ",
                             DTypeName(p->values.dtype()), ", expected ",
                             to.num_elements(), " of ", DTypeName(out.dtype()));
    }
    CopyElements(p->values.WithShape(to.shape()), to);
  }
  return OkStatus();
}

HR_OP(RaggedTensorToVariantGradient)
    .Input("encoded_ragged_grad: variant")
    .Input("row_splits: Tsplits")
    .Input("dense_values_shape: int32")
    .Output("dense_values_grad: Tvalues")
    .Attr("Tvalues: type")
    .Attr("Tsplits: {int32, int64} = DT_INT64")
    .Doc("The gradient of RaggedTensorToVariant's values.")
    .Shape(RowsRule)
    .Cpu(Compute<GatherRows>);

}  // namespace

StatusOr<std::shared_ptr<const VariantValue>> RaggedVariant::ZerosLike() const {
  auto zero = std::make_shared<RaggedVariant>();
  zero->splits = splits;
  HR_ASSIGN_OR_RETURN(zero->values,
                      Tensor::Allocate(values.dtype(), values.shape()));
  FillZero(zero->values);
  return std::shared_ptr<const VariantValue>(std::move(zero));
}

}  // namespace headrace
