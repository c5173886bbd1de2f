// DataFormatDimMap, DataFormatVecPermute: dimensions under another name.
#include <algorithm>

#include "op/op.h"

namespace headrace {
namespace {

struct Formats {
  std::string from, to;
};

StatusOr<Formats> ReadFormats(const ResolvedOp& op) {
  Formats f{op.string_attr("src_format"), op.string_attr("dst_format")};
  if (f.from.size() != 4 && f.from.size() != 5) {
    return InvalidArgument(
        "Source format must be of length 4 or 5, received src_format = ",
        f.from);
  }
  if (f.to.size() != 4 && f.to.size() != 5) {
    return InvalidArgument(
        "Destination format must be of length 4 or 5, received dst_format = ",
        f.to);
  }
  std::string a = f.from, b = f.to;
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  // The same letters in both, each once.
  if (a != b || std::unique(a.begin(), a.end()) != a.end()) {
    return InvalidArgument(
        "Destination and source format must determine a permutation, got ",
        f.from, " and ", f.to);
  }
  return f;
}

template <typename T>
Status MapDims(const Formats& f, const Tensor& in, Tensor& out) {
  const auto n = static_cast<int64_t>(f.from.size());
  for (int64_t i = 0; i < in.num_elements(); ++i) {
    // The remainder of C++ takes the sign of the dimension; negative ones count
    // from the end.
    const int64_t d = (in.data<T>()[i] % n + n) % n;
    out.data<T>()[i] = static_cast<T>(f.to.find(f.from[d]));
  }
  return OkStatus();
}
Status DimMap(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(Formats f, ReadFormats(c.op()));
  return c.input(0).dtype() == DType::kInt32
             ? MapDims<int32_t>(f, c.input(0), c.output(0))
             : MapDims<int64_t>(f, c.input(0), c.output(0));
}

HR_OP(DataFormatDimMap)
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {int32, int64} = DT_INT32")
    .Attr("src_format: string = 'NHWC'")
    .Attr("dst_format: string = 'NCHW'")
    .Doc("Where the dimensions x of one layout stand in another.")
    .Shape(UnchangedShape)
    .Cpu(Compute<DimMap>);

Status VecPermuteRule(ShapeContext& c) {
  const Shape& in = c.input(0);
  const auto full =
      static_cast<int64_t>(c.op().string_attr("src_format").size());
  c.set_output(0, in);
  HR_RETURN_IF_ERROR(ReadFormats(c.op()).status());
  if (!in.known_rank()) return OkStatus();
  if (in.rank() != 1 && in.rank() != 2) {
    return InvalidArgument(
        "input must be a vector or 2D tensor, but got shape ", in);
  }
  if (in[0] >= 0 && in[0] != full && in[0] != full - 2) {
    return InvalidArgument(
        in.rank() == 1 ? "1D input" : "First dimension of 2D input",
        " must be of size ", full - 2, " or ", full, ", but got shape ", in);
  }
  if (in.rank() == 2 && in[1] >= 0 && in[1] != 2) {
    return InvalidArgument(
        "Second dimension of 2D input must be of size 2, but got shape ", in);
  }
  return OkStatus();
}

Status VecPermute(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(Formats f, ReadFormats(c.op()));
  const Tensor& in = c.input(0);
  // Rows of two are paddings, before and after.
  const int64_t n = in.dim(0), run = in.rank() == 2 ? 2 : 1;
  if (n != static_cast<int64_t>(f.from.size())) {  // of the space alone
    for (std::string* s : {&f.from, &f.to}) {
      std::erase_if(*s, [](char ch) { return ch == 'N' || ch == 'C'; });
    }
  }
  if (n != static_cast<int64_t>(f.from.size()) ||
      f.from.size() != f.to.size()) {
    return InvalidArgument(
        "Format specifier must contain H and W for 2D case, but for an input "
        "of "
        "shape ",
        in.shape(), " they are ", f.from, " and ", f.to);
  }
  // Elements are moved as bytes, a row at once.
  const size_t bytes = run * DTypeSize(in.dtype());
  for (int64_t i = 0; i < n; ++i) {
    const auto from = static_cast<int64_t>(f.from.find(f.to[i]));
    std::copy_n(static_cast<const char*>(in.raw()) + from * bytes, bytes,
                static_cast<char*>(c.output(0).raw()) + i * bytes);
  }
  return OkStatus();
}

HR_OP(DataFormatVecPermute)
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {int32, int64} = DT_INT32")
    .Attr("src_format: string = 'NHWC'")
    .Attr("dst_format: string = 'NCHW'")
    .Doc("Values of the dimensions of one layout in the order of another.")
    .Shape(VecPermuteRule)
    .Cpu(Compute<VecPermute>);

}  // namespace
}  // namespace headrace
