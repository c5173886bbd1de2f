// ImmutableConst: a tensor whose elements are a file's bytes, mapped.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "op/op.h"

namespace headrace {
namespace {

struct Mapping {
  void* data;
  size_t bytes;
};
void Unmap(void* owner) {
  auto* m = static_cast<Mapping*>(owner);
  munmap(m->data, m->bytes);
  delete m;
}

StatusOr<Tensor> MapFile(const std::string& path, DType dtype,
                         const Shape& shape) {
  if (!IsPlain(dtype)) {
    return InvalidArgument(
        "Sorry, DT_STRING, DT_RESOURCE and DT_VARIANT are "
        "not currently supported in ImmutableConstOp.");
  }
  int64_t bytes;
  if (!shape.fully_known() ||
      !MultiplyChecked(shape.num_elements(),
                       static_cast<int64_t>(DTypeSize(dtype)), &bytes)) {
    return InvalidArgument("ImmutableConst: bad shape ", shape);
  }
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return NotFound(path, "; ", std::strerror(errno));
  struct stat st;
  const bool fits =
      fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= bytes;
  if (!fits || bytes == 0) {
    close(fd);
    if (fits) return Tensor::Allocate(dtype, shape);
    return InvalidArgument("ImmutableConst: ", path, " has not the ", bytes,
                           " bytes that shape ", shape, " takes");
  }
  void* data = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  if (data == MAP_FAILED) {
    return Internal("mapping ", path, ": ", std::strerror(errno));
  }
  auto* owner = new Mapping{data, static_cast<size_t>(bytes)};
  return Tensor::Wrap(dtype, shape, data, bytes, owner, Unmap);
}

Status ImmutableConst(KernelContext& c) {
  const ResolvedOp& op = c.op();
  HR_ASSIGN_OR_RETURN(Tensor t,
                      MapFile(op.string_attr("memory_region_name"),
                              op.type_attr("dtype"), op.attr<Shape>("shape")));
  c.set_output(0, std::move(t));
  return OkStatus();
}

Status ImmutableConstRule(ShapeContext& c) {
  c.set_output(0, c.op().attr<Shape>("shape"));
  return OkStatus();
}

HR_OP(ImmutableConst)
    .Output("tensor: dtype")
    .Attr("dtype: type")
    .Attr("shape: shape")
    .Attr("memory_region_name: string")
    .Doc("The bytes of a file as a tensor, mapped into memory.")
    .Shape(ImmutableConstRule)
    .Cpu(ComputeOwn<ImmutableConst>);

}  // namespace
}  // namespace headrace
