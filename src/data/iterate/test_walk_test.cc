// The parts that tests of datasets share.
#include "data/iterate/test_walk.h"

#include "data/element_codec.h"
#include "graph/builder.h"
#include "graph/function.h"
#include "tensor/variant_codec.h"

namespace headrace {
namespace {

using K = GraphBuilder::Kind;

// Keeps the function, as the library holds it weakly.
FuncRef Kept(StringView name, GraphBuilder& builder, Value arg, Value result) {
  static auto* kept = new std::vector<FunctionPtr>;
  kept->push_back(
      MakeFunction(FunctionLibrary::NewName(name), builder, {arg}, {result}));
  EXPECT_TRUE(GlobalFunctions().Add(kept->back()).ok());
  return FuncRef{kept->back()->name, nullptr};
}

AttrMap OfSpec(DType type, const Shape& shape) {
  AttrMap attrs;
  attrs.Set("output_types", std::vector<DType>{type});
  attrs.Set("output_shapes", std::vector<Shape>{shape});
  return attrs;
}

}  // namespace

FuncRef Doubling() {
  GraphBuilder builder(std::make_shared<Graph>(), K::kFunction);
  Value x = *builder.AddPlaceholder("x", DType::kInt64, Shape(), nullptr);
  OpScope s;
  Value y;
  {
    EmitterScope scope(&builder);
    y = s("AddV2", {x, x});
  }
  EXPECT_TRUE(s.ok()) << s.status();
  return Kept("doubling", builder, x, y);
}

FuncRef Climbing() {
  GraphBuilder builder(std::make_shared<Graph>(), K::kFunction);
  Value x = *builder.AddPlaceholder("x", DType::kInt64, Shape(), nullptr);
  OpScope s;
  Value y;
  {
    EmitterScope scope(&builder);
    y = s("RangeDataset",
          {x, s("AddV2", {x, s.Scalar(DType::kInt64, 9)}),
           s.Scalar(DType::kInt64, 3)},
          OfSpec(DType::kInt64, Shape()));
  }
  EXPECT_TRUE(s.ok()) << s.status();
  return Kept("climbing", builder, x, y);
}

AttrMap Pipeline::Spec(AttrMap attrs) const {
  attrs.Set("output_types", std::vector<DType>{type_});
  attrs.Set("output_shapes", std::vector<Shape>{shape_});
  return attrs;
}

Pipeline& Pipeline::Range(int64_t n) {
  OpScope s;
  dataset_ = s("RangeDataset",
               {s.Scalar(DType::kInt64, 0), s.Const(Tensor::Scalar<int64_t>(n)),
                s.Scalar(DType::kInt64, 1)},
               Spec({}))
                 .tensor();
  EXPECT_TRUE(s.ok()) << s.status();
  return *this;
}

Pipeline& Pipeline::Slices(Tensor t) {
  OpScope s;
  type_ = t.dtype();
  shape_ = t.shape().Sub(1, t.rank());
  AttrMap attrs;
  attrs.Set("output_shapes", std::vector<Shape>{shape_});
  dataset_ = s("TensorSliceDataset", {s.Const(std::move(t))}, attrs).tensor();
  EXPECT_TRUE(s.ok()) << s.status();
  return *this;
}

Pipeline& Pipeline::Then(StringView op, std::vector<Tensor> inputs,
                         AttrMap attrs) {
  OpScope s;
  std::vector<Value> values{Value(dataset_)};
  for (Tensor& t : inputs) values.push_back(Value(std::move(t)));
  Value made = s(op, values, Spec(std::move(attrs)));
  EXPECT_TRUE(s.ok()) << op << ": " << s.status();
  if (made) dataset_ = made.tensor();
  return *this;
}

Pipeline& Pipeline::Batch(int64_t n) {
  Shape batched{-1};
  shape_ = batched.Concat(shape_);
  return Then("BatchDatasetV2",
              {Tensor::Scalar<int64_t>(n), Tensor::Scalar<bool>(false)});
}

Pipeline& Pipeline::Count(StringView op, int64_t n) {
  return Then(absl::StrCat(op, "Dataset"), {Tensor::Scalar<int64_t>(n)});
}

Pipeline& Pipeline::Shuffle(int64_t buffer, int64_t seed) {
  return Then("ShuffleDataset", {Tensor::Scalar<int64_t>(buffer),
                                 Tensor::Scalar<int64_t>(87654321),
                                 Tensor::Scalar<int64_t>(seed)});
}

Pipeline& Pipeline::Map(StringView op) {
  AttrMap attrs;
  attrs.Set("f", Doubling());
  attrs.Set("Targuments", std::vector<DType>{});
  std::vector<Tensor> inputs;
  if (op != "MapDataset") inputs.push_back(Tensor::Scalar<int64_t>(2));
  return Then(op, std::move(inputs), std::move(attrs));
}

Pipeline& Pipeline::FlatMap(StringView op) {
  AttrMap attrs;
  attrs.Set("f", Climbing());
  attrs.Set("Targuments", std::vector<DType>{});
  std::vector<Tensor> inputs;
  if (op != "FlatMapDataset") {
    inputs.assign(2, Tensor::Scalar<int64_t>(2));  // the cycle and the block
    if (op == "ParallelInterleaveDatasetV4") {
      inputs.resize(5, Tensor::Scalar<int64_t>(-1));
    }
  }
  return Then(op, std::move(inputs), std::move(attrs));
}

Pipeline& Pipeline::Shaped(Shape s) {
  shape_ = std::move(s);
  return *this;
}

DatasetPtr Pipeline::Finish() {
  StatusOr<DatasetPtr> dataset = DatasetOf(dataset_);
  EXPECT_TRUE(dataset.ok()) << dataset.status();
  return *dataset;
}

std::shared_ptr<Iteration> Begin(const DatasetPtr& dataset) {
  auto walk = Iteration::Begin(dataset, RunServices());
  EXPECT_TRUE(walk.ok()) << walk.status();
  return *walk;
}

Steps Go(Iteration& walk, int most) {
  Steps steps;
  for (int i = 0; i < most; ++i) {
    Element e;
    bool end = false;
    steps.status = walk.Next(&e, &end);
    if (!steps.status.ok() || end) break;
    std::string text;
    EXPECT_TRUE(EncodeElement(e, &text).ok());
    steps.elements.push_back(std::move(text));
  }
  return steps;
}

void ExpectResumes(const DatasetPtr& dataset, int at) {
  auto walk = Begin(dataset);
  Go(*walk, at);
  StatusOr<Tensor> state = walk->Save();
  ASSERT_TRUE(state.ok()) << state.status();
  const Steps rest = Go(*walk);
  auto bytes = VariantsToBytes(*state);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  auto read = VariantsFromBytes(*bytes, state->shape());
  ASSERT_TRUE(read.ok()) << read.status();
  auto again = Begin(dataset);
  const Status restored = again->Restore(*read);
  ASSERT_TRUE(restored.ok()) << restored;
  const Steps resumed = Go(*again);
  EXPECT_EQ(resumed.status, rest.status);
  EXPECT_EQ(resumed.elements, rest.elements) << "after " << at;
}

}  // namespace headrace
