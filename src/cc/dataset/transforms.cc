// Datasets of one dataset, without functions.
#include <limits>

#include "cc/dataset/state.h"
#include "cc/seeds.h"

namespace headrace::tf::data {

using internal::AttrsOf;
using internal::Bool;
using internal::Int64;
using internal::Op;
using internal::Throw;

namespace {

void PutFirst(int64_t size, TensorShape* shape) {
  if (shape->known_rank) shape->dims.insert(shape->dims.begin(), size);
}

ElementSpec Batched(ElementSpec spec, int64_t size) {
  for (TensorShape& s : spec.shapes) PutFirst(size, &s);
  return spec;
}

}  // namespace

// A dataset of one, of the same kind of elements.
Dataset Dataset::Like(const char* op, const std::vector<Tensor>& arguments,
                      std::shared_ptr<const void> held) const {
  std::vector<Tensor> inputs = {variant()};
  inputs.insert(inputs.end(), arguments.begin(), arguments.end());
  return State::Make({Op(op, inputs, AttrsOf(spec())),
                      spec(),
                      state_->inner,
                      {state_, std::move(held)}});
}

Dataset Dataset::Batch(int64_t batch_size, bool drop_remainder,
                       int64_t num_parallel_calls) const {
  if (num_parallel_calls == 0) {
    return BatchOf(Int64(batch_size), drop_remainder);
  }
  // Only a full batch's size is known beforehand.
  const ElementSpec out =
      Batched(spec(), drop_remainder && batch_size > 0 ? batch_size : -1);
  return State::Make({Op("ParallelBatchDataset",
                         {variant(), Int64(batch_size),
                          Int64(num_parallel_calls), Bool(drop_remainder)},
                         AttrsOf(out)),
                      out,
                      state_->inner,
                      {state_}});
}

namespace {

// The size of batches that all are full, else -1.
int64_t FullSize(const Tensor& size, bool drop_remainder) {
  if (!drop_remainder || size.is_symbolic()) return -1;
  const int64_t n = size.item<int64_t>();
  return n > 0 ? n : -1;
}

}  // namespace

Dataset Dataset::BatchOf(const Tensor& size, bool drop_remainder) const {
  const ElementSpec out = Batched(spec(), FullSize(size, drop_remainder));
  return State::Make({Op("BatchDatasetV2",
                         {variant(), size, Bool(drop_remainder)}, AttrsOf(out)),
                      out,
                      state_->inner,
                      {state_}});
}

Dataset Dataset::PaddedBatch(int64_t batch_size,
                             const std::vector<TensorShape>& padded_shapes,
                             const std::vector<Tensor>& padding_values,
                             bool drop_remainder) const {
  return PaddedBatchOf(Int64(batch_size), padded_shapes, padding_values,
                       drop_remainder);
}

Dataset Dataset::PaddedBatchOf(const Tensor& size,
                               const std::vector<TensorShape>& padded_shapes,
                               const std::vector<Tensor>& padding_values,
                               bool drop_remainder) const {
  ElementSpec out = spec();
  const size_t width = out.dtypes.size();
  if ((!padded_shapes.empty() && padded_shapes.size() != width) ||
      (!padding_values.empty() && padding_values.size() != width)) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("PaddedBatch: ", padded_shapes.size(), " shapes and ",
                       padding_values.size(), " values for elements of ", width,
                       " components"));
  }
  if (!padded_shapes.empty()) out.shapes = padded_shapes;
  std::vector<Tensor> inputs = {variant(), size};
  for (const TensorShape& s : out.shapes) {
    if (!s.known_rank) {
      Throw(ErrorCode::kInvalidArgument,
            "PaddedBatch: a component has an unknown rank; give padded_shapes");
    }
    inputs.push_back(
        internal::Constant(headrace::Tensor::Vector<int64_t>(s.dims)));
  }
  std::vector<headrace::DType> types;
  for (size_t i = 0; i < width; ++i) {
    const DType d = out.dtypes[i];
    types.push_back(internal::Core(d));
    // Python's defaults: zeros and empty strings.
    inputs.push_back(!padding_values.empty() ? padding_values[i]
                     : d == DType::kString   ? Tensor("")
                                             : internal::Number(d, 0));
  }
  inputs.push_back(Bool(drop_remainder));
  out = Batched(std::move(out), FullSize(size, drop_remainder));
  AttrMap attrs = AttrsOf(out);
  attrs.Erase("output_types");
  attrs.Set("Toutput_types", std::move(types));
  attrs.Set("N", static_cast<int64_t>(width));
  return State::Make(
      {Op("PaddedBatchDatasetV2", inputs, attrs), out, {}, {state_}});
}

namespace {

// What the rows of elements are like.
ElementSpec RowsOf(ElementSpec spec) {
  for (TensorShape& s : spec.shapes) {
    if (!s.known_rank) continue;
    if (s.rank() == 0) {
      Throw(ErrorCode::kInvalidArgument,
            "Unbatching a tensor is only supported for rank >= 1");
    }
    s.dims.erase(s.dims.begin());
  }
  return spec;
}

}  // namespace

Dataset Dataset::Unbatch() const {
  const ElementSpec out = RowsOf(spec());
  return State::Make(
      {Op("UnbatchDataset", {variant()}, AttrsOf(out)), out, {}, {state_}});
}

Dataset Dataset::Rebatch(int64_t batch_size, bool drop_remainder) const {
  const Tensor size = Int64(batch_size);
  const ElementSpec out =
      Batched(RowsOf(spec()), FullSize(size, drop_remainder));
  return State::Make({Op("RebatchDatasetV2",
                         {variant(), size, Bool(drop_remainder)}, AttrsOf(out)),
                      out,
                      {},
                      {state_}});
}

Dataset Dataset::Window(int64_t size, int64_t shift, int64_t stride,
                        bool drop_remainder) const {
  const size_t width = spec().dtypes.size();
  const ElementSpec out = {std::vector<DType>(width, DType::kVariant),
                           // A window's components are datasets, scalars of
                           // variants.
                           std::vector<TensorShape>(width), spec().names};
  std::vector<ElementSpec> inner;
  for (size_t i = 0; i < width; ++i) {
    inner.push_back({{spec().dtypes[i]}, {spec().shapes[i]}});
  }
  // 0 stands for windows that do not overlap, Python's None.
  return State::Make({Op("WindowDataset",
                         {variant(), Int64(size), Int64(shift ? shift : size),
                          Int64(stride), Bool(drop_remainder)},
                         AttrsOf(out)),
                      out,
                      std::move(inner),
                      {state_}});
}

Dataset Dataset::Shuffle(int64_t buffer_size, std::optional<int64_t> seed,
                         bool reshuffle_each_iteration) const {
  const auto [first, second] = internal::OpSeeds(seed);
  const std::vector<Tensor> seeds = internal::OpAll(
      "AnonymousSeedGenerator",
      {Int64(first), Int64(second), Bool(reshuffle_each_iteration)});
  State state{
      Op("ShuffleDatasetV3",
         {variant(), Int64(buffer_size), Int64(first), Int64(second), seeds[0]},
         AttrsOf(spec(),
                 {{"reshuffle_each_iteration", reshuffle_each_iteration}})),
      spec(),
      state_->inner,
      {state_}};
  // The generator's resource goes with its last handle, and walks draw from it.
  state.held.push_back(std::make_shared<const std::vector<Tensor>>(seeds));
  return State::Make(std::move(state));
}

Dataset Dataset::Repeat(int64_t count) const {
  return Like("RepeatDataset", {Int64(count)});
}
Dataset Dataset::Take(int64_t count) const {
  return Like("TakeDataset", {Int64(count)});
}
Dataset Dataset::Skip(int64_t count) const {
  return Like("SkipDataset", {Int64(count)});
}
Dataset Dataset::Shard(int64_t num_shards, int64_t index) const {
  return Like("ShardDataset", {Int64(num_shards), Int64(index)});
}

Dataset Dataset::Enumerate(int64_t start) const {
  // The other dataset ends first.
  return Zip({Range(start, std::numeric_limits<int64_t>::max()), *this});
}

Dataset Dataset::Concatenate(const Dataset& other) const {
  const ElementSpec out = internal::Common(spec(), other.spec());
  return State::Make(
      {Op("ConcatenateDataset", {variant(), other.variant()}, AttrsOf(out)),
       out,
       state_->inner,
       {state_, other.state_}});
}

Dataset Dataset::Unique() const {
  for (const DType d : spec().dtypes) {
    const bool fits =
        d == DType::kInt32 || d == DType::kInt64 || d == DType::kString;
    if (fits && spec().dtypes.size() == 1) continue;
    Throw(ErrorCode::kInvalidArgument,
          "`tf.data.Dataset.unique` does not support elements of type " +
              DTypeName(d) + " or of several components");
  }
  return Like("UniqueDataset", {});
}

Dataset Dataset::IgnoreErrors(bool log_warning) const {
  return State::Make({Op("IgnoreErrorsDataset", {variant()},
                         AttrsOf(spec(), {{"log_warning", log_warning}})),
                      spec(),
                      state_->inner,
                      {state_}});
}

Dataset Dataset::Prefetch(int64_t buffer_size) const {
  return Like("PrefetchDataset", {Int64(buffer_size)});
}

Dataset Dataset::Cache(const std::string& file) const {
  // One memory for all copies of this dataset, which goes with the last of
  // them.
  const auto memory = std::make_shared<const std::vector<Tensor>>(
      internal::OpAll("AnonymousMemoryCache", {}));
  return Like("CacheDatasetV2", {Tensor(file), (*memory)[0]}, memory);
}

}  // namespace headrace::tf::data
