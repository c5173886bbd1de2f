// ImmutableConst: a tensor whose elements are a file's bytes. Upstream maps the
// file; here it is read (base/files/file_system.h says why).
#include "base/files/files.h"
#include "base/numbers/bools.h"
#include "op/op.h"
#include "op/reach.h"

namespace headrace {
namespace {

StatusOr<Tensor> TensorOfFile(const std::string& path, DType dtype,
                              const Shape& shape) {
  if (!IsPlain(dtype)) {
    return InvalidArgument(
        "Sorry, DT_STRING, DT_RESOURCE and DT_VARIANT are "
        "not currently supported in ImmutableConstOp.");
  }
  if (!shape.fully_known()) {
    return InvalidArgument("ImmutableConst: bad shape ", shape);
  }
  std::string local;
  HR_ASSIGN_OR_RETURN(FileSystem* const fs, FileSystemFor(path, &local));
  HR_ASSIGN_OR_RETURN(const FileStat stat, fs->Stat(local));
  int64_t bytes;
  // Files may be longer: upstream maps a region of them.
  if (!MultiplyChecked(shape.num_elements(),
                       static_cast<int64_t>(DTypeSize(dtype)), &bytes) ||
      stat.is_directory || stat.size < static_cast<uint64_t>(bytes)) {
    return InvalidArgument("ImmutableConst: ", path,
                           " has not the bytes that shape ", shape, " of ",
                           DTypeName(dtype), " takes");
  }
  HR_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(dtype, shape));
  HR_RETURN_IF_ERROR(LoadFile(
      fs, local, absl::MakeSpan(t.data<char>(), static_cast<size_t>(bytes))));
  if (dtype == DType::kBool) MakeBools(t.raw(), t.bytes());
  return t;
}

Status ImmutableConst(KernelContext& c) {
  const ResolvedOp& op = c.op();
  HR_ASSIGN_OR_RETURN(
      Tensor t, TensorOfFile(op.string_attr("memory_region_name"),
                             op.type_attr("dtype"), op.attr<Shape>("shape")));
  c.set_output(0, std::move(t));
  return OkStatus();
}

Status ImmutableConstRule(ShapeContext& c) {
  c.set_output(0, c.op().attr<Shape>("shape"));
  return OkStatus();
}

HR_OP(ImmutableConst)
    .Traits({kReadsFiles})
    .Output("tensor: dtype")
    .Attr("dtype: type")
    .Attr("shape: shape")
    .Attr("memory_region_name: string")
    .Doc("The bytes of a file as a tensor.")
    .Shape(ImmutableConstRule)
    .Cpu(ComputeOwn<ImmutableConst>);

}  // namespace
}  // namespace headrace
