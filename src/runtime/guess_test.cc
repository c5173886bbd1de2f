// What a plan could not check while it was made is checked when it runs.
#include "eager/eager_emitter.h"
#include "graph/test_function.h"
#include "op/registry.h"
#include "runtime/executable.h"

namespace headrace {
namespace {

Status RunOnce(Executable& e, std::vector<Tensor> in,
               std::vector<Tensor>* out) {
  return e.Run({}, absl::MakeSpan(in), out);
}

Tensor Ones(Shape shape) {
  Tensor t = *Tensor::Allocate(DType::kFloat, shape);
  std::fill_n(t.data<float>(), t.num_elements(), 1.0f);
  return t;
}

const Shape kUnknown = Shape::UnknownRank();

TEST(Guess, KernelsThatMakeTheirOutputsSeeCheckedShapes) {
  FunctionPtr f = Traced("guessed", {{DType::kFloat, kUnknown}},
                         [](OpScope& s, const Values& x) {
                           return std::vector<Value>{s("Unique", {x[0]})};
                         });
  auto e = Executable::Make(*f, nullptr);
  ASSERT_TRUE(e.ok()) << e.status();
  std::vector<Tensor> out;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(RunOnce(**e, {Ones({2, 2})}, &out).code(),
              absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(RunOnce(**e, {Ones({})}, &out).code(),
              absl::StatusCode::kInvalidArgument);
    ASSERT_TRUE(RunOnce(**e, {Ones({3})}, &out).ok());
    EXPECT_EQ(out[0].shape(), Shape({1}));
  }
}

TEST(Guess, PartitionsFitTheirData) {
  FunctionPtr f =
      Traced("guessed", {{DType::kFloat, {-1}}, {DType::kInt32, {-1}}},
             [](OpScope& s, const Values& x) {
               ValueList parts = s.All("DynamicPartition", {x[0], x[1]},
                                       {{"num_partitions", 2}});
               return std::vector<Value>(parts.begin(), parts.end());
             });
  auto e = Executable::Make(*f, nullptr);
  ASSERT_TRUE(e.ok()) << e.status();
  std::vector<Tensor> out;
  std::vector<int32_t> many(2000);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(
        RunOnce(**e, {Ones({3}), Tensor::Vector<int32_t>(many)}, &out).code(),
        absl::StatusCode::kInvalidArgument);
  }
}

// The shape of a product that cannot be made was claimed, and a chain follows.
TEST(Guess, NothingIsFusedWithWhatTheRuleRefuses) {
  FunctionPtr f =
      Traced("guessed", {{DType::kFloat, {-1, -1}}, {DType::kFloat, {-1, -1}}},
             [](OpScope& s, const Values& x) {
               Value y = s("MatMul", {x[0], x[1]});
               SetShape(y, {2, 5});
               Value z = s("Relu", {y});
               return std::vector<Value>{s("Neg", {z})};
             });
  auto e = Executable::Make(*f, nullptr);
  ASSERT_TRUE(e.ok()) << e.status();
  std::vector<Tensor> out;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(RunOnce(**e, {Ones({2, 3}), Ones({4, 5})}, &out).code(),
              absl::StatusCode::kInvalidArgument);
  }
  ASSERT_TRUE(RunOnce(**e, {Ones({2, 3}), Ones({3, 5})}, &out).ok());
  EXPECT_EQ(out[0].data<float>()[9], -3);
}

// A call node as a graph from outside may have it, past the shape rule.
StatusOr<Node*> AddCall(Graph* g, const FunctionPtr& f, const Edge& in,
                        DType result) {
  HR_ASSIGN_OR_RETURN(const OpDef* def, LookUpOp("PartitionedCall"));
  HR_ASSIGN_OR_RETURN(ResolvedOpPtr op,
                      ResolveOp(*def, {in.node->output_type(in.index)},
                                {{"f", FuncRef{f->name, nullptr}},
                                 {"Tout", std::vector<DType>{result}}}));
  return g->AddNode("call", op, std::vector<Edge>{in});
}

TEST(Guess, CallsThatLieAboutTypesAreRefused) {
  FunctionPtr identity = Traced(
      "guessed", {{DType::kInt64, kUnknown}},
      [](OpScope& s, const Values& x) { return std::vector<Value>{x[0]}; });
  for (auto [in, out] : {std::pair{DType::kInt64, DType::kString},
                         std::pair{DType::kFloat, DType::kInt64}}) {
    auto g = std::make_shared<Graph>();
    GraphBuilder builder(g, GraphBuilder::Kind::kPlain);
    Value x = *builder.AddPlaceholder("x", in, kUnknown, nullptr);
    StatusOr<Node*> call = AddCall(g.get(), identity, EdgeOf(x), out);
    ASSERT_TRUE(call.ok()) << call.status();
    auto e = Executable::Make(*g, {EdgeOf(x)}, {{*call, 0}}, {}, nullptr);
    EXPECT_EQ(e.status().code(), absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace headrace
