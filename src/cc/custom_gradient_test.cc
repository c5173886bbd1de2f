// Functions with gradients of their own.
#include <cmath>
#include <stdexcept>

#include "gtest/gtest.h"
#include "headrace/headrace.h"

namespace tf = headrace::tf;

namespace {

using List = std::vector<tf::Tensor>;

// log(1 + e^x), whose plain gradient is NaN for large x.
const auto& Log1pExp() {
  static const auto* const f = new tf::TypedCustomGradient<1>(
      [](const List& x) { return tf::Log(tf::Exp(x[0]) + 1.0); },
      [](const tf::Tensor& g, const List& x) {
        return List{g * (1.0 - 1.0 / (tf::Exp(x[0]) + 1.0))};
      });
  return *f;
}

// Its first and second derivative.
List Derivatives(const tf::Tensor& x) {
  tf::GradientTape outer;
  outer.watch(x);
  tf::GradientTape inner;
  inner.watch(x);
  const tf::Tensor first = inner.gradient(Log1pExp()(x), x);
  return {first, outer.gradient(first, x)};
}

TEST(CustomGradient, EagerAndTracedToSecondOrder) {
  const tf::Tensor x(0.5f);
  const double s = 1 / (1 + std::exp(-0.5));
  const tf::Function traced([](const List& in) { return Derivatives(in[0]); });
  for (const List& found : {Derivatives(x), traced({x})}) {
    EXPECT_NEAR(found[0].item<float>(), s, 1e-6);
    EXPECT_NEAR(found[1].item<float>(), s * (1 - s), 1e-6);
  }
  EXPECT_NEAR(Derivatives(tf::Tensor(100.0f))[0].item<float>(), 1, 1e-6);
}

TEST(CustomGradient, OfTracedFunctionsThatOthersDifferentiate) {
  auto inner = tf::function<1>([](auto& x) { return Log1pExp()(x[0]) * 3.0; });
  auto outer = tf::function<1>([&](auto& x) { return inner(x[0] * 2.0); });
  const tf::Tensor x(0.25f);
  const double s = 1 / (1 + std::exp(-0.5));
  tf::GradientTape second;
  second.watch(x);
  tf::GradientTape tape;
  tape.watch(x);
  const tf::Tensor first = tape.gradient(outer(x), x);
  EXPECT_NEAR(first.item<float>(), 6 * s, 1e-5);
  EXPECT_NEAR(second.gradient(first, x).item<float>(), 12 * s * (1 - s), 1e-5);
  // A gradient that is computed in a traced function of a traced function.
  auto slope = tf::function<1>([&](auto& in) {
    tf::GradientTape t;
    t.watch(in[0]);
    return t.gradient(outer(in[0]), in[0]);
  });
  EXPECT_NEAR(slope(x).item<float>(), 6 * s, 1e-5);
}

TEST(CustomGradient, SeveralInputsAndOutputs) {
  const tf::CustomGradient f(
      [](const List& x) {
        return List{x[0] * x[1], x[0] + x[1]};
      },
      [](const tf::GradientCall& c) {
        EXPECT_EQ(c.outputs[1].item<float>(), 5);
        return List{c.gradients[0] * 10.0 + c.gradients[1], tf::Tensor()};
      });
  const tf::Tensor a(2.0f), b(3.0f);
  tf::GradientTape tape(/*persistent=*/true);
  tape.watch(a), tape.watch(b);
  const List y = f({a, b});
  EXPECT_EQ(y[0].item<float>(), 6);
  const tf::Gradients of_first = tape.gradient(y[0], {a, b});
  EXPECT_EQ(of_first[0].dense().item<float>(), 10);
  EXPECT_FALSE(of_first[1].dense());
  EXPECT_EQ(tape.gradient(y[1], a).item<float>(), 1);
  // The straight-through estimator.
  auto rounded = tf::custom_gradient<1>(
      [](auto& x) { return tf::Round(x[0]); },
      [](const tf::Tensor& g, auto&) { return List{g}; });
  EXPECT_EQ(tape.gradient(rounded(a * 1.3), a).item<float>(), 1.3f);
}

TEST(CustomGradient, RefusesWhatHasNoGradient) {
  const tf::Variable v(tf::Tensor(2.0f));
  const tf::CustomGradient reads(
      [&](const List& x) { return List{x[0] * v}; },
      [](const tf::GradientCall& c) { return c.gradients; });
  EXPECT_THROW(reads({tf::Tensor(1.0f)}), tf::Error);
  const tf::CustomGradient wrong(
      [](const List& x) { return x; },
      [](const tf::GradientCall&) { return List{}; });
  const tf::CustomGradient throws([](const List& x) { return x; },
                                  [](const tf::GradientCall&) -> List {
                                    throw std::runtime_error("mine");
                                  });
  const tf::Tensor x(1.0f);
  for (const auto* f : {&wrong, &throws}) {
    tf::GradientTape tape;
    tape.watch(x);
    const tf::Tensor y = (*f)({x})[0];
    EXPECT_THROW(tape.gradient(y, x), tf::Error);
  }
  EXPECT_THROW(tf::CustomGradient(nullptr, nullptr), tf::Error);
}

}  // namespace
