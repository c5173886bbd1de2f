#include "train/sharding.h"

#include <algorithm>
#include <cstring>

#include "base/files/files.h"
#include "formats/checkpoint_writer.h"
#include "tensor/dtype_proto.h"
#include "tensor/variant_codec.h"
#include "train/saver.h"

namespace headrace {
namespace {

// Places [begin, begin + size) of dimension `axis` of a plain tensor.
StatusOr<Tensor> Part(const Tensor& t, int axis, int64_t begin, int64_t size) {
  if (axis == 0) return t.Rows(begin, begin + size);
  Shape shape = t.shape();
  shape.set_dim(axis, size);
  HR_ASSIGN_OR_RETURN(Tensor part, Tensor::Allocate(t.dtype(), shape));
  const int64_t inner =
      t.shape().Product(axis + 1, t.rank()) * DTypeSize(t.dtype());
  const int64_t outer = t.shape().Product(0, axis), all = t.dim(axis);
  for (int64_t i = 0; i < outer; ++i) {
    std::memcpy(static_cast<char*>(part.raw()) + i * size * inner,
                static_cast<const char*>(t.raw()) + (i * all + begin) * inner,
                size * inner);
  }
  return part;
}

int64_t BytesOf(const Tensor& t) {
  if (t.dtype() != DType::kString) return static_cast<int64_t>(t.bytes());
  int64_t bytes = 0;
  // A byte for the length of a short string.
  for (const std::string& s : t.span<std::string>()) bytes += s.size() + 1;
  return bytes;
}

class Packer {
 public:
  explicit Packer(int64_t most) : most_(most) {}

  Status Add(const ShardPiece& given) {
    const Tensor& t = given.tensor;
    const int64_t bytes = BytesOf(t);
    if (bytes <= room() || t.rank() == 0 || !IsPlain(t.dtype())) {
      Put(given, bytes);
      return OkStatus();
    }
    const auto dims = t.shape().dims();
    // Along the longest axis: its places are the smallest pieces, which fill
    // shards best.
    const int axis = static_cast<int>(
        std::max_element(dims.begin(), dims.end()) - dims.begin());
    const int64_t line = bytes / dims[axis];  // of one place of the axis
    // It fits a shard of its own but not the rest of this one: a whole tensor
    // in the next shard is better than a cut.
    if (bytes <= most_ && line > room()) {
      Put(given, bytes);
      return OkStatus();
    }
    for (int64_t begin = 0; begin < dims[axis];) {
      int64_t size = std::min(room() / line, dims[axis] - begin);
      if (size == 0) {
        if (used_ > 0) {
          Next();
          continue;
        }
        size = 1;
      }
      ShardPiece piece{.key = given.key, .whole = t.shape()};
      HR_ASSIGN_OR_RETURN(piece.tensor, Part(t, axis, begin, size));
      piece.slice = TensorSlice::Whole(t.rank());
      if (given.slice) {
        piece.whole = given.whole;
        piece.slice = given.slice;
      }
      TensorSlice::Extent& extent = piece.slice->extents[axis];
      extent = {extent.start + begin, size};
      Put(std::move(piece), size * line);
      begin += size;
    }
    return OkStatus();
  }
  std::vector<Shard> Finish() {
    if (!shards_.back().empty() || shards_.size() == 1) return shards_;
    shards_.pop_back();
    return shards_;
  }

 private:
  int64_t room() const { return std::max<int64_t>(most_ - used_, 0); }
  void Next() {
    shards_.emplace_back();
    used_ = 0;
  }
  void Put(ShardPiece piece, int64_t bytes) {
    if (bytes > room() && used_ > 0) Next();
    shards_.back().push_back(std::move(piece));
    used_ += bytes;
  }

  const int64_t most_;
  int64_t used_ = 0;
  std::vector<Shard> shards_{1};
};

Status AddPiece(CheckpointWriter& writer, const ShardPiece& piece) {
  const Tensor& t = piece.tensor;
  const auto dims = piece.slice ? piece.whole.dims() : t.shape().dims();
  if (t.dtype() == DType::kString) {
    const std::vector<StringView> strings(
        t.data<std::string>(), t.data<std::string>() + t.num_elements());
    return piece.slice
               ? writer.AddStringsSlice(piece.key, dims, *piece.slice, strings)
               : writer.AddStrings(piece.key, dims, strings);
  }
  if (t.dtype() == DType::kVariant && !piece.slice) {
    HR_ASSIGN_OR_RETURN(const auto variants, VariantsToBytes(t));
    return writer.AddVariants(piece.key, dims, variants);
  }
  if (!IsPlain(t.dtype())) {
    return Unimplemented("tensor ", piece.key, " of type ",
                         DTypeName(t.dtype()), " cannot be saved");
  }
  const auto dtype = TypeToProto(t.dtype());
  const auto bytes =
      absl::MakeConstSpan(static_cast<const char*>(t.raw()), t.bytes());
  return piece.slice
             ? writer.AddSlice(piece.key, dtype, dims, *piece.slice, bytes)
             : writer.Add(piece.key, dtype, dims, bytes);
}

Status WriteOne(FileSystem* fs, const std::string& prefix, const Shard& shard,
                const std::string* graph, bool sync) {
  CheckpointWriter::Options options;
  options.sync = sync;
  HR_ASSIGN_OR_RETURN(const auto writer,
                      CheckpointWriter::Create(fs, prefix, options));
  for (const ShardPiece& piece : shard) {
    HR_RETURN_IF_ERROR(AddPiece(*writer, piece));
  }
  if (graph != nullptr && !graph->empty()) {
    const StringView view = *graph;
    HR_RETURN_IF_ERROR(
        writer->AddStrings(kObjectGraphKey, {}, absl::MakeSpan(&view, 1)));
  }
  return writer->Finish();
}

}  // namespace

StatusOr<std::vector<Shard>> ShardsBySize(const Shard& values,
                                          int64_t most_bytes) {
  if (most_bytes <= 0) {
    return InvalidArgument("max_shard_size must be positive, got ", most_bytes);
  }
  Packer packer(most_bytes);
  for (const ShardPiece& value : values) {
    HR_RETURN_IF_ERROR(packer.Add(value));
  }
  return packer.Finish();
}

Status WriteShards(FileSystem* fs, const std::string& prefix,
                   const std::vector<Shard>& shards, const std::string& graph,
                   bool sync) {
  if (shards.size() <= 1) {
    return WriteOne(fs, prefix, shards.empty() ? Shard() : shards[0], &graph,
                    sync);
  }
  const std::string temporary = TemporaryNameFor(prefix);
  std::vector<std::string> parts;
  Status status;
  for (size_t i = 0; i < shards.size() && status.ok(); ++i) {
    parts.push_back(absl::StrCat(temporary, "_part", i));
    // The object graph stands once, in the last part.
    const bool last = i + 1 == shards.size();
    status =
        WriteOne(fs, parts.back(), shards[i], last ? &graph : nullptr, sync);
  }
  if (status.ok()) {
    status = MergeCheckpoints(fs, parts, prefix, /*allow_missing=*/false, sync);
  }
  if (status.ok()) return status;
  for (const std::string& part : parts) {
    // The parts' own names were temporary; what could not be deleted goes with
    // the next save (DeleteAbandonedFiles).
    fs->Delete(CheckpointIndexPath(part)).IgnoreError();
    fs->Delete(CheckpointDataPath(part, 0, 1)).IgnoreError();
  }
  return status;
}

}  // namespace headrace
