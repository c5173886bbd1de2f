#include "autodiff/function_gradient.h"

#include "eager/tape.h"
#include "graph/test_function.h"
#include "op/registry.h"

namespace headrace {
namespace {

float At(const Value& v, int i = 0) { return v.tensor().data<float>()[i]; }

const Shape kScalar;
const DType kF = DType::kFloat;

// d f / d x and d2 f / dx2 of a one-argument scalar function, eagerly called.
void CheckOrders(const FunctionPtr& f, float x, float y, float dy, float ddy) {
  Value vx(Tensor::Scalar<float>(x));
  Tape outer(false, true), inner(false, true);
  outer.Watch(vx);
  outer.Start();
  inner.Watch(vx);
  inner.Start();
  auto out = CallDifferentiably(f, {vx}, nullptr);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_FLOAT_EQ(At((*out)[0]), y);
  inner.Stop();
  auto g = inner.Gradients({(*out)[0]}, {vx}, {});
  ASSERT_TRUE(g.ok()) << g.status();
  ASSERT_TRUE((*g)[0]);
  EXPECT_FLOAT_EQ(At((*g)[0].dense), dy);
  outer.Stop();
  auto gg = outer.Gradients({(*g)[0].dense}, {vx}, {});
  ASSERT_TRUE(gg.ok()) << gg.status();
  ASSERT_TRUE((*gg)[0]);
  EXPECT_FLOAT_EQ(At((*gg)[0].dense), ddy);
}

FunctionPtr Cube() {
  return Traced("cube", {{kF, kScalar}}, [](OpScope& s, const Values& in) {
    return std::vector<Value>{s("Mul", {s("Mul", {in[0], in[0]}), in[0]})};
  });
}

TEST(FunctionGradient, ThroughACall) { CheckOrders(Cube(), 2, 8, 12, 12); }

// x^5 called through a function, differentiated `order` times.
float FifthPower(int order, float x) {
  static const FunctionPtr& f = *new FunctionPtr(
      Traced("fifth", {{kF, kScalar}}, [](OpScope& s, const Values& in) {
        Value square = s("Mul", {in[0], in[0]});
        Value cube = s("Mul", {square, in[0]});
        return std::vector<Value>{s("Mul", {cube, square})};
      }));
  Value at(Tensor::Scalar<float>(x));
  std::vector<std::unique_ptr<Tape>> tapes;
  for (int i = 0; i < order; ++i) {
    tapes.push_back(std::make_unique<Tape>(false, false));
    tapes.back()->Watch(at);
    tapes.back()->Start();
  }
  Value y = (*CallDifferentiably(f, {at}, nullptr))[0];
  for (; !tapes.empty(); tapes.pop_back()) {
    tapes.back()->Stop();
    auto d = tapes.back()->Gradients({y}, {at}, {});
    EXPECT_TRUE(d.ok()) << d.status();
    y = (*d)[0].dense;
  }
  return At(y);
}

TEST(FunctionGradient, HigherOrders) {
  EXPECT_FLOAT_EQ(FifthPower(1, 2), 80);
  EXPECT_FLOAT_EQ(FifthPower(2, 2), 160);
  EXPECT_FLOAT_EQ(FifthPower(3, 2), 240);
  EXPECT_FLOAT_EQ(FifthPower(4, 2), 240);
  EXPECT_FLOAT_EQ(FifthPower(5, 2), 120);
}

TEST(FunctionGradient, ThroughNestedCalls) {
  FunctionPtr cube = Cube();
  FunctionPtr f =
      Traced("outer", {{kF, kScalar}}, [&](OpScope& s, const Values& in) {
        ValueList y = CallFunction(s, cube, {in[0]});
        return std::vector<Value>{s("Mul", {y[0], in[0]})};
      });
  CheckOrders(f, 2, 16, 32, 48);
}

TEST(FunctionGradient, ThroughABranch) {
  FunctionPtr cube = Cube();
  FunctionPtr square =
      Traced("square", {{kF, kScalar}}, [](OpScope& s, const Values& in) {
        return std::vector<Value>{s("Mul", {in[0], in[0]})};
      });
  for (float x : {2.f, -3.f}) {
    FunctionPtr f =
        Traced("if", {{kF, kScalar}}, [&](OpScope& s, const Values& in) {
          Value positive = s("Greater", {in[0], s.Scalar(kF, 0)});
          Value y = s("StatelessIf", {positive, in[0]},
                      {{"then_branch", FuncRef{cube->name, nullptr}},
                       {"else_branch", FuncRef{square->name, nullptr}},
                       {"Tout", std::vector<DType>{kF}}});
          return std::vector<Value>{s("Mul", {y, s.Scalar(kF, 2)})};
        });
    if (x > 0) {
      CheckOrders(f, x, 2 * x * x * x, 6 * x * x, 12 * x);
    } else {
      CheckOrders(f, x, 2 * x * x, 4 * x, 4);
    }
  }
}

FunctionPtr Power3ByLoop() {
  ArgTypes vars = {{DType::kInt32, kScalar}, {kF, kScalar}, {kF, kScalar}};
  FunctionPtr cond = Traced("cond", vars, [](OpScope& s, const Values& in) {
    return std::vector<Value>{s("Less", {in[0], s.Int32(3)})};
  });
  FunctionPtr body = Traced("body", vars, [](OpScope& s, const Values& in) {
    return std::vector<Value>{s("AddV2", {in[0], s.Int32(1)}),
                              s("Mul", {in[1], in[2]}), in[2]};
  });
  return Traced("while", {{kF, kScalar}}, [&](OpScope& s, const Values& in) {
    ValueList out =
        s.All("StatelessWhile", {s.Int32(0), s.Scalar(kF, 1), in[0]},
              {{"cond", FuncRef{cond->name, nullptr}},
               {"body", FuncRef{body->name, nullptr}}});
    return std::vector<Value>{out[1]};
  });
}

TEST(FunctionGradient, ThroughALoop) {
  if (FindOp("TensorListPushBack") == nullptr) GTEST_SKIP();
  CheckOrders(Power3ByLoop(), 2, 8, 12, 12);
}

// Nested tapes inside one traced function.
TEST(FunctionGradient, TapesInsideAFunction) {
  if (FindOp("TensorListPushBack") == nullptr) GTEST_SKIP();
  FunctionPtr loop = Power3ByLoop();
  FunctionPtr f =
      Traced("tapes", {{kF, kScalar}}, [&](OpScope& s, const Values& in) {
        Tape outer(false, true), inner(false, true);
        outer.Watch(in[0]);
        outer.Start();
        inner.Watch(in[0]);
        inner.Start();
        auto y = CallDifferentiably(loop, {in[0]}, nullptr);
        EXPECT_TRUE(y.ok()) << y.status();
        inner.Stop();
        auto g = inner.Gradients({(*y)[0]}, {in[0]}, {});
        EXPECT_TRUE(g.ok()) << g.status();
        outer.Stop();
        auto gg = outer.Gradients({(*g)[0].dense}, {in[0]}, {});
        EXPECT_TRUE(gg.ok()) << gg.status();
        return std::vector<Value>{(*g)[0].dense, (*gg)[0].dense};
      });
  OpScope s;
  ValueList out = CallFunction(s, f, {Value(Tensor::Scalar<float>(2))});
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_FLOAT_EQ(At(out[0]), 12);
  EXPECT_FLOAT_EQ(At(out[1]), 12);
}

}  // namespace
}  // namespace headrace
