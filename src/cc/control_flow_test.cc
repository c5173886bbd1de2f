// Branches and loops, eager and traced.
#include "headrace/control_flow.h"

#include <chrono>

#include "gtest/gtest.h"
#include "headrace/headrace.h"

namespace tf = headrace::tf;

namespace {

using Floats = std::vector<float>;
using Tensors = std::vector<tf::Tensor>;
using Two = std::tuple<tf::Tensor, tf::Tensor>;

struct Point {
  tf::Tensor x, y;
};

// What `f` gives, at once and traced: they must agree.
Tensors Both(const std::function<Tensors(const Tensors&)>& f,
             const Tensors& args) {
  const Tensors now = f(args);
  const Tensors traced = tf::Function(f)(args);
  EXPECT_EQ(now.size(), traced.size());
  for (size_t i = 0; i < now.size(); ++i) {
    EXPECT_EQ(now[i].shape(), traced[i].shape());
    EXPECT_EQ(now[i].ToString(), traced[i].ToString());
  }
  return traced;
}

std::string Refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const tf::Error& e) {
    EXPECT_EQ(e.code(), tf::ErrorCode::kInvalidArgument) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

tf::Tensor Cube(const tf::Tensor& x) { return x * x * x; }

TEST(ControlFlow, CondOverStructures) {
  const auto f = [](const Tensors& in) {
    const Point p = tf::Cond(
        in[0] > 0.0,
        [&] {
          return Point{in[0] * 2.0, in[0]};
        },
        [&] {
          return Point{in[0], in[0] * 3.0};
        });
    return Tensors{p.x, p.y};
  };
  EXPECT_EQ(Both(f, {tf::Tensor(1.0f)})[0].item<float>(), 2);
  EXPECT_EQ(Both(f, {tf::Tensor(-1.0f)})[1].item<float>(), -3);
}

TEST(ControlFlow, CondForItsEffects) {
  const tf::Variable v(tf::Tensor(0.0f));
  const auto f = tf::function([&](const tf::Tensor& x) {
    tf::Cond(
        x > 0.0, [&] { v.assign_add(x); }, [&] { v.assign(x); });
  });
  f(2.0f);
  f(3.0f);
  EXPECT_EQ(v.value().item<float>(), 5);
  f(-1.0f);
  EXPECT_EQ(v.value().item<float>(), -1);
}

TEST(ControlFlow, BranchesMustAgree) {
  const auto f = tf::function([](const tf::Tensor& x) {
    return tf::Cond(
        x > 0.0, [&] { return x; },
        [&] { return tf::Cast(x, tf::DType::kInt32); });
  });
  EXPECT_NE(Refusal([&] { f(1.0f); })
                .find("of cond_true and cond_false, result is "
                      "TensorSpec(shape=(), dtype=tf.float32"),
            std::string::npos);
  using List = std::vector<tf::Tensor>;
  const auto lists = tf::function([](const tf::Tensor& x) {
    return tf::Cond(
        x > 0.0,
        [&] {
          return List{x, x};
        },
        [&] { return List{x}; });
  });
  EXPECT_NE(Refusal([&] { lists(1.0f); })
                .find("Cond: branches must give the same structure and dtypes: "
                      "of cond_true and cond_false, there are 2 and 1 parts"),
            std::string::npos);
  const auto values = tf::function([](const tf::Tensor& x) {
    return x * tf::Cond(
                   x > 0.0, [] { return 1; }, [] { return 2; });
  });
  EXPECT_NE(Refusal([&] { values(1.0f); }).find("result is 1 and result is 2"),
            std::string::npos);
  Refusal([] {
    tf::Cond(
        tf::Tensor::From<bool>({true, false}), [] { return 1; },
        [] { return 2; });
  });
}

TEST(ControlFlow, SwitchCaseAndCase) {
  const auto f = [](const Tensors& in) {
    const tf::Tensor x = in[1];
    std::vector<std::function<tf::Tensor()>> branches = {
        [&] { return x + 1.0; }, [&] { return x * 10.0; }};
    return Tensors{
        tf::SwitchCase<tf::Tensor>(in[0], branches),
        tf::SwitchCase<tf::Tensor>(in[0], branches, [&] { return -x; }),
        tf::Case<tf::Tensor>({{x > 5.0, [&] { return x; }},
                              {x > 1.0, [&] { return x * 100.0; }}},
                             [] { return tf::Tensor(0.0f); })};
  };
  const tf::Tensor two(2.0f);
  for (int i : {0, 1, 2, -1}) {
    const Tensors out = Both(f, {tf::Tensor(i), two});
    EXPECT_EQ(out[0].item<float>(), i == 0 ? 3 : 20);
    EXPECT_EQ(out[1].item<float>(), i == 0 ? 3 : i == 1 ? 20 : -2);
    EXPECT_EQ(out[2].item<float>(), 200);
  }
}

TEST(ControlFlow, IndicesAndLimitsAreIntegers) {
  using Branches = std::vector<std::function<tf::Tensor()>>;
  const Branches one = {[] { return tf::Tensor(1); }};
  EXPECT_NE(Refusal([&] {
              tf::SwitchCase<tf::Tensor>(tf::Tensor(0.5f), one);
            }).find("the index of a branch must be int32, got float32"),
            std::string::npos);
  Refusal([] { tf::SwitchCase<tf::Tensor>(tf::Tensor(0), Branches()); });
  EXPECT_NE(Refusal([] {
              tf::While([](const tf::Tensor&) { return tf::Tensor(true); },
                        [](const tf::Tensor& x) { return x; }, tf::Tensor(1),
                        {.maximum_iterations = tf::Tensor(2.0f)});
            }).find("maximum_iterations must be int32 or int64, got float32"),
            std::string::npos);
}

// Numbers are conditions, too.
TEST(ControlFlow, ConditionsOfNumbers) {
  const auto f = [](const Tensors& in) {
    return Tensors{
        tf::Cond(
            in[0], [&] { return in[0]; }, [] { return tf::Tensor(-1); }),
        tf::While([](const tf::Tensor& i) { return i; },
                  [](const tf::Tensor& i) { return i - 1; }, in[0])};
  };
  EXPECT_EQ(Both(f, {tf::Tensor(3)})[0].item<int32_t>(), 3);
  EXPECT_EQ(Both(f, {tf::Tensor(0)})[0].item<int32_t>(), -1);
}

TEST(ControlFlow, WhileOverStructures) {
  const auto f = [](const Tensors& in) {
    const auto [i, sum] = tf::While(
        [&](const tf::Tensor& i, const tf::Tensor&) { return i < in[0]; },
        [](const tf::Tensor& i, const tf::Tensor& sum) {
          return Two{i + 1, sum + i};
        },
        Two{tf::Tensor(0), tf::Tensor(0)});
    const Point p = tf::While([](const Point& p) { return p.x < 100; },
                              [](const Point& p) {
                                return Point{p.x * p.y, p.y};
                              },
                              Point{tf::Tensor(1), tf::Tensor(3)});
    return Tensors{i, sum, p.x};
  };
  const Tensors out = Both(f, {tf::Tensor(5)});
  EXPECT_EQ(out[1].item<int32_t>(), 10);
  EXPECT_EQ(out[2].item<int32_t>(), 243);
}

TEST(ControlFlow, WhileEndsAfterSoManyTurns) {
  const auto f = [](const Tensors& in) {
    return Tensors{tf::While([](const tf::Tensor&) { return tf::Tensor(true); },
                             [](const tf::Tensor& x) { return x * 2.0; }, in[0],
                             {.maximum_iterations = in[1]})};
  };
  for (int n : {0, 3, -1}) {
    EXPECT_EQ(Both(f, {tf::Tensor(1.0f), tf::Tensor(n)})[0].item<float>(),
              n == 3 ? 8 : 1);
  }
}

TEST(ControlFlow, ShapesOfLoopVariables) {
  const auto grown = [](std::vector<tf::TensorShape> invariants) {
    return tf::function([invariants](const tf::Tensor& x) {
      return std::get<1>(tf::While(
          [](const tf::Tensor& i, const tf::Tensor&) { return i < 3; },
          [](const tf::Tensor& i, const tf::Tensor& x) {
            return Two{i + 1, tf::ConcatV2({x, x}, tf::Tensor(0))};
          },
          Two{tf::Tensor(0), x}, {.shape_invariants = invariants}));
    });
  };
  const tf::Tensor x = tf::Tensor::From<float>({1});
  EXPECT_EQ(grown({{}, {-1}})(x).num_elements(), 8);
  EXPECT_NE(Refusal([&] {
              grown({})(x);
            }).find("shape_invariants allow sizes to change"),
            std::string::npos);
  EXPECT_NE(Refusal([&] {
              grown({{}, {2}})(x);
            })
                .find("loop variable 1 enters with shape (1,), its invariant "
                      "is (2,)"),
            std::string::npos);
  EXPECT_NE(Refusal([&] { grown({{}})(x); }).find("1 shape_invariants for 2"),
            std::string::npos);
}

TEST(ControlFlow, LoopVariablesKeepTheirKind) {
  const auto f = [](const Tensors& in) {
    return Tensors{tf::While(
        [](const tf::Tensor& x) { return x < 3.0; },
        [](const tf::Tensor& x) { return tf::Cast(x, tf::DType::kFloat64); },
        in[0])};
  };
  const std::string wanted = "loop variables must keep their structure";
  EXPECT_NE(Refusal([&] { f({tf::Tensor(1.0f)}); }).find(wanted),
            std::string::npos);
  EXPECT_NE(Refusal([&] {
              tf::Function traced(f);
              traced({tf::Tensor(1.0f)});
            }).find(wanted),
            std::string::npos);
}

// d/dx and d2/dx2 of a function that gives one number.
std::pair<float, float> Slopes(
    const std::function<tf::Tensor(const tf::Tensor&)>& f, float at) {
  const tf::Tensor x(at);
  tf::GradientTape outer;
  outer.watch(x);
  tf::Tensor slope;
  {
    tf::GradientTape inner;
    inner.watch(x);
    const tf::Tensor y = f(x);
    slope = inner.gradient(y, tf::Source(x));
  }
  return {slope.item<float>(),
          outer.gradient(slope, tf::Source(x)).item<float>()};
}

TEST(ControlFlow, GradientsOfAnyOrder) {
  using Fn = std::function<tf::Tensor(const tf::Tensor&)>;
  const Fn cond = [](const tf::Tensor& x) {
    return tf::Cond(
        x > 0.0, [&] { return Cube(x); }, [&] { return x; });
  };
  const Fn loop = [](const tf::Tensor& x) {
    return tf::While([](const tf::Tensor& y) { return y < 8.0; },
                     [&](const tf::Tensor& y) { return y * x; }, x);
  };
  const Fn rows = [](const tf::Tensor& x) {
    const tf::Tensor table = tf::Tensor::From<float>({1, 2, 3});
    const tf::Tensor mapped =
        tf::Map([&](const tf::Tensor& row) { return row * x * x; }, table);
    const tf::Tensor sums =
        tf::Scan([](const tf::Tensor& a, const tf::Tensor& r) { return a + r; },
                 mapped, tf::Tensor(0.0f));
    return tf::Fold(
        [](const tf::Tensor& a, const tf::Tensor& r) { return a + r; }, sums,
        tf::Tensor(0.0f));
  };
  for (const auto& [f, first, second] :
       {std::tuple<Fn, float, float>{cond, 12, 12},
        std::tuple<Fn, float, float>{loop, 12, 12},
        std::tuple<Fn, float, float>{rows, 40, 20}}) {
    EXPECT_EQ(Slopes(f, 2), std::pair(first, second));
    const auto traced = tf::function(Fn(f));
    EXPECT_EQ(Slopes([&](const tf::Tensor& x) { return traced(x); }, 2),
              std::pair(first, second));
  }
}

TEST(ControlFlow, MapScanFold) {
  const auto f = [](const Tensors& in) {
    const Point p = tf::Map(
        [](const Point& row) {
          return Point{row.x + row.y, row.x * row.y};
        },
        Point{in[0], in[1]});
    const auto add = [](const tf::Tensor& a, const tf::Tensor& row) {
      return a + row;
    };
    return Tensors{
        p.x,
        p.y,
        tf::Scan(add, in[0], tf::Tensor(1.0f)),
        tf::Scan(add, in[0], tf::Tensor(1.0f), {.reverse = true}),
        tf::Fold([](const tf::Tensor& a,
                    const tf::Tensor& r) { return a * 2.0 + r; },
                 in[0], tf::Tensor(0.0f)),
        tf::Fold([](const tf::Tensor& a,
                    const tf::Tensor& r) { return a * 2.0 + r; },
                 in[0], tf::Tensor(0.0f), {.reverse = true}),
        tf::Map(
            [](const tf::Tensor& x) { return tf::Cast(x, tf::DType::kInt64); },
            in[0])};
  };
  const tf::Tensor a = tf::Tensor::From<float>({1, 2, 3});
  const tf::Tensor b = tf::Tensor::From<float>({10, 20, 30});
  const Tensors out = Both(f, {a, b});
  EXPECT_EQ(out[0].vector<float>(), (Floats{11, 22, 33}));
  EXPECT_EQ(out[1].vector<float>(), (Floats{10, 40, 90}));
  EXPECT_EQ(out[2].vector<float>(), (Floats{2, 4, 7}));
  EXPECT_EQ(out[3].vector<float>(), (Floats{7, 6, 4}));
  EXPECT_EQ(out[4].item<float>(), 11);
  EXPECT_EQ(out[5].item<float>(), 17);
  const tf::Tensor none = tf::Tensor::From<float>({}, {0});
  EXPECT_EQ(Both(f, {none, none})[0].shape(), tf::TensorShape{0});
}

TEST(ControlFlow, RowsOfUnknownNumber) {
  const auto f = tf::function(
      [](const tf::Tensor& x) {
        return tf::Map([](const tf::Tensor& row) { return row + 1.0; }, x);
      },
      {.input_signature = {{{tf::DType::kFloat32, tf::TensorShape{-1}}}}});
  EXPECT_EQ(f(tf::Tensor::From<float>({1, 2})).vector<float>(), (Floats{2, 3}));
  EXPECT_EQ(f(tf::Tensor::From<float>({1, 2, 3})).num_elements(), 3);
}

TEST(ControlFlow, WrongRows) {
  const auto same = [](const Two& row) { return row; };
  const tf::Tensor two = tf::Tensor::From<float>({1, 2});
  const tf::Tensor three = tf::Tensor::From<float>({1, 2, 3});
  EXPECT_NE(Refusal([&] {
              tf::Map(same, Two{two, three});
            }).find("Map: tensors with 2 and 3 rows do not go together"),
            std::string::npos);
  EXPECT_NE(Refusal([&] {
              tf::Map(same, Two{two, tf::Tensor(1.0f)});
            }).find("rows of a scalar"),
            std::string::npos);
}

TEST(ControlFlow, LoopsAreEnded) {
  const auto forever = [](const Tensors& in) {
    return Tensors{tf::While([](const tf::Tensor&) { return tf::Tensor(true); },
                             [](const tf::Tensor& x) { return x + 1.0; },
                             in[0])};
  };
  const tf::Function traced(forever);
  for (const bool eager : {true, false}) {
    try {
      const tf::Cancellation soon(std::chrono::milliseconds(20));
      const tf::CancellationScope scope(soon);
      eager ? forever({tf::Tensor(0.0f)}) : traced({tf::Tensor(0.0f)});
      FAIL();
    } catch (const tf::Error& e) {
      EXPECT_EQ(e.code(), tf::ErrorCode::kDeadlineExceeded) << e.what();
    }
  }
}

}  // namespace
