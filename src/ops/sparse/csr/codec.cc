// CSR matrices in variants as protos, and their sums.
#include <cstring>

#include "ops/math/elementwise/variant_add.h"
#include "ops/sparse/csr/csr_matrix.h"
#include "tensor/tensor_proto.h"
#include "tensor/variant_codec.h"
#include "tensorflow/core/framework/tensor.pb.h"

namespace headrace {
namespace {

using tensorflow::VariantTensorDataProto;

// Upstream writes these eight bytes: whether the matrix was validated, three
// of no meaning, its dtype as an int32.
constexpr size_t kMetadataBytes = 8;

Status EncodeCsr(const VariantValue& value, VariantTensorDataProto* proto) {
  const auto& m = static_cast<const CsrMatrix&>(value);
  char bytes[kMetadataBytes] = {1};
  const auto dtype = static_cast<int32_t>(m.dtype());
  std::memcpy(bytes + 4, &dtype, sizeof(dtype));
  proto->set_metadata(bytes, kMetadataBytes);
  for (const Tensor* t : {&m.dense_shape(), &m.batch_ptrs(), &m.row_ptrs(),
                          &m.col_inds(), &m.values()}) {
    HR_RETURN_IF_ERROR(TensorToProto(*t, proto->add_tensors()));
  }
  return OkStatus();
}

StatusOr<std::shared_ptr<const VariantValue>> DecodeCsr(
    const VariantTensorDataProto& proto) {
  if (proto.metadata().size() != kMetadataBytes || proto.tensors_size() != 5) {
    return DataLoss("a saved sparse matrix is damaged");
  }
  std::vector<Tensor> parts(5);
  for (int i = 0; i < 5; ++i) {
    HR_ASSIGN_OR_RETURN(parts[i], TensorFromProto(proto.tensors(i)));
  }
  int32_t dtype;
  std::memcpy(&dtype, proto.metadata().data() + 4, sizeof(dtype));
  auto made = CsrMatrix::Make(parts[0], parts[1], parts[2], parts[3], parts[4]);
  if (!made.ok() || static_cast<int32_t>((*made)->dtype()) != dtype) {
    return DataLoss("a saved sparse matrix is damaged: ",
                    made.ok() ? "another dtype" : made.status().message());
  }
  return std::shared_ptr<const VariantValue>(*std::move(made));
}

[[maybe_unused]] const bool csr_codec_registered =
    RegisterVariantCodec(CsrMatrix::kTypeName, {EncodeCsr, DecodeCsr});

StatusOr<Variant> AddCsrVariants(Variant a, const Variant& b) {
  const auto *x = a.get<CsrMatrix>(), *y = b.get<CsrMatrix>();
  if (x->dtype() != y->dtype()) {
    return InvalidArgument("cannot add sparse matrices of ",
                           DTypeName(x->dtype()), " and ",
                           DTypeName(y->dtype()));
  }
  HR_ASSIGN_OR_RETURN(const Tensor one, ScalarOf(x->dtype(), 1));
  HR_ASSIGN_OR_RETURN(CsrPtr sum, AddCsr(*x, *y, one, one));
  return Variant(std::move(sum));
}

[[maybe_unused]] const bool csr_sum_registered =
    RegisterVariantAdd(CsrMatrix::kTypeName, AddCsrVariants);

}  // namespace
}  // namespace headrace
