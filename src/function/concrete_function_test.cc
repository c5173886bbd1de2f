#include "function/concrete_function.h"

#include "eager/tape.h"
#include "gtest/gtest.h"

namespace headrace {
namespace {

using K = GraphBuilder::Kind;

// x * k for a captured k.
std::shared_ptr<ConcreteFunction> Scale(const Value& k) {
  GraphBuilder builder(std::make_shared<Graph>(), K::kFunction);
  Value x = *builder.AddPlaceholder("x", DType::kFloat, Shape(), nullptr);
  OpScope s;
  Value y;
  {
    EmitterScope scope(&builder);
    y = s("Mul", {x, k});
    EXPECT_TRUE(s.ok()) << s.status();
  }
  std::vector<Value> args = {x}, captures;
  for (const GraphBuilder::Capture& c : builder.captures()) {
    args.push_back(c.inner);
    captures.push_back(c.outer);
  }
  FunctionPtr f =
      MakeFunction(FunctionLibrary::NewName("scale"), builder, args, {{y}});
  EXPECT_TRUE(GlobalFunctions().Add(f).ok());
  return std::make_shared<ConcreteFunction>(f, captures, std::vector<Value>());
}

Value Float(float v) { return Value(Tensor::Scalar<float>(v)); }

TEST(ConcreteFunction, RunsWithItsCaptures) {
  auto f = Scale(Float(3));
  ASSERT_EQ(f->captures().size(), 1u);
  ValueList out;
  ASSERT_TRUE(f->Call({Float(2)}, &out).ok());
  EXPECT_EQ(out[0].tensor().scalar<float>(), 6);
  ASSERT_TRUE(f->SetCaptures({Float(5)}).ok());
  ASSERT_TRUE(f->Call({Float(2)}, &out).ok());
  EXPECT_EQ(out[0].tensor().scalar<float>(), 10);
  EXPECT_FALSE(f->SetCaptures({}).ok());
}

TEST(ConcreteFunction, RefusesWrongArguments) {
  auto f = Scale(Float(3));
  ValueList out;
  EXPECT_EQ(f->Call({}, &out).code(), absl::StatusCode::kInvalidArgument);
  Value wrong(Tensor::Scalar<int32_t>(1));
  EXPECT_EQ(f->Call({wrong}, &out).code(), absl::StatusCode::kInvalidArgument);
}

TEST(ConcreteFunction, GradientsReachCaptures) {
  Value k = Float(3), x = Float(2);
  auto f = Scale(k);
  Tape tape(false, true);
  tape.Watch(k);
  tape.Start();
  ValueList out;
  ASSERT_TRUE(f->Call({x}, &out).ok());
  tape.Stop();
  auto g = tape.Gradients(out, {k}, {});
  ASSERT_TRUE(g.ok()) << g.status();
  EXPECT_EQ((*g)[0].dense.tensor().scalar<float>(), 2);
}

TEST(ConcreteFunction, LivesWithTheGraphsThatCallIt) {
  auto f = Scale(Float(3));
  std::string name = f->function()->name;
  GraphBuilder outer(std::make_shared<Graph>(), K::kFunction);
  {
    EmitterScope scope(&outer);
    ValueList out;
    ASSERT_TRUE(f->Call({Float(2)}, &out).ok());
    EXPECT_TRUE(out[0].is_symbolic());
  }
  f.reset();
  EXPECT_NE(GlobalFunctions().Find(name), nullptr);
  { GraphBuilder gone(std::move(outer)); }
  EXPECT_EQ(GlobalFunctions().Find(name), nullptr);
}

}  // namespace
}  // namespace headrace
