#include "formats/checkpoint_reader.h"

#include <algorithm>
#include <cstring>

#include "base/files/files.h"
#include "base/numbers/bools.h"
#include "formats/checkpoint_writer.h"
#include "formats/element_size.h"

namespace headrace {
namespace {

// Calls fn(part, box, common) for each stored piece that has elements in common
// with `target`; NotFound unless they cover all of it.
Status ForEachPart(
    StringView key, const CheckpointTensor& tensor, const TensorSlice& target,
    absl::FunctionRef<Status(int part, const TensorSlice& box, int64_t common)>
        fn) {
  HR_ASSIGN_OR_RETURN(const int64_t wanted, CountElements(SliceDims(target)));
  if (wanted == 0) return OkStatus();
  int64_t found = 0;
  const int parts = static_cast<int>(tensor.slices.size());
  for (int part = parts == 0 ? -1 : 0; part < parts; ++part) {
    const TensorSlice stored =
        part < 0 ? TensorSlice::Whole(static_cast<int>(tensor.dims.size()))
                 : tensor.slices[part];
    HR_ASSIGN_OR_RETURN(const TensorSlice box, stored.Resolve(tensor.dims));
    // Counted, not walked: a box may have many runs.
    int64_t common = 1;
    for (size_t d = 0; d < box.extents.size() && common > 0; ++d) {
      const auto &a = box.extents[d], &b = target.extents[d];
      const int64_t length = std::min(a.start + a.length, b.start + b.length) -
                             std::max(a.start, b.start);
      common *= std::max<int64_t>(length, 0);
    }
    if (common == 0) continue;
    HR_RETURN_IF_ERROR(fn(part, box, common));
    found += common;
    if (part < 0) break;
  }
  if (found == wanted) return OkStatus();
  return NotFound("Tensor ", key, " is stored in slices that do not cover ",
                  target.ToString());
}

Status CheckDtype(StringView key, const CheckpointTensor& tensor,
                  bool strings) {
  const bool texts = tensor.dtype == tensorflow::DT_STRING ||
                     tensor.dtype == tensorflow::DT_VARIANT;
  if (strings != texts) {
    return InvalidArgument("Tensor ", key, " is of type ",
                           tensorflow::DataType_Name(tensor.dtype),
                           strings ? ", not strings" : ", not numbers");
  }
  if (strings || ElementSize(tensor.dtype) > 0) return OkStatus();
  return Unimplemented("Tensor ", key, " is of type ",
                       tensorflow::DataType_Name(tensor.dtype),
                       ", which cannot be read as numbers");
}

}  // namespace

StatusOr<std::unique_ptr<CheckpointReader>> CheckpointReader::Open(
    FileSystem* fs, const std::string& prefix) {
  // Checkpoints of version 2 have an index; anything else is of version 1,
  // whose files are tables themselves.
  if (FileExists(fs, CheckpointIndexPath(prefix))) {
    return OpenBundle(fs, prefix);
  }
  std::vector<std::string> files;
  const auto stat = fs->Stat(prefix);
  if (stat.ok() && !stat->is_directory) {
    files.push_back(prefix);
  } else {
    const auto names =
        fs->List(DirName(prefix).empty() ? "." : std::string(DirName(prefix)));
    const StringView base = BaseName(prefix);
    for (const std::string& name :
         names.ok() ? *names : std::vector<std::string>()) {
      const StringView rest =
          StringView(name).substr(std::min(name.size(), base.size()));
      // "-00000-of-00001".
      if (name.compare(0, base.size(), base.data(), base.size()) == 0 &&
          rest.size() == 15 && MatchesPattern(rest, "-*-of-*")) {
        files.push_back(JoinPath(DirName(prefix), name));
      }
    }
  }
  if (files.empty()) {  // a pattern, as sharded Savers give it
    auto matches = MatchPaths(fs, prefix);
    if (matches.ok()) files = *std::move(matches);
  }
  if (files.empty()) {
    return NotFound(
        "Unsuccessful TensorSliceReader constructor: Failed to find any "
        "matching files for ",
        prefix);
  }
  return OpenSliceCheckpoint(fs, files);
}

bool CheckpointReader::Contains(StringView key) const {
  const auto& all = keys();
  const auto at = std::lower_bound(all.begin(), all.end(), key);
  return at != all.end() && *at == key;
}

Status CheckpointReader::CheckSize(StringView key,
                                   const CheckpointTensor& tensor) const {
  const uint64_t element = std::max(ElementSize(tensor.dtype), 1);
  const auto count = CountElements(tensor.dims);
  // A forged shape must not make the caller allocate more than the files can
  // hold.
  if (count.ok() && static_cast<uint64_t>(*count) <= MostBytes() / element) {
    return OkStatus();
  }
  HR_RETURN_IF_ERROR(CheckFiles());
  return DataLoss("Tensor ", key, " has more elements than the files can hold");
}

Status CheckpointReader::Read(StringView key, absl::Span<char> out) const {
  HR_ASSIGN_OR_RETURN(const CheckpointTensor tensor, Lookup(key));
  HR_ASSIGN_OR_RETURN(const TensorSlice box,
                      TensorSlice::Whole(static_cast<int>(tensor.dims.size()))
                          .Resolve(tensor.dims));
  return ReadBox(key, tensor, box, out);
}

Status CheckpointReader::ReadSlice(StringView key, const TensorSlice& slice,
                                   absl::Span<char> out) const {
  HR_ASSIGN_OR_RETURN(const CheckpointTensor tensor, Lookup(key));
  HR_ASSIGN_OR_RETURN(const TensorSlice box, slice.Resolve(tensor.dims));
  return ReadBox(key, tensor, box, out);
}

Status CheckpointReader::ReadBox(StringView key, const CheckpointTensor& tensor,
                                 const TensorSlice& target,
                                 absl::Span<char> out) const {
  HR_RETURN_IF_ERROR(CheckDtype(key, tensor, /*strings=*/false));
  const int64_t element = ElementSize(tensor.dtype);
  HR_ASSIGN_OR_RETURN(const int64_t wanted, CountElements(SliceDims(target)));
  // A division, as a product with the count could overflow.
  if (static_cast<int64_t>(out.size() / element) != wanted ||
      out.size() % element != 0) {
    return InvalidArgument("Tensor ", key, " has ", wanted, " elements of ",
                           element, " bytes, the buffer ", out.size(),
                           " bytes");
  }
  // Slices that overlap could leave a gap: let it hold no stray bytes.
  if (tensor.slices.size() > 1) std::memset(out.data(), 0, out.size());
  std::string piece;
  HR_RETURN_IF_ERROR(ForEachPart(
      key, tensor, target,
      [&](int part, const TensorSlice& box, int64_t common) -> Status {
        HR_ASSIGN_OR_RETURN(const int64_t stored,
                            CountElements(SliceDims(box)));
        if (static_cast<uint64_t>(stored) > MostBytes() / element) {
          HR_RETURN_IF_ERROR(CheckFiles());
          return DataLoss("Tensor ", key, " has a slice of ", stored,
                          " elements, more than the files can hold");
        }
        // Where the piece is one run of the target, read it in place.
        int64_t runs = 0, place = 0;
        if (common == stored) {
          ForEachCommonRun(box, target, [&](int64_t, int64_t to, int64_t) {
            if (runs++ == 0) place = to;
          });
        }
        if (runs == 1) {
          return ReadPart(key, tensor, part,
                          out.subspan(place * element, stored * element));
        }
        piece.resize(stored * element);
        HR_RETURN_IF_ERROR(ReadPart(key, tensor, part, absl::MakeSpan(piece)));
        ForEachCommonRun(
            box, target, [&](int64_t from, int64_t to, int64_t count) {
              std::memcpy(out.data() + to * element,
                          piece.data() + from * element, count * element);
            });
        return OkStatus();
      }));
  // A bool that is neither 0 nor 1 is undefined to the compiler; files may hold
  // any byte.
  if (tensor.dtype == tensorflow::DT_BOOL) MakeBools(out.data(), out.size());
  return OkStatus();
}

StatusOr<std::vector<std::string>> CheckpointReader::ReadStrings(
    StringView key) const {
  HR_ASSIGN_OR_RETURN(const CheckpointTensor tensor, Lookup(key));
  HR_ASSIGN_OR_RETURN(const TensorSlice box,
                      TensorSlice::Whole(static_cast<int>(tensor.dims.size()))
                          .Resolve(tensor.dims));
  return ReadStringsBox(key, tensor, box);
}

StatusOr<std::vector<std::string>> CheckpointReader::ReadStringsSlice(
    StringView key, const TensorSlice& slice) const {
  HR_ASSIGN_OR_RETURN(const CheckpointTensor tensor, Lookup(key));
  HR_ASSIGN_OR_RETURN(const TensorSlice box, slice.Resolve(tensor.dims));
  return ReadStringsBox(key, tensor, box);
}

StatusOr<std::vector<std::string>> CheckpointReader::ReadStringsBox(
    StringView key, const CheckpointTensor& tensor,
    const TensorSlice& target) const {
  HR_RETURN_IF_ERROR(CheckDtype(key, tensor, /*strings=*/true));
  HR_ASSIGN_OR_RETURN(const int64_t wanted, CountElements(SliceDims(target)));
  if (static_cast<uint64_t>(wanted) > MostBytes()) {
    HR_RETURN_IF_ERROR(CheckFiles());
    return DataLoss("Tensor ", key, " has ", wanted,
                    " strings, more than the files can hold");
  }
  std::vector<std::string> out;
  HR_RETURN_IF_ERROR(ForEachPart(
      key, tensor, target,
      [&](int part, const TensorSlice& box, int64_t common) -> Status {
        HR_ASSIGN_OR_RETURN(std::vector<std::string> piece,
                            ReadStringsPart(key, tensor, part));
        if (common == wanted && piece.size() == static_cast<size_t>(wanted)) {
          out = std::move(piece);
          return OkStatus();
        }
        out.resize(wanted);
        ForEachCommonRun(
            box, target, [&](int64_t from, int64_t to, int64_t count) {
              std::move(piece.begin() + from, piece.begin() + from + count,
                        out.begin() + to);
            });
        return OkStatus();
      }));
  return out;
}

}  // namespace headrace
