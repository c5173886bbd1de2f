// What changes a pipeline: elements, and the names under which places are
// saved.
#include "data/iterate/test_walk.h"
#include "data/state.h"

namespace headrace {
namespace {

std::vector<std::string> Prefixes(const DatasetPtr& dataset) {
  auto walk = Begin(dataset);
  Go(*walk, 1);
  const Tensor state = *walk->Save();
  std::vector<std::string> prefixes;
  for (const Variant& v : state.span<Variant>()) {
    prefixes.push_back(v.get<IteratorState>()->prefix);
  }
  return prefixes;
}

using Names = std::vector<std::string>;

TEST(Transforms, PlacesGoByUpstreamsNames) {
  EXPECT_EQ(
      Prefixes(Pipeline().Range(9).Finish()),
      (Names{"Iterator::Root::Prefetch", "Iterator::Root::Prefetch::Range"}));
  EXPECT_EQ(Prefixes(Pipeline().Range(9).Map().Finish()),
            (Names{"Iterator::Root::ParallelMapV2",
                   "Iterator::Root::ParallelMapV2::Range"}));
  EXPECT_EQ(Prefixes(Pipeline().Range(9).Map().Batch(2).Finish()),
            (Names{"Iterator::Root::MapAndBatch",
                   "Iterator::Root::MapAndBatch::Range"}));
  EXPECT_EQ(
      Prefixes(Pipeline().Range(9).Count("Take", -1).Finish()),
      (Names{"Iterator::Root::Prefetch", "Iterator::Root::Prefetch::Range"}));
  EXPECT_EQ(Prefixes(Pipeline().Range(9).Count("Repeat", 2).Finish()),
            (Names{"Iterator::Root::Prefetch",
                   "Iterator::Root::Prefetch::FiniteRepeat",
                   "Iterator::Root::Prefetch::FiniteRepeat[0]::Range"}));
}

TEST(Transforms, OptionsDecideAboutNames) {
  AttrMap attrs;
  // optimization_options { apply_default_optimizations: false }
  attrs.Set("serialized_options", std::string("\x1a\x02\x08\x00", 4));
  EXPECT_EQ(Prefixes(Pipeline()
                         .Range(9)
                         .Map()
                         .Batch(2)
                         .Then("OptionsDataset", {}, attrs)
                         .Finish()),
            (Names{"Iterator::Root::BatchV2",
                   "Iterator::Root::BatchV2::Map::Range"}));
}

TEST(Transforms, AFusedShuffleDrawsAsOneThatIsNot) {
  AttrMap attrs;
  attrs.Set("serialized_options", std::string("\x1a\x02\x08\x00", 4));
  const auto fused = [] {
    return Pipeline().Range(9).Shuffle(4, 1).Count("Repeat", 3);
  };
  const Steps one = Go(*Begin(fused().Finish()));
  const Steps other =
      Go(*Begin(fused().Then("OptionsDataset", {}, attrs).Finish()));
  EXPECT_EQ(one.elements.size(), 27u);
  EXPECT_EQ(one.elements, other.elements);
}

TEST(Transforms, FusedMapsGiveTheSame) {
  for (int64_t n : {1, 2, 4, 9, 20}) {
    const Steps fused = Go(*Begin(Pipeline().Range(9).Map().Batch(n).Finish()));
    const Steps apart = Go(*Begin(
        Pipeline().Range(9).Map().Count("Prefetch", 1).Batch(n).Finish()));
    EXPECT_EQ(fused.elements, apart.elements) << n;
  }
}

TEST(Transforms, GoOnWhereTheyWere) {
  for (int at = 0; at < 12; ++at) {
    ExpectResumes(Pipeline().Range(30).Map().Batch(4).Finish(), at);
    ExpectResumes(Pipeline().Range(9).Shuffle(3, 2).Batch(2).Finish(), at);
    ExpectResumes(
        Pipeline().Range(5).FlatMap("InterleaveDataset").Batch(2).Finish(), at);
  }
}

}  // namespace
}  // namespace headrace
