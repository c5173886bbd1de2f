// Iterators as resources.
#include "data/iterate/test_walk.h"

namespace headrace {
namespace {

ElementSpec Numbers() { return {{DType::kInt64}, {Shape()}}; }

TEST(Iterators, BeginAgain) {
  IteratorResource iterator(Numbers());
  Element e;
  bool end = false;
  EXPECT_EQ(iterator.Next(&e, &end).code(),
            absl::StatusCode::kFailedPrecondition);
  const DatasetPtr range = Pipeline().Range(1).Finish();
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(iterator.Begin(range, {}).ok());
    end = false;
    ASSERT_TRUE(iterator.Next(&e, &end).ok());
    EXPECT_FALSE(end);
    ASSERT_TRUE(iterator.Next(&e, &end).ok());
    EXPECT_TRUE(end);
  }
}

TEST(Iterators, RefuseOtherElements) {
  IteratorResource iterator(Numbers());
  EXPECT_FALSE(
      iterator.Begin(Pipeline().Slices(Tensor::Vector<float>({1})).Finish(), {})
          .ok());
}

TEST(Iterators, AFailedRestoreLeavesThemWhereTheyWere) {
  IteratorResource iterator(Numbers());
  ASSERT_TRUE(iterator.Begin(Pipeline().Range(3).Finish(), {}).ok());
  Element e;
  bool end = false;
  ASSERT_TRUE(iterator.Next(&e, &end).ok());
  EXPECT_FALSE(iterator.Restore(Tensor::Scalar<int64_t>(1)).ok());
  ASSERT_TRUE(iterator.Next(&e, &end).ok());
  EXPECT_EQ(e[0].scalar<int64_t>(), 1);
}

TEST(Iterators, SavedAndRestored) {
  IteratorResource iterator(Numbers());
  ASSERT_TRUE(iterator.Begin(Pipeline().Range(3).Finish(), {}).ok());
  Element e;
  bool end = false;
  ASSERT_TRUE(iterator.Next(&e, &end).ok());
  const Tensor state = *iterator.Save();
  ASSERT_TRUE(iterator.Next(&e, &end).ok());
  ASSERT_TRUE(iterator.Restore(state).ok());
  ASSERT_TRUE(iterator.Next(&e, &end).ok());
  EXPECT_EQ(e[0].scalar<int64_t>(), 1);
}

}  // namespace
}  // namespace headrace
