// Variables in parts, and who says into how many.
#include <algorithm>

#include "cc/compose.h"
#include "cc/servers.h"
#include "train/whole_node.h"

namespace headrace::tf::distribute {

using internal::Access;
using internal::Op;
using internal::OpAll;
using internal::Throw;

namespace {

// An element of strings, whose sizes nobody knows.
constexpr int64_t kStringBytes = 16;

void CheckPositive(const char* name, int64_t value) {
  if (value >= 1) return;
  Throw(ErrorCode::kInvalidArgument,
        absl::StrCat("Argument `", name,
                     "` must be positive. Received: ", value));
}

int64_t BytesOfElement(DType dtype) {
  return dtype == DType::kString
             ? kStringBytes
             : static_cast<int64_t>(DTypeSize(internal::Core(dtype)));
}

std::vector<int64_t> PartsAlongFirst(const TensorShape& shape, int64_t count) {
  std::vector<int64_t> parts(shape.dims.size(), 1);
  if (!parts.empty()) {
    parts[0] = std::max<int64_t>(1, std::min(count, shape.dims[0]));
  }
  return parts;
}

TrackablePtr NodeOfWhole(const std::vector<Variable>& parts) {
  std::vector<TrackablePtr> nodes;
  for (const Variable& v : parts) nodes.push_back(Access::NodeOf(v));
  return internal::Check(WholeNode::Of(std::move(nodes)));
}

int64_t BytesOfRow(const TensorShape& shape, DType dtype) {
  int64_t bytes = BytesOfElement(dtype);
  for (size_t i = 1; i < shape.dims.size(); ++i) bytes *= shape.dims[i];
  return bytes;
}

}  // namespace

Partitioner partitioners::FixedShards(int64_t num_shards) {
  CheckPositive("num_shards", num_shards);
  return [=](const TensorShape& shape, DType) {
    return PartsAlongFirst(shape, num_shards);
  };
}

Partitioner partitioners::MinSize(int64_t min_shard_bytes, int64_t max_shards) {
  CheckPositive("min_shard_bytes", min_shard_bytes);
  CheckPositive("max_shards", max_shards);
  return [=](const TensorShape& shape, DType dtype) {
    const int64_t bytes =
        shape.dims.empty() ? 0 : BytesOfRow(shape, dtype) * shape.dims[0];
    const int64_t count =
        bytes / min_shard_bytes + (bytes % min_shard_bytes != 0);
    return PartsAlongFirst(shape, std::min(count, max_shards));
  };
}

Partitioner partitioners::MaxSize(int64_t max_shard_bytes, int64_t max_shards) {
  CheckPositive("max_shard_bytes", max_shard_bytes);
  if (max_shards != 0) CheckPositive("max_shards", max_shards);
  return [=](const TensorShape& shape, DType dtype) {
    if (shape.dims.empty()) return std::vector<int64_t>();
    const int64_t row = std::max<int64_t>(1, BytesOfRow(shape, dtype));
    const int64_t rows = std::max<int64_t>(1, max_shard_bytes / row);
    const int64_t count = shape.dims[0] / rows + (shape.dims[0] % rows != 0);
    return PartsAlongFirst(shape,
                           max_shards ? std::min(count, max_shards) : count);
  };
}

// ------------------------------------------------------------------- parts

ShardedVariable ParameterServerStrategy::MakeSharded(const Tensor& initial,
                                                     const std::string& name,
                                                     bool trainable) const {
  const TensorShape shape = initial.shape();
  if (initial.is_symbolic() || shape.dims.empty()) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("a variable in parts, ", name,
                       ", begins with a tensor that has rows and elements"));
  }
  const Partitioner& partitioner = servers_->options().variable_partitioner;
  std::vector<int64_t> counts(shape.dims.size(), 1);
  if (partitioner) counts = partitioner(shape, initial.dtype());
  const bool along_first = !counts.empty() && counts[0] >= 1 &&
                           std::all_of(counts.begin() + 1, counts.end(),
                                       [](int64_t n) { return n == 1; });
  if (!along_first) {
    Throw(ErrorCode::kInvalidArgument,
          "variable_partitioner must give a number of parts for the first axis "
          "and 1 for the others");
  }
  // The first parts have a row more where they are not all alike.
  const int64_t count =
      std::max<int64_t>(1, std::min(counts[0], shape.dims[0]));
  const internal::ServersScope scope(servers_);
  std::vector<Variable> parts;
  int64_t begin = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t rows =
        shape.dims[0] / count + (i < shape.dims[0] % count ? 1 : 0);
    std::vector<int64_t> from(shape.dims.size(), 0),
        size(shape.dims.size(), -1);
    from[0] = begin;
    size[0] = rows;
    begin += rows;
    const Tensor value =
        count == 1 ? initial
                   : Op("Slice",
                        {initial, internal::Ints(from), internal::Ints(size)});
    parts.emplace_back(
        value, count == 1 ? name : absl::StrCat(name, "/part_", i), trainable);
  }
  return ShardedVariable(std::move(parts));
}

ShardedVariable::ShardedVariable(std::vector<Variable> parts)
    : Module(NodeOfWhole(parts)), parts_(std::move(parts)) {
  for (size_t i = 0; i < parts_.size(); ++i) {
    Access::Keep(*this, std::to_string(i), parts_[i]);
    sizes_.push_back(parts_[i].shape().dims[0]);
  }
}

DType ShardedVariable::dtype() const { return parts_[0].dtype(); }

TensorShape ShardedVariable::shape() const {
  TensorShape whole = parts_[0].shape();
  whole.dims[0] = 0;
  for (const int64_t n : sizes_) whole.dims[0] += n;
  return whole;
}

Tensor ShardedVariable::value() const {
  if (parts_.size() == 1) return parts_[0].value();
  std::vector<Tensor> all;
  for (const Variable& v : parts_) all.push_back(v.value());
  all.push_back(internal::Int(0));
  return Op("ConcatV2", all, {{"N", static_cast<int64_t>(parts_.size())}});
}

Tensor ShardedVariable::Lookup(const Tensor& indices) const {
  if (indices.dtype() != DType::kInt32 && indices.dtype() != DType::kInt64) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("indices of rows are int32 or int64, and these are ",
                       DTypeName(internal::Core(indices.dtype()))));
  }
  if (parts_.size() == 1) return internal::GatherRows(parts_[0], indices);
  const Tensor flat = internal::Reshape(indices, {-1});
  // Rows before 0 are the first part's, and those behind the end the last
  // one's, whose servers tell of the error.
  Tensor which = Op("ZerosLike", {internal::Cast(flat, DType::kInt32)});
  Tensor start = Op("ZerosLike", {flat});
  int64_t begin = 0;
  for (size_t i = 0; i + 1 < parts_.size(); ++i) {
    begin += sizes_[i];
    const Tensor limit =
        internal::Number(flat.dtype(), static_cast<double>(begin));
    const Tensor behind = Op("GreaterEqual", {flat, limit});
    which = which + internal::Cast(behind, DType::kInt32);
    start = start +
            internal::Cast(behind, flat.dtype()) *
                internal::Number(flat.dtype(), static_cast<double>(sizes_[i]));
  }
  const auto count = static_cast<int64_t>(parts_.size());
  const AttrMap divided = {{"num_partitions", count}};
  const std::vector<Tensor> rows =
      OpAll("DynamicPartition", {flat - start, which}, divided);
  const Tensor places =
      Op("Range", {internal::Int(0), Op("Size", {flat}), internal::Int(1)});
  std::vector<Tensor> given =
      OpAll("DynamicPartition", {places, which}, divided);
  for (size_t i = 0; i < parts_.size(); ++i) {
    given.push_back(internal::GatherRows(parts_[i], rows[i]));
  }
  const Tensor found = Op("DynamicStitch", given, {{"N", count}});
  TensorShape inner = parts_[0].shape();
  inner.dims.erase(inner.dims.begin());
  const Tensor shape = Op("ConcatV2",
                          {internal::ShapeOf(indices),
                           internal::Ints(inner.dims), internal::Int(0)},
                          {{"N", int64_t{2}}});
  return Op("Reshape", {found, shape});
}

std::vector<Tensor> ShardedVariable::RowsOf(const Tensor& whole) const {
  if (whole.dtype() != dtype() || whole.shape().dims != shape().dims) {
    Throw(
        ErrorCode::kInvalidArgument,
        absl::StrCat(
            "a variable in parts takes ", DTypeName(internal::Core(dtype())),
            " of its own shape, of ", shape().dims[0], " rows, and was given ",
            DTypeName(internal::Core(whole.dtype())), " of another one"));
  }
  if (parts_.size() == 1) return {whole};
  return OpAll(
      "SplitV",
      {whole, internal::Constant(headrace::Tensor::Vector<int64_t>(sizes_)),
       internal::Int(0)},
      {{"num_split", static_cast<int64_t>(parts_.size())}});
}

void ShardedVariable::assign(const Tensor& value) const {
  const std::vector<Tensor> rows = RowsOf(value);
  for (size_t i = 0; i < parts_.size(); ++i) parts_[i].assign(rows[i]);
}
void ShardedVariable::assign_add(const Tensor& delta) const {
  const std::vector<Tensor> rows = RowsOf(delta);
  for (size_t i = 0; i < parts_.size(); ++i) parts_[i].assign_add(rows[i]);
}
void ShardedVariable::assign_sub(const Tensor& delta) const {
  const std::vector<Tensor> rows = RowsOf(delta);
  for (size_t i = 0; i < parts_.size(); ++i) parts_[i].assign_sub(rows[i]);
}

}  // namespace headrace::tf::distribute
