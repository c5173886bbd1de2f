// Save and SaveSlices: checkpoints of the first format.
#include "base/files/files.h"
#include "formats/slice_checkpoint_writer.h"
#include "op/op.h"
#include "op/reach.h"
#include "tensor/dtype_proto.h"

namespace headrace {
namespace {

Status AddTensor(SliceCheckpointWriter& writer, const std::string& name,
                 const std::string& shape_and_slice, const Tensor& t) {
  HR_ASSIGN_OR_RETURN(const ShapeAndSlice part,
                      ParseShapeAndSlice(shape_and_slice));
  if (!part.whole && Shape(SliceDims(part.slice)) != t.shape()) {
    return InvalidArgument(
        "Slice in shape_and_slice specification does not "
        "match the shape of the tensor to save: ",
        shape_and_slice, ", tensor: ", t.shape());
  }
  const auto dims =
      part.whole ? t.shape().dims() : absl::Span<const int64_t>(part.dims);
  const TensorSlice slice =
      part.whole ? TensorSlice::Whole(t.rank()) : part.slice;
  if (t.dtype() == DType::kString) {
    const auto strings = t.span<std::string>();
    return writer.AddStrings(
        name, dims, slice,
        std::vector<StringView>(strings.begin(), strings.end()));
  }
  if (!IsPlain(t.dtype())) {
    return Unimplemented("tensor ", name, " of type ", DTypeName(t.dtype()),
                         " cannot be saved");
  }
  return writer.Add(name, TypeToProto(t.dtype()), dims, slice,
                    {static_cast<const char*>(t.raw()), t.bytes()});
}

// Tensors from input `first` on; what stands before are the file, their names
// and, where there are three, their shapes and slices.
Status SaveFrom(KernelContext& c, int first) {
  const int n = c.num_inputs() - first;
  if (c.input(0).num_elements() != 1) {
    return InvalidArgument(
        "Input 0 (filename) must be a string scalar; got a "
        "tensor of ",
        c.input(0).num_elements(), " elements");
  }
  for (int i = 1; i < first; ++i) {
    if (c.input(i).rank() == 1 && c.input(i).num_elements() == n) continue;
    return InvalidArgument("Input ", i, " must be a vector of ", n,
                           " strings, one a tensor; got shape ",
                           c.input(i).shape());
  }
  std::string path;
  HR_ASSIGN_OR_RETURN(FileSystem * fs,
                      FileSystemFor(c.input(0).scalar<std::string>(), &path));
  const StringView folder = DirName(path);
  if (!folder.empty()) {
    HR_RETURN_IF_ERROR(CreateDirectories(fs, std::string(folder)));
  }
  SliceCheckpointWriter writer;
  for (int i = 0; i < n; ++i) {
    HR_RETURN_IF_ERROR(
        AddTensor(writer, c.in<std::string>(1)[i],
                  first > 2 ? c.in<std::string>(2)[i] : std::string(),
                  c.input(first + i)));
  }
  return writer.Finish(fs, path);
}

Status SaveFile(KernelContext& c) { return SaveFrom(c, 2); }
Status SaveParts(KernelContext& c) { return SaveFrom(c, 3); }

HR_OP(Save)
    .Traits({kWritesFiles})
    .Input("filename: string")
    .Input("tensor_names: string")
    .Input("data: T")
    .Attr("T: list(type) >= 1")
    .Doc("Writes tensors into a checkpoint of the first format.")
    .Stateful()
    .Shape(NoOutputs)
    .Cpu(Compute<SaveFile>);

HR_OP(SaveSlices)
    .Traits({kWritesFiles})
    .Input("filename: string")
    .Input("tensor_names: string")
    .Input("shapes_and_slices: string")
    .Input("data: T")
    .Attr("T: list(type) >= 1")
    .Doc("Writes tensors, or slices, into a checkpoint of the first format.")
    .Stateful()
    .Shape(NoOutputs)
    .Cpu(Compute<SaveParts>);

}  // namespace
}  // namespace headrace
