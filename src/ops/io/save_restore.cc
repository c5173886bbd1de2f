// Checkpoints: SaveV2, RestoreV2, MergeV2Checkpoints, and Restore and
// RestoreSlice of the first format.
#include "base/files/files.h"
#include "formats/checkpoint_reader.h"
#include "formats/checkpoint_writer.h"
#include "op/op.h"
#include "op/reach.h"
#include "tensor/dtype_proto.h"
#include "tensor/variant_codec.h"

namespace headrace {
namespace {

// Inputs 0, 1 and 2 of the V2 ops: a prefix and two lists of `n` strings.
Status CheckNames(const KernelContext& c, int n) {
  if (c.input(0).num_elements() != 1) {
    return InvalidArgument(
        "Input 0 (prefix) must be a string scalar; got a "
        "tensor of ",
        c.input(0).num_elements(), "elements");
  }
  const char* names[] = {"tensor_names", "shape_and_slices"};
  for (int i = 1; i <= 2; ++i) {
    if (c.input(i).rank() != 1) {
      return InvalidArgument("Input ", i, " (", names[i - 1],
                             ") must be an 1-D string tensor, got shape ",
                             c.input(i).shape());
    }
    if (c.input(i).num_elements() != n) {
      return InvalidArgument("Got ", n, " tensors but ",
                             c.input(i).num_elements(), " ", names[i - 1]);
    }
  }
  return OkStatus();
}

std::vector<StringView> Views(const Tensor& t) {
  return {t.data<std::string>(), t.data<std::string>() + t.num_elements()};
}

absl::Span<const char> Bytes(const Tensor& t) {
  return {static_cast<const char*>(t.raw()), t.bytes()};
}

Status SaveTensor(CheckpointWriter& writer, const std::string& name,
                  const std::string& shape_and_slice, const Tensor& t) {
  HR_ASSIGN_OR_RETURN(ShapeAndSlice part, ParseShapeAndSlice(shape_and_slice));
  const bool strings = t.dtype() == DType::kString;
  if (t.dtype() == DType::kVariant && part.whole) {
    HR_ASSIGN_OR_RETURN(const auto variants, VariantsToBytes(t));
    return writer.AddVariants(name, t.shape().dims(), variants);
  }
  if (!strings && !IsPlain(t.dtype())) {
    return Unimplemented("tensor ", name, " of type ", DTypeName(t.dtype()),
                         " cannot be saved");
  }
  if (part.whole) {
    return strings ? writer.AddStrings(name, t.shape().dims(), Views(t))
                   : writer.Add(name, TypeToProto(t.dtype()), t.shape().dims(),
                                Bytes(t));
  }
  std::vector<int64_t> dims = SliceDims(part.slice);
  if (Shape(dims) != t.shape()) {
    return InvalidArgument(
        "Slice in shape_and_slice specification does not "
        "match the shape of the tensor to save: ",
        shape_and_slice, ", tensor: ", t.shape());
  }
  return strings ? writer.AddStringsSlice(name, part.dims, part.slice, Views(t))
                 : writer.AddSlice(name, TypeToProto(t.dtype()), part.dims,
                                   part.slice, Bytes(t));
}

// As upstream, only in a folder that is there: NotFound otherwise.
Status MakeFolderOf(FileSystem* fs, StringView prefix) {
  const StringView folder = DirName(prefix);
  if (folder.empty()) return OkStatus();
  Status made = fs->CreateDirectory(std::string(folder));
  return absl::IsAlreadyExists(made) ? OkStatus() : made;
}

Status Save(KernelContext& c) {
  const int n = c.num_inputs() - 3;
  HR_RETURN_IF_ERROR(CheckNames(c, n));
  std::string prefix;
  HR_ASSIGN_OR_RETURN(FileSystem * fs,
                      FileSystemFor(c.input(0).scalar<std::string>(), &prefix));
  HR_RETURN_IF_ERROR(MakeFolderOf(fs, prefix));
  HR_ASSIGN_OR_RETURN(auto writer, CheckpointWriter::Create(fs, prefix));
  for (int i = 0; i < n; ++i) {
    HR_RETURN_IF_ERROR(SaveTensor(*writer, c.in<std::string>(1)[i],
                                  c.in<std::string>(2)[i], c.input(3 + i)));
  }
  return writer->Finish();
}

HR_OP(SaveV2)
    .Traits({kWritesFiles})
    .Input("prefix: string")
    .Input("tensor_names: string")
    .Input("shape_and_slices: string")
    .Input("tensors: dtypes")
    .Attr("dtypes: list(type) >= 1")
    .Doc("Writes tensors, or slices of tensors, into a checkpoint.")
    .Stateful()
    .Shape(NoOutputs)
    .Cpu(Compute<Save>);

// Puts a tensor of the checkpoint, or a slice of it, into output i.
Status RestoreTensor(KernelContext& c, const CheckpointReader& reader, int i,
                     const std::string& name,
                     const std::string& shape_and_slice) {
  HR_ASSIGN_OR_RETURN(CheckpointTensor stored, reader.Lookup(name));
  const DType wanted = c.op().output_types()[i];
  if (stored.dtype != TypeToProto(wanted)) {
    return InvalidArgument("tensor_name = ", name, "; expected dtype ",
                           DTypeName(wanted), " does not equal original dtype ",
                           DTypeName(static_cast<DType>(stored.dtype)));
  }
  HR_ASSIGN_OR_RETURN(ShapeAndSlice part, ParseShapeAndSlice(shape_and_slice));
  if (!part.whole && part.dims != stored.dims) {
    return InvalidArgument(
        "tensor_name = ", name, "; shape in shape_and_slice spec ",
        Shape(part.dims),
        " does not match the shape stored in checkpoint: ", Shape(stored.dims));
  }
  const std::vector<int64_t> dims =
      part.whole ? stored.dims : SliceDims(part.slice);
  HR_ASSIGN_OR_RETURN(Shape shape, Shape::Make(dims));
  if (wanted == DType::kVariant && part.whole) {
    HR_ASSIGN_OR_RETURN(const auto values, reader.ReadStrings(name));
    HR_ASSIGN_OR_RETURN(Tensor t, VariantsFromBytes(values, shape));
    c.set_output(i, std::move(t));
    return OkStatus();
  }
  if (wanted == DType::kString) {
    std::vector<std::string> values;
    if (part.whole) {
      HR_ASSIGN_OR_RETURN(values, reader.ReadStrings(name));
    } else {
      HR_ASSIGN_OR_RETURN(values, reader.ReadStringsSlice(name, part.slice));
    }
    if (static_cast<int64_t>(values.size()) != shape.num_elements()) {
      return DataLoss("tensor ", name, " has ", values.size(),
                      " strings, its shape is ", shape);
    }
    HR_RETURN_IF_ERROR(c.Allocate(i, shape));
    std::move(values.begin(), values.end(), c.out<std::string>(i));
    return OkStatus();
  }
  HR_RETURN_IF_ERROR(c.Allocate(i, shape));
  absl::Span<char> out(static_cast<char*>(c.output(i).raw()),
                       c.output(i).bytes());
  return part.whole ? reader.Read(name, out)
                    : reader.ReadSlice(name, part.slice, out);
}

StatusOr<std::unique_ptr<CheckpointReader>> OpenCheckpoint(
    const std::string& path) {
  std::string local;
  HR_ASSIGN_OR_RETURN(FileSystem * fs, FileSystemFor(path, &local));
  auto reader = CheckpointReader::Open(fs, local);
  if (!reader.ok() && absl::IsNotFound(reader.status())) {
    return NotFound(
        "Unsuccessful TensorSliceReader constructor: Failed to "
        "find any matching files for ",
        path);
  }
  return reader;
}

Status Restore(KernelContext& c) {
  if (c.input(1).num_elements() != c.num_outputs()) {
    return InvalidArgument("Got ", c.input(1).num_elements(),
                           " tensor names, but ", c.num_outputs(),
                           " expected dtypes.");
  }
  HR_RETURN_IF_ERROR(CheckNames(c, c.num_outputs()));
  HR_ASSIGN_OR_RETURN(auto reader,
                      OpenCheckpoint(c.input(0).scalar<std::string>()));
  for (int i = 0; i < c.num_outputs(); ++i) {
    HR_RETURN_IF_ERROR(RestoreTensor(c, *reader, i, c.in<std::string>(1)[i],
                                     c.in<std::string>(2)[i]));
  }
  return OkStatus();
}

// A slice's own shape is known before the file is read.
Status RestoreShape(ShapeContext& c) {
  const Tensor* parts = c.value(2);
  if (parts == nullptr || parts->num_elements() != c.num_outputs()) {
    return OkStatus();
  }
  for (int i = 0; i < c.num_outputs(); ++i) {
    auto part = ParseShapeAndSlice(parts->data<std::string>()[i]);
    if (part.ok() && !part->whole)
      c.set_output(i, Shape(SliceDims(part->slice)));
  }
  return OkStatus();
}

HR_OP(RestoreV2)
    .Traits({kReadsFiles})
    .Input("prefix: string")
    .Input("tensor_names: string")
    .Input("shape_and_slices: string")
    .Output("tensors: dtypes")
    .Attr("dtypes: list(type) >= 1")
    .Doc("Reads tensors, or slices of tensors, of a checkpoint.")
    .Stateful()
    .Shape(RestoreShape)
    .Cpu(ComputeOwn<Restore>);

// Inputs: file_pattern, tensor_name and, for slices, shape_and_slice.
Status RestoreOne(KernelContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (c.input(i).num_elements() != 1) {
      return InvalidArgument("Input ", i, " (", c.op().def().inputs[i].name,
                             ") must be a string scalar; got a tensor of ",
                             c.input(i).num_elements(), "elements");
    }
  }
  HR_ASSIGN_OR_RETURN(auto reader,
                      OpenCheckpoint(c.input(0).scalar<std::string>()));
  return RestoreTensor(
      c, *reader, 0, c.input(1).scalar<std::string>(),
      c.num_inputs() > 2 ? c.input(2).scalar<std::string>() : std::string());
}

HR_OP(Restore)
    .Traits({kReadsFiles})
    .Input("file_pattern: string")
    .Input("tensor_name: string")
    .Output("tensor: dt")
    .Attr("dt: type")
    .Attr("preferred_shard: int = -1")
    .Doc("Reads a tensor of a checkpoint of either format.")
    .Stateful()
    .Shape(UnknownShape)
    .Cpu(ComputeOwn<RestoreOne>);

HR_OP(RestoreSlice)
    .Traits({kReadsFiles})
    .Input("file_pattern: string")
    .Input("tensor_name: string")
    .Input("shape_and_slice: string")
    .Output("tensor: dt")
    .Attr("dt: type")
    .Attr("preferred_shard: int = -1")
    .Doc("Reads a slice of a tensor of a checkpoint of either format.")
    .Stateful()
    .Shape(UnknownShape)
    .Cpu(ComputeOwn<RestoreOne>);

Status Merge(KernelContext& c) {
  if (c.input(1).num_elements() != 1) {
    return InvalidArgument(
        "Input destination_prefix should be a scalar "
        "tensor, got ",
        c.input(1).shape(), " instead.");
  }
  std::string merged;
  HR_ASSIGN_OR_RETURN(FileSystem * fs,
                      FileSystemFor(c.input(1).scalar<std::string>(), &merged));
  std::vector<std::string> prefixes;
  for (const std::string& p : c.input(0).span<std::string>()) {
    std::string local;
    HR_ASSIGN_OR_RETURN(FileSystem * other, FileSystemFor(p, &local));
    if (other != fs) {
      return Unimplemented("checkpoints on several file systems: ", p, " and ",
                           merged);
    }
    prefixes.push_back(std::move(local));
  }
  HR_RETURN_IF_ERROR(MakeFolderOf(fs, merged));
  const StringView folder = DirName(merged);
  HR_RETURN_IF_ERROR(MergeCheckpoints(fs, prefixes, merged,
                                      c.op().bool_attr("allow_missing_files")));
  if (c.op().bool_attr("delete_old_dirs")) {
    for (const std::string& p : prefixes) {
      // Only folders that are empty now go; errors are no reason to fail.
      if (DirName(p) != folder) {
        fs->DeleteDirectory(std::string(DirName(p))).IgnoreError();
      }
    }
  }
  return OkStatus();
}

HR_OP(MergeV2Checkpoints)
    .Traits({kReadsFiles, kWritesFiles})
    .Input("checkpoint_prefixes: string")
    .Input("destination_prefix: string")
    .Attr("delete_old_dirs: bool = true")
    .Attr("allow_missing_files: bool = false")
    .Doc("Makes one checkpoint of several.")
    .Stateful()
    .Shape(NoOutputs)
    .Cpu(Compute<Merge>);

}  // namespace
}  // namespace headrace
