// SerializeSparse, SerializeManySparse, DeserializeSparse and
// DeserializeManySparse: sparse tensors as variants or as texts of
// TensorProtos, three to a tensor: indices, values, shape.
#include <algorithm>
#include <vector>

#include "base/coding.h"
#include "op/op.h"
#include "tensor/dtype_proto.h"
#include "tensor/tensor_proto.h"
#include "tensor/tensor_variant.h"
#include "tensorflow/core/framework/tensor.pb.h"

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
  return OkStatus();
}

// `t` as upstream writes it: all of it in tensor_content, of strings the
// lengths and then the bytes.
Status ToContent(const Tensor& t, tensorflow::TensorProto* proto) {
  // Types that are no plain bytes have fields of their own in a TensorProto.
  if (t.dtype() != DType::kString && !IsPlain(t.dtype())) {
    return TensorToProto(t, proto);
  }
  proto->set_dtype(TypeToProto(t.dtype()));
  ShapeToProto(t.shape(), proto->mutable_tensor_shape());
  if (t.num_elements() == 0) return OkStatus();
  if (t.dtype() != DType::kString) {
    proto->set_tensor_content(t.raw(), t.bytes());
    return OkStatus();
  }
  std::string* content = proto->mutable_tensor_content();
  for (const std::string& s : t.span<std::string>()) {
    PutVarint64(content, s.size());
  }
  for (const std::string& s : t.span<std::string>()) *content += s;
  return OkStatus();
}

// Element `at` of output 0 becomes `t`.
Status Hold(const KernelContext& c, int64_t at, Tensor t) {
  // A variant holds the tensor itself, without a copy.
  if (c.output(0).dtype() == DType::kVariant) {
    c.out<Variant>(0)[at] = TensorInVariant(std::move(t));
    return OkStatus();
  }
  tensorflow::TensorProto proto;
  HR_RETURN_IF_ERROR(ToContent(t, &proto));
  if (!proto.SerializeToString(c.out<std::string>(0) + at)) {
    return InvalidArgument("a tensor of ", t.bytes(),
                           " bytes is too large for a proto");
  }
  return OkStatus();
}

Status Serialize(KernelContext& c) {
  HR_RETURN_IF_ERROR(CheckParts(c));
  HR_RETURN_IF_ERROR(c.Allocate(0, Shape{3}));
  for (int i = 0; i < 3; ++i) {
    HR_RETURN_IF_ERROR(Hold(c, i, c.input(i)));
  }
  return OkStatus();
}

// The entries [begin, end) as a tensor without its first dimension, from
// element `at` of output 0 on.
Status OneRow(const KernelContext& c, int64_t begin, int64_t end, int64_t at) {
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
  HR_RETURN_IF_ERROR(Hold(c, at, std::move(rest)));
  HR_RETURN_IF_ERROR(Hold(c, at + 1, c.input(1).Rows(begin, end)));
  return Hold(c, at + 2, c.input(2).Rows(1, width));
}

Status SerializeMany(KernelContext& c) {
  HR_RETURN_IF_ERROR(CheckParts(c));
  const Tensor& indices = c.input(0);
  const int64_t n = indices.dim(0), width = indices.dim(1);
  if (width < 2) {
    return InvalidArgument(
        "Rank of input SparseTensor should be > 1, but "
        "saw rank: ",
        width);
  }
  const int64_t rows = c.in<int64_t>(2)[0];
  // Only so that the size of the output cannot overflow; the allocation finds
  // what is too much.
  if (rows < 0 || rows > (int64_t{1} << 40)) {
    return InvalidArgument("a sparse tensor has ", rows, " rows");
  }
  HR_RETURN_IF_ERROR(c.Allocate(0, Shape{rows, 3}));
  int64_t at = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t begin = at;
    while (at < n && indices.data<int64_t>()[at * width] == r) ++at;
    HR_RETURN_IF_ERROR(OneRow(c, begin, at, 3 * r));
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

// Element `at` of a tensor of variants or strings.
StatusOr<Tensor> Held(const Tensor& in, int64_t at) {
  if (in.dtype() == DType::kVariant) {
    const Variant& v = in.data<Variant>()[at];
    if (const auto* held = v.get<TensorVariant>()) return held->tensor;
    return InvalidArgument("a serialized sparse tensor holds ",
                           v.DebugString());
  }
  tensorflow::TensorProto proto;
  if (!proto.ParseFromString(in.data<std::string>()[at])) {
    return InvalidArgument("Could not parse serialized proto");
  }
  return TensorFromProto(proto);
}

// The k-th sparse tensor of `in`, its parts checked against one another.
StatusOr<Sparse> PartsOf(const Tensor& in, int64_t k, DType dtype) {
  Sparse s;
  HR_ASSIGN_OR_RETURN(s.indices, Held(in, 3 * k));
  HR_ASSIGN_OR_RETURN(s.values, Held(in, 3 * k + 1));
  HR_ASSIGN_OR_RETURN(s.shape, Held(in, 3 * k + 2));
  if (s.values.dtype() != dtype) {
    return InvalidArgument("Requested SparseTensor of type ", DTypeName(dtype),
                           " but SparseTensor[", k,
                           "].values.dtype() == ", DTypeName(s.values.dtype()));
  }
  if (s.indices.dtype() != DType::kInt64 || s.shape.dtype() != DType::kInt64 ||
      s.indices.rank() != 2 || s.values.rank() != 1 || s.shape.rank() != 1 ||
      s.values.dim(0) != s.indices.dim(0) ||
      s.shape.dim(0) != s.indices.dim(1)) {
    return InvalidArgument("SparseTensor[", k, "] has indices ",
                           s.indices.Describe(), ", values ",
                           s.values.Describe(), " and shape ",
                           s.shape.Describe(), ", which do not fit together");
  }
  return s;
}

// All of one rank, as one tensor with new first dimensions of sizes `stack`.
Status Join(KernelContext& c, absl::Span<const Sparse> all,
            absl::Span<const int64_t> stack) {
  int64_t total = 0;
  const int64_t rank = all[0].shape.dim(0);
  const auto added = static_cast<int64_t>(stack.size());
  for (size_t k = 0; k < all.size(); ++k) {
    if (all[k].shape.dim(0) != rank) {
      return InvalidArgument(
          "Inconsistent shape across SparseTensors: rank prior to "
          "SparseTensor[",
          k, "] was: ", rank, " but rank of SparseTensor[", k,
          "] is: ", all[k].shape.dim(0));
    }
    total += all[k].values.dim(0);
  }
  HR_RETURN_IF_ERROR(c.Allocate(0, Shape{total, rank + added}));
  HR_RETURN_IF_ERROR(c.Allocate(1, Shape{total}));
  HR_RETURN_IF_ERROR(c.Allocate(2, Shape{rank + added}));
  int64_t* shape = c.out<int64_t>(2);
  std::copy(stack.begin(), stack.end(), shape);
  // The joined size along each dimension is the largest of all, as upstream
  // makes it.
  std::fill_n(shape + added, rank, 0);
  int64_t* to = c.out<int64_t>(0);
  std::vector<int64_t> place(added, 0);
  int64_t at = 0;
  for (const Sparse& s : all) {
    const int64_t n = s.values.dim(0);
    const int64_t* from = s.indices.data<int64_t>();
    for (int64_t i = 0; i < n; ++i, from += rank) {
      to = std::copy(place.begin(), place.end(), to);
      to = std::copy_n(from, rank, to);
    }
    if (n > 0) {
      Tensor rows = c.output(1).Rows(at, at + n);
      CopyElements(s.values, rows);
    }
    at += n;
    for (int64_t d = 0; d < rank; ++d) {
      shape[added + d] = std::max(shape[added + d], s.shape.data<int64_t>()[d]);
    }
    // The place in the stack moves on like an odometer.
    for (int64_t d = added - 1; d >= 0 && ++place[d] == stack[d]; --d) {
      place[d] = 0;
    }
  }
  return OkStatus();
}

Status Deserialize(KernelContext& c) {
  const Tensor& in = c.input(0);
  if (in.rank() < 1 || in.dim(in.rank() - 1) != 3) {
    return InvalidArgument(
        "Serialized sparse should have 3 as the last dimension ", in.shape());
  }
  const int64_t n = in.num_elements() / 3;
  // Without a tensor the rank is not known.
  if (n == 0) {
    return InvalidArgument(
        "Serialized sparse should have at least 1 serialized tensor, but has a "
        "zero dimension ",
        in.shape());
  }
  std::vector<Sparse> all;
  for (int64_t k = 0; k < n; ++k) {
    HR_ASSIGN_OR_RETURN(Sparse s, PartsOf(in, k, c.op().type_attr("dtype")));
    all.push_back(std::move(s));
  }
  if (in.rank() > 1) {
    return Join(c, all, in.shape().dims().subspan(0, in.rank() - 1));
  }
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
      .Attr("out_type: {string, variant} = DT_STRING");
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
    .Doc("The sparse tensor that is held, stacked where there are several.")
    .Shape(DeserializeRule)
    .Cpu(ComputeOwn<Deserialize>);

HR_OP(DeserializeManySparse)
    .Input("serialized_sparse: string")
    .Output("sparse_indices: int64")
    .Output("sparse_values: dtype")
    .Output("sparse_shape: int64")
    .Attr("dtype: type")
    .Doc("The rows that SerializeManySparse wrote, stacked.")
    .Shape(DeserializeRule)
    .Cpu(ComputeOwn<Deserialize>);

}  // namespace
}  // namespace headrace
