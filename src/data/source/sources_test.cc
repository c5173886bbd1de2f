// What begins a pipeline.
#include "data/iterate/test_walk.h"

namespace headrace {
namespace {

TEST(Sources, RangesAndRows) {
  const DatasetPtr range = Pipeline().Range(3).Finish();
  EXPECT_EQ(range->Cardinality(), 3);
  EXPECT_EQ(Go(*Begin(range)).elements.size(), 3u);
  const DatasetPtr rows =
      Pipeline().Slices(Tensor::Vector<float>({1, 2, 3, 4})).Finish();
  EXPECT_EQ(Go(*Begin(rows)).elements.size(), 4u);
  EXPECT_EQ(Go(*Begin(Pipeline().Range(0).Finish())).elements.size(), 0u);
}

TEST(Sources, GoOnWhereTheyWere) {
  for (int at = 0; at < 5; ++at) {
    ExpectResumes(Pipeline().Range(4).Finish(), at);
    ExpectResumes(
        Pipeline().Slices(Tensor::Vector<std::string>({"a", "b"})).Finish(),
        at);
  }
}

TEST(Sources, NextAfterTheEndIsTheEnd) {
  auto walk = Begin(Pipeline().Range(2).Finish());
  EXPECT_EQ(Go(*walk).elements.size(), 2u);
  EXPECT_EQ(Go(*walk).elements.size(), 0u);
}

TEST(Sources, ShufflesOfOneDatasetDiffer) {
  const DatasetPtr d = Pipeline().Range(50).Shuffle(50, 7).Finish();
  EXPECT_NE(Go(*Begin(d)).elements, Go(*Begin(d)).elements);
}

}  // namespace
}  // namespace headrace
