// ReadFile, WriteFile, MatchingFiles, ShardedFilename, ShardedFilespec.
#include "base/files/files.h"

#include <algorithm>
#include <cstdio>

#include "op/op.h"
#include "op/reach.h"

namespace headrace {
namespace {

Status Read(KernelContext& c) {
  if (c.input(0).rank() != 0) {
    return InvalidArgument(
        "Input filename tensor must be scalar, but had "
        "shape: ",
        c.input(0).shape());
  }
  std::string path;
  HR_ASSIGN_OR_RETURN(FileSystem * fs,
                      FileSystemFor(c.input(0).scalar<std::string>(), &path));
  HR_ASSIGN_OR_RETURN(*c.out<std::string>(0), ReadWholeFile(fs, path));
  return OkStatus();
}

HR_OP(ReadFile)
    .Traits({kReadsFiles})
    .Input("filename: string")
    .Output("contents: string")
    .Doc("All bytes of a file.")
    .Shape(ScalarShape)
    .Cpu(Compute<Read>);

Status Write(KernelContext& c) {
  if (c.input(0).rank() != 0) {
    return InvalidArgument(
        "Input filename tensor must be scalar, but had "
        "shape: ",
        c.input(0).shape());
  }
  if (c.input(1).rank() != 0) {
    return InvalidArgument("Contents tensor must be scalar, but had shape: ",
                           c.input(1).shape());
  }
  std::string path;
  HR_ASSIGN_OR_RETURN(FileSystem * fs,
                      FileSystemFor(c.input(0).scalar<std::string>(), &path));
  StringView folder = DirName(path);
  if (!folder.empty()) {
    HR_RETURN_IF_ERROR(CreateDirectories(fs, std::string(folder)));
  }
  HR_ASSIGN_OR_RETURN(auto file, fs->OpenToWrite(path, WriteMode::kTruncate));
  HR_RETURN_IF_ERROR(file->Append(c.input(1).scalar<std::string>()));
  return file->Close();
}

HR_OP(WriteFile)
    .Traits({kWritesFiles})
    .Input("filename: string")
    .Input("contents: string")
    .Doc("Writes a file, and the folders it lies in.")
    .Stateful()
    .Shape(NoOutputs)
    .Cpu(Compute<Write>);

Status Matching(KernelContext& c) {
  std::vector<std::string> found;
  for (const std::string& pattern : c.input(0).span<std::string>()) {
    std::string path;
    HR_ASSIGN_OR_RETURN(FileSystem * fs, FileSystemFor(pattern, &path));
    HR_ASSIGN_OR_RETURN(auto paths, MatchPaths(fs, path));
    found.insert(found.end(), paths.begin(), paths.end());
  }
  std::sort(found.begin(), found.end());
  HR_RETURN_IF_ERROR(c.Allocate(0, Shape{int64_t(found.size())}));
  std::move(found.begin(), found.end(), c.out<std::string>(0));
  return OkStatus();
}

Status MatchingShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRankAtMost(c.input(0), 1));
  c.set_output(0, Shape{Shape::kUnknown});
  return OkStatus();
}

HR_OP(MatchingFiles)
    .Traits({kReadsFiles})
    .Input("pattern: string")
    .Output("filenames: string")
    .Doc("Paths of the files that match patterns, sorted.")
    .Shape(MatchingShape)
    .Cpu(ComputeOwn<Matching>);

Status AllScalars(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) {
    HR_RETURN_IF_ERROR(CheckRank(c.input(i), 0));
  }
  c.set_output(0, Shape());
  return OkStatus();
}

Status Sharded(KernelContext& c) {
  char numbers[64];
  std::snprintf(numbers, sizeof numbers, "-%05d-of-%05d",
                c.input(1).scalar<int32_t>(), c.input(2).scalar<int32_t>());
  *c.out<std::string>(0) =
      absl::StrCat(c.input(0).scalar<std::string>(), numbers);
  return OkStatus();
}

HR_OP(ShardedFilename)
    .Input("basename: string")
    .Input("shard: int32")
    .Input("num_shards: int32")
    .Output("filename: string")
    .Doc("\"BASE-00001-of-00004\".")
    .Shape(AllScalars)
    .Cpu(Compute<Sharded>);

Status ShardedSpec(KernelContext& c) {
  char numbers[64];
  std::snprintf(numbers, sizeof numbers, "-?\?\?\?\?-of-%05d",
                c.input(1).scalar<int32_t>());
  *c.out<std::string>(0) =
      absl::StrCat(c.input(0).scalar<std::string>(), numbers);
  return OkStatus();
}

HR_OP(ShardedFilespec)
    .Input("basename: string")
    .Input("num_shards: int32")
    .Output("filename: string")
    .Doc("A pattern for all of \"BASE-00001-of-00004\".")
    .Shape(AllScalars)
    .Cpu(Compute<ShardedSpec>);

}  // namespace
}  // namespace headrace
