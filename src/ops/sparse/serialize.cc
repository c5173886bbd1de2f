// SerializeSparse, SerializeManySparse, DeserializeSparse: sparse tensors as
// variants, three to a tensor: indices, values, shape.
#include "op/op.h"
#include "tensor/tensor_variant.h"

namespace headrace {
namespace {

Status CheckParts(const KernelContext& c) {
  const Tensor &indices = c.input(0), &values = c.input(1), &shape = c.input(2);
  if (indices.rank() != 2) {
    return InvalidArgument(
        "Input indices should be a matrix but received "
        "shape ",
        indices.shape());
  }
  if (values.rank() != 1 || values.dim(0) != indices.dim(0)) {
    return InvalidArgument("Input values should be a vector of ",
                           indices.dim(0), " but received shape ",
                           values.shape());
  }
  if (shape.rank() != 1 || shape.dim(0) != indices.dim(1)) {
    return InvalidArgument("Input shape should be a vector of ", indices.dim(1),
                           " but received shape ", shape.shape());
  }
  if (c.op().type_attr("out_type") != DType::kVariant) {
    return Unimplemented(c.op().name(), " to strings");
  }
  return OkStatus();
}

Status Serialize(KernelContext& c) {
  HR_RETURN_IF_ERROR(CheckParts(c));
  HR_RETURN_IF_ERROR(c.Allocate(0, Shape{3}));
  for (int i = 0; i < 3; ++i)
    c.out<Variant>(0)[i] = TensorInVariant(c.input(i));
  return OkStatus();
}

// The entries [begin, end) as a tensor without its first dimension.
Status OneRow(const KernelContext& c, int64_t begin, int64_t end,
              Variant* out) {
  const Tensor& indices = c.input(0);
  const int64_t width = indices.dim(1);
  HR_ASSIGN_OR_RETURN(
      Tensor rest,
      Tensor::Allocate(DType::kInt64, Shape{end - begin, width - 1}));
  const int64_t* from = indices.data<int64_t>();
  int64_t* to = rest.data<int64_t>();
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t d = 1; d < width; ++d) *to++ = from[i * width + d];
  }
  out[0] = TensorInVariant(std::move(rest));
  out[1] = TensorInVariant(c.input(1).Rows(begin, end));
  out[2] = TensorInVariant(c.input(2).Rows(1, width));
  return OkStatus();
}

Status SerializeMany(KernelContext& c) {
  HR_RETURN_IF_ERROR(CheckParts(c));
  const Tensor& indices = c.input(0);
  const int64_t n = indices.dim(0), width = indices.dim(1);
  if (width < 1) {
    return InvalidArgument(
        "Rank of input SparseTensor should be > 1, but "
        "saw rank: ",
        width);
  }
  const int64_t rows = c.in<int64_t>(2)[0];
  if (rows < 0 || rows > (int64_t{1} << 40)) {
    return InvalidArgument("a sparse tensor has ", rows, " rows");
  }
  HR_RETURN_IF_ERROR(c.Allocate(0, Shape{rows, 3}));
  int64_t at = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t begin = at;
    while (at < n && indices.data<int64_t>()[at * width] == r) ++at;
    HR_RETURN_IF_ERROR(OneRow(c, begin, at, c.out<Variant>(0) + 3 * r));
  }
  if (at != n) {
    return InvalidArgument(
        "the indices of a sparse tensor are out of order "
        "or out of bounds");
  }
  return OkStatus();
}

struct Sparse {
  Tensor indices, values, shape;
};

StatusOr<Sparse> PartsOf(const Variant* v) {
  const TensorVariant* t[3];
  for (int i = 0; i < 3; ++i) {
    t[i] = v[i].get<TensorVariant>();
    if (t[i] == nullptr) {
      return InvalidArgument("a serialized sparse tensor holds ",
                             v[i].DebugString());
    }
  }
  return Sparse{t[0]->tensor, t[1]->tensor, t[2]->tensor};
}

// All of one rank, as one tensor with a new first dimension.
Status Join(KernelContext& c, absl::Span<const Sparse> all) {
  int64_t total = 0;
  const int64_t rank = all.empty() ? 0 : all[0].shape.dim(0);
  for (const Sparse& s : all) {
    if (s.shape.dim(0) != rank) {
      return InvalidArgument("sparse tensors of ranks ", rank, " and ",
                             s.shape.dim(0), " cannot be stacked");
    }
    total += s.values.dim(0);
  }
  HR_RETURN_IF_ERROR(c.Allocate(0, Shape{total, rank + 1}));
  HR_RETURN_IF_ERROR(c.Allocate(1, Shape{total}));
  HR_RETURN_IF_ERROR(c.Allocate(2, Shape{rank + 1}));
  int64_t* shape = c.out<int64_t>(2);
  std::fill(shape, shape + rank + 1, 0);
  shape[0] = static_cast<int64_t>(all.size());
  int64_t* to = c.out<int64_t>(0);
  int64_t at = 0;
  for (size_t k = 0; k < all.size(); ++k) {
    const Sparse& s = all[k];
    const int64_t n = s.values.dim(0);
    const int64_t* from = s.indices.data<int64_t>();
    for (int64_t i = 0; i < n; ++i) {
      *to++ = static_cast<int64_t>(k);
      for (int64_t d = 0; d < rank; ++d) *to++ = *from++;
    }
    if (n > 0) {
      Tensor rows = c.output(1).Rows(at, at + n);
      CopyElements(s.values, rows);
    }
    at += n;
    for (int64_t d = 0; d < rank; ++d) {
      shape[d + 1] = std::max(shape[d + 1], s.shape.data<int64_t>()[d]);
    }
  }
  return OkStatus();
}

Status Deserialize(KernelContext& c) {
  const Tensor& in = c.input(0);
  if (in.dtype() != DType::kVariant) {
    return Unimplemented("DeserializeSparse of strings");
  }
  if (in.rank() < 1 || in.rank() > 2 || in.dim(in.rank() - 1) != 3) {
    return InvalidArgument(
        "Serialized sparse should have 3 as the last "
        "dimension; got shape ",
        in.shape());
  }
  std::vector<Sparse> all;
  const int64_t n = in.num_elements() / 3;
  for (int64_t i = 0; i < n; ++i) {
    HR_ASSIGN_OR_RETURN(Sparse s, PartsOf(in.data<Variant>() + 3 * i));
    if (s.values.dtype() != c.op().type_attr("dtype")) {
      return InvalidArgument("Requested SparseTensor of type ",
                             DTypeName(c.op().type_attr("dtype")),
                             " but SparseTensor has type ",
                             DTypeName(s.values.dtype()));
    }
    all.push_back(std::move(s));
  }
  if (in.rank() == 2) return Join(c, all);
  c.set_output(0, all[0].indices);
  c.set_output(1, all[0].values);
  c.set_output(2, all[0].shape);
  return OkStatus();
}

Status SerializeRule(ShapeContext& c) {
  c.set_output(0, Shape{3});
  return OkStatus();
}

Status SerializeManyRule(ShapeContext& c) {
  c.set_output(0, Shape{-1, 3});
  return OkStatus();
}

Status DeserializeRule(ShapeContext& c) {
  c.set_output(0, Shape{-1, -1});
  c.set_output(1, Shape{-1});
  c.set_output(2, Shape{-1});
  return OkStatus();
}

OpBuilder SerializeOp(const char* name) {
  OpBuilder b(name);
  b.Input("sparse_indices: int64")
      .Input("sparse_values: T")
      .Input("sparse_shape: int64")
      .Attr("T: type")
      .Attr("out_type: {string, variant} = DT_STRING")
      .NoGradient();
  return b;
}
const OpRegistrar one = SerializeOp("SerializeSparse")
                            .Output("serialized_sparse: out_type")
                            .Doc("A sparse tensor as a vector of three.")
                            .Shape(SerializeRule)
                            .Cpu(ComputeOwn<Serialize>);
const OpRegistrar many = SerializeOp("SerializeManySparse")
                             .Output("serialized_sparse: out_type")
                             .Doc("The rows of a sparse tensor, three each.")
                             .Shape(SerializeManyRule)
                             .Cpu(ComputeOwn<SerializeMany>);

HR_OP(DeserializeSparse)
    .Input("serialized_sparse: Tserialized")
    .Output("sparse_indices: int64")
    .Output("sparse_values: dtype")
    .Output("sparse_shape: int64")
    .Attr("dtype: type")
    .Attr("Tserialized: {string, variant} = DT_STRING")
    .Doc("The sparse tensor that variants hold, stacked where several do.")
    .Shape(DeserializeRule)
    .NoGradient()
    .Cpu(ComputeOwn<Deserialize>);

}  // namespace
}  // namespace headrace
