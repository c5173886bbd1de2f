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

// What both may be, component by component.
ElementSpec Common(const ElementSpec& a, const ElementSpec& b) {
  if (a.dtypes != b.dtypes) {
    Throw(ErrorCode::kInvalidArgument,
          "datasets of other dtypes cannot follow one another");
  }
  ElementSpec out = a;
  for (size_t i = 0; i < a.shapes.size(); ++i) {
    TensorShape& s = out.shapes[i];
    const TensorShape& t = b.shapes[i];
    if (!s.known_rank || !t.known_rank || s.rank() != t.rank()) {
      s = TensorShape();
      s.known_rank = false;
      continue;
    }
    for (int k = 0; k < s.rank(); ++k) {
      if (s[k] != t[k]) s.dims[k] = -1;
    }
  }
  return out;
}

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
  const ElementSpec out =
      Batched(spec(), drop_remainder && batch_size > 0 ? batch_size : -1);
  const Tensor size = Int64(batch_size), drop = Bool(drop_remainder);
  const Tensor made =
      num_parallel_calls == 0
          ? Op("BatchDatasetV2", {variant(), size, drop}, AttrsOf(out))
          : Op("ParallelBatchDataset",
               {variant(), size, Int64(num_parallel_calls), drop},
               AttrsOf(out));
  return State::Make({made, out, state_->inner, {state_}});
}

Dataset Dataset::PaddedBatch(int64_t batch_size,
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
  std::vector<Tensor> inputs = {variant(), Int64(batch_size)};
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
    inputs.push_back(!padding_values.empty() ? padding_values[i]
                     : d == DType::kString   ? Tensor("")
                                             : internal::Number(d, 0));
  }
  inputs.push_back(Bool(drop_remainder));
  out = Batched(std::move(out), drop_remainder ? batch_size : -1);
  AttrMap attrs = AttrsOf(out);
  attrs.Erase("output_types");
  attrs.Set("Toutput_types", std::move(types));
  attrs.Set("N", static_cast<int64_t>(width));
  return State::Make(
      {Op("PaddedBatchDatasetV2", inputs, attrs), out, {}, {state_}});
}

Dataset Dataset::Unbatch() const {
  ElementSpec out = spec();
  for (TensorShape& s : out.shapes) {
    if (!s.known_rank) continue;
    if (s.rank() == 0) {
      Throw(ErrorCode::kInvalidArgument,
            "Unbatching a tensor is only supported for rank >= 1");
    }
    s.dims.erase(s.dims.begin());
  }
  return State::Make(
      {Op("UnbatchDataset", {variant()}, AttrsOf(out)), out, {}, {state_}});
}

Dataset Dataset::Window(int64_t size, int64_t shift, int64_t stride,
                        bool drop_remainder) const {
  const size_t width = spec().dtypes.size();
  const ElementSpec out = {std::vector<DType>(width, DType::kVariant),
                           std::vector<TensorShape>(width)};
  std::vector<ElementSpec> inner;
  for (size_t i = 0; i < width; ++i) {
    inner.push_back({{spec().dtypes[i]}, {spec().shapes[i]}});
  }
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
  return Zip({Range(start, std::numeric_limits<int64_t>::max()), *this});
}

Dataset Dataset::Concatenate(const Dataset& other) const {
  const ElementSpec out = Common(spec(), other.spec());
  return State::Make(
      {Op("ConcatenateDataset", {variant(), other.variant()}, AttrsOf(out)),
       out,
       state_->inner,
       {state_, other.state_}});
}

Dataset Dataset::Prefetch(int64_t buffer_size) const {
  return Like("PrefetchDataset", {Int64(buffer_size)});
}

Dataset Dataset::Cache(const std::string& file) const {
  const auto memory = std::make_shared<const std::vector<Tensor>>(
      internal::OpAll("AnonymousMemoryCache", {}));
  return Like("CacheDatasetV2", {Tensor(file), (*memory)[0]}, memory);
}

}  // namespace headrace::tf::data
