// What tests of datasets share: making them by their ops, and walking.
#pragma once

#include <string>
#include <vector>

#include "data/dataset_op.h"
#include "data/iterate/iterator_resource.h"
#include "gtest/gtest.h"
#include "op/emitter.h"

namespace headrace {

// A dataset in the making: p("Range...", {...}) adds an op and is the dataset.
class Pipeline {
 public:
  // Elements are int64 scalars unless told otherwise.
  Pipeline& Range(int64_t n);
  Pipeline& Slices(Tensor t);
  // An op whose first input is the dataset so far.
  Pipeline& Then(StringView op, std::vector<Tensor> inputs = {},
                 AttrMap attrs = {});
  Pipeline& Batch(int64_t n);
  Pipeline& Count(StringView op, int64_t n);  // Take, Skip, Repeat, Prefetch
  Pipeline& Shuffle(int64_t buffer, int64_t seed);
  Pipeline& Map(StringView op = "MapDataset");          // x + x
  Pipeline& FlatMap(StringView op = "FlatMapDataset");  // x, x + 3, x + 6
  // The shape of elements from here on.
  Pipeline& Shaped(Shape s);
  DatasetPtr Finish();

 private:
  AttrMap Spec(AttrMap attrs) const;

  Tensor dataset_;
  DType type_ = DType::kInt64;
  Shape shape_;
};

// A function of one int64 scalar: its sum with itself, or a dataset.
FuncRef Doubling();
FuncRef Climbing();

struct Steps {
  std::vector<std::string> elements;  // as bytes
  Status status;                      // not OK: the error that ended it
};
// Up to `most` elements.
Steps Go(Iteration& walk, int most = 1000);
std::shared_ptr<Iteration> Begin(const DatasetPtr& dataset);
// Restores a state of another walk, after `at` steps, and goes to the end: the
// same as without that.
void ExpectResumes(const DatasetPtr& dataset, int at);

}  // namespace headrace
