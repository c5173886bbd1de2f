// The states of iterators: the codec, and states that others forged.
#include <limits>

#include "data/iterate/test_walk.h"
#include "data/state.h"
#include "tensor/variant_codec.h"

namespace headrace {
namespace {

std::vector<DatasetPtr> Pipelines() {
  return {
      Pipeline().Range(9).Shuffle(4, 1).Batch(2).Finish(),
      Pipeline().Range(9).Shuffle(4, 1).Count("Repeat", 2).Finish(),
      Pipeline().Range(9).Map().Batch(2).Count("Prefetch", 2).Finish(),
      Pipeline().Range(9).Map("ParallelMapDatasetV2").Finish(),
      Pipeline().Range(4).FlatMap().Count("Take", 7).Finish(),
      Pipeline().Range(4).FlatMap("InterleaveDataset").Finish(),
      Pipeline().Range(4).FlatMap("ParallelInterleaveDatasetV4").Finish(),
      Pipeline().Range(4).Count("Skip", 1).Count("Repeat", 3).Finish(),
      Pipeline().Range(9).Batch(4).Shaped({}).Then("UnbatchDataset").Finish(),
      Pipeline().Range(5).Then("UniqueDataset").Finish(),
      Pipeline()
          .Range(5)
          .Then("CacheDataset", {Tensor::Scalar<std::string>("")})
          .Count("Repeat", 2)
          .Finish(),
  };
}

Tensor StateOf(const DatasetPtr& dataset) {
  auto walk = Begin(dataset);
  Go(*walk, 2);
  return *walk->Save();
}

// The state with entry `k` of variant `i` put in place of what it has; a null
// tensor leaves it out.
Tensor Changed(const Tensor& state, size_t i, size_t k, const Tensor* value) {
  Tensor copy = *Tensor::Allocate(DType::kVariant, state.shape());
  for (int64_t v = 0; v < state.num_elements(); ++v) {
    copy.data<Variant>()[v] = state.data<Variant>()[v];
  }
  auto changed = std::make_shared<IteratorState>(
      *state.data<Variant>()[i].get<IteratorState>());
  if (value) {
    changed->entries[k].second = *value;
  } else {
    changed->entries.erase(changed->entries.begin() + k);
  }
  copy.data<Variant>()[i] = Variant(std::move(changed));
  return copy;
}

void TryState(const DatasetPtr& dataset, const Tensor& state) {
  auto walk = Begin(dataset);
  if (walk->Restore(state).ok()) Go(*walk, 50);
}

TEST(States, BytesAndBack) {
  for (const DatasetPtr& d : Pipelines()) {
    for (int at = 0; at < 8; ++at) ExpectResumes(d, at);
  }
}

TEST(States, EveryMissingKeyIsAnErrorOrNothing) {
  for (const DatasetPtr& d : Pipelines()) {
    const Tensor state = StateOf(d);
    for (int64_t i = 0; i < state.num_elements(); ++i) {
      const auto* one = state.data<Variant>()[i].get<IteratorState>();
      for (size_t k = 0; k < one->entries.size(); ++k) {
        TryState(d, Changed(state, i, k, nullptr));
      }
    }
  }
}

TEST(States, ForgedValuesBreakNothing) {
  const std::vector<Tensor> forged = {
      Tensor::Scalar<int64_t>(-1),
      Tensor::Scalar<int64_t>(1),
      Tensor::Scalar<int64_t>(3),
      Tensor::Scalar<int64_t>(1000),
      Tensor::Scalar<int64_t>(std::numeric_limits<int64_t>::max()),
      Tensor::Scalar<int64_t>(std::numeric_limits<int64_t>::min()),
      Tensor::Scalar<std::string>("text"),
      Tensor::Vector<float>({1, 2}),
      *Tensor::Allocate(DType::kInt64, Shape{0}),
      Tensor::Scalar(Variant()),
  };
  for (const DatasetPtr& d : Pipelines()) {
    const Tensor state = StateOf(d);
    for (int64_t i = 0; i < state.num_elements(); ++i) {
      const auto* one = state.data<Variant>()[i].get<IteratorState>();
      for (size_t k = 0; k < one->entries.size(); ++k) {
        for (const Tensor& t : forged) TryState(d, Changed(state, i, k, &t));
      }
    }
  }
}

TEST(States, EveryCutOfTheBytesIsAnError) {
  const Tensor state = StateOf(Pipelines()[0]);
  const std::vector<std::string> bytes = *VariantsToBytes(state);
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (size_t n = 0; n < bytes[i].size(); ++n) {
      std::vector<std::string> cut = bytes;
      cut[i].resize(n);
      StatusOr<Tensor> read = VariantsFromBytes(cut, state.shape());
      if (read.ok()) {
        EXPECT_FALSE(Begin(Pipelines()[0])->Restore(*read).ok())
            << i << " " << n;
      }
    }
  }
}

TEST(States, OfAnotherDatasetOrNone) {
  const DatasetPtr range = Pipeline().Range(5).Finish();
  const Tensor state = StateOf(Pipelines()[0]);
  EXPECT_FALSE(Begin(range)->Restore(state).ok());
  EXPECT_FALSE(Begin(range)->Restore(Tensor::Vector<float>({1})).ok());
  Tensor empty = *Tensor::Allocate(DType::kVariant, Shape{2});
  EXPECT_FALSE(Begin(range)->Restore(empty).ok());
}

}  // namespace
}  // namespace headrace
