#include "autodiff/named_gradient.h"

#include "autodiff/function_gradient.h"
#include "eager/tape.h"
#include "gtest/gtest.h"

namespace headrace {
namespace {

const DType kF = DType::kFloat;

template <typename F>
FunctionPtr Trace(StringView name, F&& body) {
  GraphBuilder builder(std::make_shared<Graph>(),
                       GraphBuilder::Kind::kFunction);
  EmitterScope emit(&builder);
  Value x = *builder.AddPlaceholder("x", kF, Shape(), nullptr);
  OpScope s;
  Value y = body(s, x);
  EXPECT_TRUE(s.ok()) << s.status();
  FunctionPtr f =
      MakeFunction(FunctionLibrary::NewName(name), builder, {x}, {y});
  EXPECT_TRUE(GlobalFunctions().Add(f).ok());
  return f;
}

Value Named(OpScope& s, const Value& x, StringView gradient) {
  return s("Identity", {x}, {{std::string(kGradientAttr), gradient}});
}

// The first two derivatives at x.
StatusOr<std::pair<float, float>> Orders(const FunctionPtr& f, float x) {
  Value at(Tensor::Scalar<float>(x));
  Tape outer(false, false), inner(false, false);
  outer.Watch(at);
  outer.Start();
  inner.Watch(at);
  inner.Start();
  HR_ASSIGN_OR_RETURN(ValueList y, CallDifferentiably(f, {at}, nullptr));
  inner.Stop();
  HR_ASSIGN_OR_RETURN(auto d, inner.Gradients({y[0]}, {at}, {}));
  outer.Stop();
  HR_ASSIGN_OR_RETURN(auto dd, outer.Gradients({d[0].dense}, {at}, {}));
  float second = dd[0] ? dd[0].dense.tensor().scalar<float>() : 0;
  return std::pair(d[0].dense.tensor().scalar<float>(), second);
}

TEST(NamedGradient, ReplacesTheOps) {
  ASSERT_TRUE(
      RegisterNamedGradient("NamedGradientTestCube", [](GradientContext& g,
                                                        const CopiedFrom*) {
        Value x = g.input(0);
        g.set(0, g("Mul", {g.grad(), g("Mul", {x, x})}));
        return g.status();
      }).ok());
  EXPECT_EQ(RegisterNamedGradient("NamedGradientTestCube", nullptr).code(),
            absl::StatusCode::kAlreadyExists);
  FunctionPtr f = Trace("f", [](OpScope& s, Value x) {
    return Named(s, x, "NamedGradientTestCube");
  });
  auto found = Orders(f, 3);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(*found, std::pair(9.f, 6.f));
}

TEST(NamedGradient, FindsWhatTheGraphWasRecordedWith) {
  static Value* recorded = new Value;  // sin(x) of the first graph
  ASSERT_TRUE(
      RegisterNamedGradient(
          "NamedGradientTestRecorded",
          [](GradientContext& g, const CopiedFrom* copied) -> Status {
            if (copied == nullptr) return Internal("not a copy");
            EXPECT_TRUE(copied->IsOf(recorded->graph().get()));
            std::optional<Edge> e = copied->Find(*recorded);
            if (!e) return Internal("no copy of the value");
            g.set(0, g("Mul", {g.grad(), g.output(0).graph()->Output(*e)}));
            return g.status();
          })
          .ok());
  FunctionPtr f = Trace("f", [&](OpScope& s, Value x) {
    *recorded = s("Sin", {x});
    return Named(s, x, "NamedGradientTestRecorded");
  });
  auto found = Orders(f, 0.5f);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_FLOAT_EQ(found->first, std::sin(0.5f));
  EXPECT_FLOAT_EQ(found->second, std::cos(0.5f));
  // Two copies within one function, each with its own values.
  FunctionPtr twice = Trace("twice", [&](OpScope& s, Value x) {
    ValueList a = CallFunction(s, f, {x});
    ValueList b = CallFunction(s, f, {s("Mul", {x, s.Scalar(kF, 2)})});
    return s("AddV2", {a[0], b[0]});
  });
  found = Orders(twice, 0.5f);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_FLOAT_EQ(found->first, std::sin(0.5f) + 2 * std::sin(1.f));
  EXPECT_FLOAT_EQ(found->second, std::cos(0.5f) + 4 * std::cos(1.f));
  *recorded = Value();
}

TEST(NamedGradient, NamesThatNothingHas) {
  FunctionPtr f = Trace("f", [](OpScope& s, Value x) {
    return Named(s, s("Square", {x}), "NamedGradientTestNobody");
  });
  Status missing = Orders(f, 3).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(missing.message().find("No gradient defined for operation'"),
            std::string::npos);
  // Calls in graphs that TensorFlow wrote name gradients that stayed there.
  FunctionPtr square =
      Trace("square", [](OpScope& s, Value x) { return s("Square", {x}); });
  FunctionPtr calls = Trace("calls", [&](OpScope& s, Value x) {
    return s("PartitionedCall", {x},
             {{"f", FuncRef{square->name, nullptr}},
              {"Tout", std::vector<DType>{kF}},
              {std::string(kGradientAttr), "PartitionedCall-17"}});
  });
  auto found = Orders(calls, 3);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(*found, std::pair(6.f, 2.f));
}

}  // namespace
}  // namespace headrace
