#include "runtime/executable.h"

#include "absl/strings/match.h"
#include "base/cancellation.h"
#include "eager/tape.h"
#include "graph/builder.h"
#include "gtest/gtest.h"
#include "op/function_caller.h"
#include "op/op.h"

namespace headrace {
namespace {

using K = GraphBuilder::Kind;

// Says that it gives doubles of x's shape, and hands x on.
Status HandsOn(KernelContext& c) {
  c.set_output(0, c.input(0));
  return OkStatus();
}
HR_OP(TestWrongType)
    .Input("x: float")
    .Output("y: double")
    .Doc("A kernel whose result is not of the type that the op says.")
    .Shape(UnchangedShape)
    .Cpu(ComputeOwn<HandsOn>);

// A function's body being traced.
struct Trace {
  Trace() : builder(std::make_shared<Graph>(), K::kFunction) {}
  Value Arg(DType d, Shape s) {
    Value v = *builder.AddPlaceholder("x", d, s, nullptr);
    args.push_back(v);
    return v;
  }
  FunctionPtr Finish(StringView name, std::vector<Value> results) {
    FunctionPtr f =
        MakeFunction(FunctionLibrary::NewName(name), builder, args, results);
    EXPECT_TRUE(GlobalFunctions().Add(f).ok());
    return f;
  }
  GraphBuilder builder;
  std::vector<Value> args;
};

std::vector<Tensor> RunIt(const FunctionPtr& f, std::vector<Tensor> in,
                          std::string* plan = nullptr) {
  auto e = ExecutableOf(f, nullptr);
  EXPECT_TRUE(e.ok()) << e.status();
  if (plan) *plan = (*e)->DebugString();
  RunServices services;
  services.resources = nullptr;
  std::vector<Tensor> out;
  for (int i = 0; i < 3; ++i) {  // workspaces are used again
    std::vector<Tensor> copy = in;
    Status s = (*e)->Run(services, absl::MakeSpan(copy), &out);
    EXPECT_TRUE(s.ok()) << s;
  }
  return out;
}

TEST(Executable, FusesAChain) {
  Trace t;
  Value x = t.Arg(DType::kFloat, {3});
  OpScope s;
  Value y = x;
  {
    EmitterScope scope(&t.builder);
    for (int i = 0; i < 10; ++i) {
      y = s("AddV2", {s("Mul", {y, s.Scalar(DType::kFloat, 2)}),
                      s.Scalar(DType::kFloat, 1)});
    }
    ASSERT_TRUE(s.ok()) << s.status();
  }
  std::string plan;
  auto out =
      RunIt(t.Finish("chain", {y}), {Tensor::Vector<float>({0, 1, 2})}, &plan);
  EXPECT_EQ(out[0].data<float>()[0], 1023);
  EXPECT_EQ(out[0].data<float>()[2], 2 * 1024 + 1023);
  EXPECT_EQ(std::count(plan.begin(), plan.end(), '\n'), 1) << plan;
}

TEST(Executable, FusesRowsAndColumns) {
  for (int64_t inner : {3, 200}) {
    Trace t;
    Value x = t.Arg(DType::kFloat, {5, inner});
    Value row = t.Arg(DType::kFloat, {inner});
    Value column = t.Arg(DType::kFloat, {5, 1});
    OpScope s;
    Value y;
    {
      EmitterScope scope(&t.builder);
      y = s("Mul", {s("AddV2", {s("Neg", {x}), row}), column});
      ASSERT_TRUE(s.ok()) << s.status();
    }
    Tensor a = *Tensor::Allocate(DType::kFloat, {5, inner});
    Tensor b = *Tensor::Allocate(DType::kFloat, {inner});
    Tensor c = *Tensor::Allocate(DType::kFloat, {5, 1});
    for (int i = 0; i < 5 * inner; ++i) a.data<float>()[i] = i;
    for (int i = 0; i < inner; ++i) b.data<float>()[i] = 3 * i;
    for (int i = 0; i < 5; ++i) c.data<float>()[i] = i - 2;
    std::string plan;
    auto out = RunIt(t.Finish("rows", {y}), {a, b, c}, &plan);
    EXPECT_EQ(std::count(plan.begin(), plan.end(), '\n'), 1) << plan;
    for (int r = 0; r < 5; ++r) {
      for (int i = 0; i < inner; ++i) {
        EXPECT_EQ(out[0].data<float>()[r * inner + i],
                  (3 * i - (r * inner + i)) * (r - 2));
      }
    }
  }
}

TEST(Executable, UnknownShapesAreFoundAtTheRun) {
  Trace t;
  Value x = t.Arg(DType::kFloat, Shape{-1, 2});
  OpScope s;
  Value y;
  {
    EmitterScope scope(&t.builder);
    y = s("AddV2", {s("Exp", {x}), s("Exp", {x})});
  }
  ASSERT_TRUE(s.ok()) << s.status();
  FunctionPtr f = t.Finish("dynamic", {y});
  auto out = RunIt(f, {Tensor::Vector<float>({0, 0}).WithShape({1, 2})});
  EXPECT_EQ(out[0].shape(), Shape({1, 2}));
  EXPECT_EQ(out[0].data<float>()[0], 2);
  auto e = ExecutableOf(f, nullptr);
  std::vector<Tensor> wrong = {Tensor::Vector<float>({0, 0})};
  EXPECT_EQ((*e)->Run({}, absl::MakeSpan(wrong), &out).code(),
            absl::StatusCode::kInvalidArgument);
}

// What stands behind such a kernel would read memory that is not there.
TEST(Executable, ChecksTheTypesOfWhatKernelsMake) {
  for (const Shape& shape : {Shape{2}, Shape{-1}, Shape::UnknownRank()}) {
    Trace t;
    Value x = t.Arg(DType::kFloat, shape);
    OpScope s;
    Value y;
    {
      EmitterScope scope(&t.builder);
      y = s("Neg", {s("TestWrongType", {x})});
    }
    ASSERT_TRUE(s.ok()) << s.status();
    auto e = ExecutableOf(t.Finish("lies", {y}), nullptr);
    ASSERT_TRUE(e.ok()) << e.status();
    std::vector<Tensor> in = {Tensor::Vector<float>({1, 2})}, out;
    Status ran = (*e)->Run({}, absl::MakeSpan(in), &out);
    EXPECT_EQ(ran.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_TRUE(absl::StrContains(ran.message(), "a result of type float"))
        << ran;
  }
}

// Shapes that come again get a plan that knows them.
TEST(Executable, PlansFollowTheShapesThatCome) {
  Trace t;
  Value x = t.Arg(DType::kFloat, Shape{-1, 3});
  OpScope s;
  Value y;
  {
    EmitterScope scope(&t.builder);
    Value rows = s("Shape", {x});
    Value twos = s("Fill", {rows, s.Scalar(DType::kFloat, 2)});
    y = s("AddV2", {s("Exp", {x}), twos});
  }
  ASSERT_TRUE(s.ok()) << s.status();
  FunctionPtr f = t.Finish("shapes", {y});
  auto e = ExecutableOf(f, nullptr);
  ASSERT_TRUE(e.ok()) << e.status();
  for (int round = 0; round < 4; ++round) {
    for (int64_t n : {2, 2, 5, 0, 5, 5, 1, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11}) {
      std::vector<Tensor> in = {*Tensor::Allocate(DType::kFloat, {n, 3})}, out;
      for (float& v : in[0].span<float>()) v = 0;
      Status status = (*e)->Run({}, absl::MakeSpan(in), &out);
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_EQ(out[0].shape(), Shape({n, 3}));
      for (float v : out[0].span<float>()) EXPECT_EQ(v, 3);
    }
  }
}

TEST(Executable, Loops) {
  Trace cond, body, main;
  OpScope s;
  {
    Value i = cond.Arg(DType::kInt32, Shape());
    cond.Arg(DType::kFloat, {4});
    EmitterScope scope(&cond.builder);
    Value go = s("Less", {i, s.Int32(1000)});
    ASSERT_TRUE(s.ok()) << s.status();
    cond.Finish("cond", {go});
  }
  FunctionPtr cond_f = nullptr, body_f = nullptr;
  {
    Value i = body.Arg(DType::kInt32, Shape());
    Value y = body.Arg(DType::kFloat, {4});
    EmitterScope scope(&body.builder);
    Value next = s("AddV2", {i, s.Int32(1)});
    Value z = s("AddV2", {y, s.Scalar(DType::kFloat, 0.5)});
    ASSERT_TRUE(s.ok()) << s.status();
    body_f = body.Finish("body", {next, z});
  }
  {
    Trace c2;
    Value i = c2.Arg(DType::kInt32, Shape());
    c2.Arg(DType::kFloat, {4});
    EmitterScope scope(&c2.builder);
    cond_f = c2.Finish("cond", {s("Less", {i, s.Int32(1000)})});
  }
  Value x = main.Arg(DType::kFloat, {4});
  ValueList outs;
  {
    EmitterScope scope(&main.builder);
    outs = s.All("StatelessWhile", {s.Int32(0), x},
                 {{"cond", FuncRef{cond_f->name, nullptr}},
                  {"body", FuncRef{body_f->name, nullptr}}});
    ASSERT_TRUE(s.ok()) << s.status();
  }
  auto out = RunIt(main.Finish("main", {outs[0], outs[1]}),
                   {Tensor::Vector<float>({0, 1, 2, 3})});
  EXPECT_EQ(out[0].scalar<int32_t>(), 1000);
  EXPECT_EQ(out[1].data<float>()[3], 503);
}

TEST(Executable, StopsWhenCancelled) {
  Trace t;
  Value x = t.Arg(DType::kFloat, {3});
  OpScope s;
  Value y;
  {
    EmitterScope scope(&t.builder);
    y = s("Exp", {x});
  }
  auto e = ExecutableOf(t.Finish("cancelled", {y}), nullptr);
  CancellationToken token;
  token.Cancel();
  const StopScope scope(&token);
  RunServices services;
  std::vector<Tensor> in = {Tensor::Vector<float>({0, 1, 2})}, out;
  EXPECT_EQ((*e)->Run(services, absl::MakeSpan(in), &out).code(),
            absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace headrace
