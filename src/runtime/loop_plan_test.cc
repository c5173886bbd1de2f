#include "runtime/loop_plan.h"

#include <cmath>
#include <cstring>

#include "eager/eager_emitter.h"
#include "eager/tape.h"
#include "graph/test_function.h"
#include "runtime/executable.h"

namespace headrace {
namespace {

const DType kF = DType::kFloat;
const DType kI = DType::kInt32;
const Shape kScalar;

// A loop over a counter from 0 to `turns` and `variables`, all of them
// arguments; a function gives the `wanted` ones.
struct Loop {
  Loop(int turns, const ArgTypes& variables, const Body& body,
       std::vector<int> wanted) {
    ArgTypes all = {{kI, kScalar}};
    all.insert(all.end(), variables.begin(), variables.end());
    cond = Traced("cond", all, [&](OpScope& s, const Values& in) {
      return Values{s("Less", {in[0], s.Int32(turns)})};
    });
    turn = Traced("body", all, [&](OpScope& s, const Values& in) {
      Values out = body(s, in);
      out.insert(out.begin(), s("AddV2", {in[0], s.Int32(1)}));
      return out;
    });
    whole = Traced("loop", variables, [&](OpScope& s, const Values& in) {
      Values first = in;
      first.insert(first.begin(), s.Int32(0));
      ValueList out = s.All("StatelessWhile", first,
                            {{"cond", FuncRef{cond->name, nullptr}},
                             {"body", FuncRef{turn->name, nullptr}}});
      Values results;
      for (int i : wanted) results.push_back(out[i]);
      return results;
    });
  }

  // Twice, as frames are used again.
  Status Run(std::vector<Tensor> in, std::vector<Tensor>* out) {
    HR_ASSIGN_OR_RETURN(std::shared_ptr<Executable> e,
                        ExecutableOf(whole, nullptr));
    plan = e->DebugString();
    RunServices services;
    for (int i = 0; i < 2; ++i) {
      std::vector<Tensor> copy = in;
      HR_RETURN_IF_ERROR(e->Run(services, absl::MakeSpan(copy), out));
    }
    return OkStatus();
  }

  FunctionPtr cond, turn, whole;
  std::string plan;
};

Tensor Counting(const Shape& shape, float step) {
  Tensor t = *Tensor::Allocate(kF, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    t.data<float>()[i] = static_cast<float>(i % 17) * step - 1;
  }
  return t;
}

TEST(LoopPlan, HandsResultsOnInTurn) {
  Loop loop(10, {{kF, {2}}, {kF, {2}}, {kF, {2}}},
            [](OpScope& s, const Values& in) {
              return Values{in[2], s("AddV2", {in[1], in[2]}), in[3]};
            },
            {1, 2, 3});
  std::vector<Tensor> out;
  Tensor zero = Tensor::Vector<float>({0, 0}),
         one = Tensor::Vector<float>({1, 2});
  Status s = loop.Run({zero, one, one}, &out);
  ASSERT_TRUE(s.ok()) << s;
  EXPECT_EQ(out[0].data<float>()[0], 55);
  EXPECT_EQ(out[1].data<float>()[1], 178);
  EXPECT_EQ(out[2].data<float>()[1], 2);
  EXPECT_EQ(one.data<float>()[1], 2);  // not written
}

TEST(LoopPlan, SeveralVariablesFromOneResult) {
  Loop loop(3, {{kF, {}}, {kF, {}}},
            [](OpScope& s, const Values& in) {
              Value sum = s("AddV2", {in[1], in[2]});
              return Values{sum, sum};
            },
            {1, 2});
  std::vector<Tensor> out;
  Status s =
      loop.Run({Tensor::Scalar<float>(1), Tensor::Scalar<float>(2)}, &out);
  ASSERT_TRUE(s.ok()) << s;
  EXPECT_EQ(out[0].scalar<float>(), 12);
  EXPECT_EQ(out[1].scalar<float>(), 12);
}

TEST(LoopPlan, DropsVariablesThatNobodyNeeds) {
  // (More turns than a plan writes out.)
  Loop loop(50, {{kF, {2}}, {kF, {2}}, {kF, {2}}},
            [](OpScope& s, const Values& in) {
              Value lost = s("AddV2", {in[3], in[1]});
              return Values{s("AddV2", {in[1], in[2]}), in[2], lost};
            },
            {1});
  std::vector<Tensor> out;
  Tensor one = Tensor::Vector<float>({1, 1});
  Status s = loop.Run({one, one, one}, &out);
  ASSERT_TRUE(s.ok()) << s;
  EXPECT_EQ(out[0].data<float>()[1], 51);
  // The counter, the wanted variable and the one that it is made of.
  EXPECT_EQ(std::count(loop.plan.begin(), loop.plan.end(), ','), 4)
      << loop.plan;
}

TEST(LoopPlan, KeptElementsAreNotWrittenOver) {
  ArgTypes types = {{kF, {3}}, {DType::kVariant, {}}};
  Loop loop(4, types,
            [](OpScope& s, const Values& in) {
              return Values{s("Neg", {s("AddV2", {in[1], in[1]})}),
                            s("TensorListPushBack", {in[2], in[1]},
                              {{"element_dtype", kF}})};
            },
            {1, 2});
  FunctionPtr f = Traced("all", {{kF, {3}}}, [&](OpScope& s, const Values& in) {
    Value list = s("EmptyTensorList", {s.Int32(-1), s.Int32(-1)},
                   {{"element_dtype", kF}});
    ValueList out = s.All("PartitionedCall", {in[0], list},
                          {{"f", FuncRef{loop.whole->name, nullptr}},
                           {"Tout", std::vector<DType>{kF, DType::kVariant}}});
    return Values{
        s("TensorListStack", {out[1], s.Int32(-1)}, {{"element_dtype", kF}})};
  });
  auto e = ExecutableOf(f, nullptr);
  ASSERT_TRUE(e.ok()) << e.status();
  std::vector<Tensor> in = {Tensor::Vector<float>({1, 2, 3})}, out;
  Status s = (*e)->Run({}, absl::MakeSpan(in), &out);
  ASSERT_TRUE(s.ok()) << s;
  for (int t = 0; t < 4; ++t) {
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(out[0].data<float>()[3 * t + i], (i + 1) * std::pow(-2, t));
    }
  }
}

// Shapes may change where tracing left them open, and must not where not.
TEST(LoopPlan, ShapesThatChange) {
  auto twice = [](OpScope& s, const Values& in) {
    return Values{s("ConcatV2", {in[1], in[1], s.Int32(0)})};
  };
  std::vector<Tensor> out;
  Loop open(3, {{kF, Shape{-1}}}, twice, {1});
  Status s = open.Run({Tensor::Vector<float>({1, 2})}, &out);
  ASSERT_TRUE(s.ok()) << s;
  EXPECT_EQ(out[0].shape(), Shape({16}));
  auto grows = [](OpScope& s, const Values& in) {
    Value n = s("Mul", {s("Shape", {in[2]}), s.Int32(2)});
    return Values{s("Fill", {n, s.Scalar(kF, 1)}),
                  s("ConcatV2", {in[2], in[2], s.Int32(0)})};
  };
  Loop closed(3, {{kF, {2}}, {kF, Shape{-1}}}, grows, {1});
  s = closed.Run({Counting({2}, 1), Counting({2}, 1)}, &out);
  EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument) << s;
}

// A loop's last values need not fit another turn.
TEST(LoopPlan, ShapesOfTheLastTurn) {
  auto twice = [](OpScope& s, const Values& in) {
    return Values{s("ConcatV2", {in[1], in[1], s.Int32(0)})};
  };
  Loop once(1, {{kF, {2}}}, twice, {1});
  std::vector<Tensor> out;
  Status s = once.Run({Tensor::Vector<float>({1, 2})}, &out);
  ASSERT_TRUE(s.ok()) << s;
  EXPECT_EQ(out[0].shape(), Shape({4}));
  Loop again(2, {{kF, {2}}}, twice, {1});
  s = again.Run({Tensor::Vector<float>({1, 2})}, &out);
  EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument) << s;
}

// Loops of the same functions that are not part of a plan share one, for as
// long as the functions live.
TEST(LoopPlan, EagerLoopsShareAPlan) {
  Loop loop(3, {{kF, {2}}},
            [](OpScope& s, const Values& in) {
              return Values{s("AddV2", {in[1], in[1]})};
            },
            {1});
  auto run = [&](const FunctionPtr& cond) {
    const Tensor start[] = {Tensor::Scalar<int32_t>(0),
                            Tensor::Vector<float>({1, 2})};
    return RunOp("StatelessWhile", start,
                 {{"cond", FuncRef{cond->name, nullptr}},
                  {"body", FuncRef{loop.turn->name, nullptr}}});
  };
  auto plans = [&] {
    MutexLock lock(loop.turn->derived_mutex);
    return loop.turn->derived.loops;
  };
  auto out = run(loop.cond);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].scalar<int32_t>(), 3);
  EXPECT_EQ((*out)[1].data<float>()[1], 16);
  ASSERT_EQ(plans().size(), 1u);
  std::weak_ptr<const LoopPlan> first = plans()[0].plan;
  ASSERT_TRUE(run(loop.cond).ok());
  ASSERT_EQ(plans().size(), 1u);
  EXPECT_EQ(plans()[0].plan, first.lock());
  // Another condition, another plan; that of one that is gone goes with it.
  auto until = [](int turns) {
    return Traced("until", {{kI, kScalar}, {kF, {2}}},
                  [&](OpScope& s, const Values& in) {
                    return Values{s("Less", {in[0], s.Int32(turns)})};
                  });
  };
  FunctionPtr two = until(2);
  EXPECT_EQ((*run(two))[1].data<float>()[1], 8);
  EXPECT_EQ(plans().size(), 2u);
  two = until(1);
  EXPECT_EQ((*run(two))[1].data<float>()[1], 4);
  EXPECT_EQ(plans().size(), 2u);
  loop.whole.reset();
  const std::weak_ptr<const Function> body = loop.turn;
  loop.turn.reset();
  EXPECT_TRUE(body.expired());
  EXPECT_TRUE(first.expired());
}

// acc += x_t^T y_t and sums += the rows of y_t.
Values SumOfProducts(OpScope& s, const Values& in) {
  Value scale = s("Cast", {in[0]}, {{"DstT", kF}});
  Value x = s("AddV2", {in[3], scale}), y = s("Mul", {in[4], scale});
  Value product = s("MatMul", {x, y}, {{"transpose_a", true}});
  return Values{s("AddV2", {in[1], product}),
                s("AddV2", {in[2], s("Sum", {y, s.Int32s({0})})}), in[3],
                in[4]};
}

void CheckSumOfProducts(int turns, int64_t rows, const Shape& known) {
  const int64_t m = 24, n = 20;
  ArgTypes types = {{kF, known}, {kF, Shape{n}}, {kF, {-1, m}}, {kF, {-1, n}}};
  Loop loop(turns, types, SumOfProducts, {1, 2});
  Tensor x = Counting({rows, m}, 0.25f), y = Counting({rows, n}, 0.5f);
  Tensor acc = Counting({m, n}, 1), sums = Counting({n}, 1);
  std::vector<Tensor> out;
  Status s = loop.Run({acc, sums, x, y}, &out);
  ASSERT_TRUE(s.ok()) << s;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double want = acc.data<float>()[i * n + j];
      for (int t = 0; t < turns; ++t) {
        for (int64_t r = 0; r < rows; ++r) {
          want += (x.data<float>()[r * m + i] + t) *
                  static_cast<double>(y.data<float>()[r * n + j] * t);
        }
      }
      EXPECT_NEAR(out[0].data<float>()[i * n + j], want,
                  1e-5 * std::abs(want) + 0.05);
    }
  }
  for (int64_t j = 0; j < n; ++j) {
    double want = sums.data<float>()[j];
    for (int t = 0; t < turns; ++t) {
      for (int64_t r = 0; r < rows; ++r) want += y.data<float>()[r * n + j] * t;
    }
    EXPECT_NEAR(out[1].data<float>()[j], want, 1e-5 * std::abs(want) + 0.05);
  }
}

TEST(LoopPlan, SumsOfProductsAreMadeOnce) {
  CheckSumOfProducts(0, 8, {24, 20});
  CheckSumOfProducts(1, 8, {24, 20});
  CheckSumOfProducts(7, 5, {24, 20});
  CheckSumOfProducts(7, 5, Shape::UnknownRank());
  CheckSumOfProducts(70, 64, {24, 20});   // more rows than are kept
  CheckSumOfProducts(2, 3000, {24, 20});  // in one turn
  CheckSumOfProducts(3, 0, {24, 20});
}

TEST(LoopPlan, DeferSumsFindsThem) {
  ArgTypes types = {
      {kI, kScalar}, {kF, {24, 20}}, {kF, {20}}, {kF, {8, 24}}, {kF, {8, 20}}};
  for (bool reads : {false, true}) {
    FunctionPtr f = Traced("turn", types, [&](OpScope& s, const Values& in) {
      Values out = SumOfProducts(s, in);
      if (reads)
        out[2] = s("AddV2", {in[3], s("Sum", {in[1], s.Int32s({0, 1})})});
      out.insert(out.begin(), in[0]);
      return out;
    });
    std::vector<Edge> feeds;
    for (Node* n : f->args) feeds.push_back({n, 0});
    Program p = *MakeProgram(*f->body, feeds, f->results, {}, nullptr);
    ASSERT_TRUE(Optimise(p).ok());
    DeferredSums found = DeferSums(p);
    if (reads) {  // something else reads the sum
      EXPECT_TRUE(found.sums.empty());
      continue;
    }
    ASSERT_EQ(found.sums.size(), 2u);
    EXPECT_EQ(found.sums[0].variable, 1);
    EXPECT_EQ(found.sums[1].variable, 2);
    EXPECT_EQ(found.stacked.size(), 2u);  // y's rows serve both
    EXPECT_EQ(p.fetches[1], p.feeds[1]);
    EXPECT_EQ(p.fetches.size(), 7u);
  }
}

// Weights that come from a list in every turn may be prepared: same bits.
TEST(LoopPlan, WeightsFromAList) {
  const ArgTypes types = {{kF, {32, 160}}, {kF, {160, 160}}, {kF, {160, 160}}};
  FunctionPtr f = Traced("popped", types, [](OpScope& s, const Values& in) {
    Value list = s("EmptyTensorList", {s.Int32s({160, 160}), s.Int32(-1)},
                   {{"element_dtype", kF}});
    for (int w : {1, 1, 2, 1, 1, 1}) {
      list = s("TensorListPushBack", {list, in[w]}, {{"element_dtype", kF}});
    }
    return Values{list};
  });
  auto product = [](OpScope& s, const Value& x, const Value& w) {
    return s("Mul", {s("MatMul", {x, w}, {{"transpose_b", true}}),
                     s.Scalar(kF, 0.01)});
  };
  Loop loop(
      6, {{kF, {32, 160}}, {DType::kVariant, {}}},
      [&](OpScope& s, const Values& in) {
        ValueList popped =
            s.All("TensorListPopBack", {in[2], s.Int32s({160, 160})},
                  {{"element_dtype", kF}});
        popped[1].node()->set_output_shape(1, {160, 160});
        return Values{
            product(s, in[1], popped[1].graph()->Output(popped[1].node(), 1)),
            popped[0]};
      },
      {1});
  FunctionPtr direct =
      Traced("direct", types, [&](OpScope& s, const Values& in) {
        Value x = in[0];
        for (int w : {1, 1, 1, 2, 1, 1}) x = product(s, x, in[w]);
        return Values{x};
      });
  std::vector<Tensor> in = {Counting({32, 160}, 0.37f),
                            Counting({160, 160}, 0.11f),
                            Counting({160, 160}, 0.07f)};
  auto run = [](const FunctionPtr& g, std::vector<Tensor> args) {
    std::vector<Tensor> out;
    Status s = (*ExecutableOf(g, nullptr))->Run({}, absl::MakeSpan(args), &out);
    EXPECT_TRUE(s.ok()) << s;
    return out;
  };
  Tensor list = run(f, in)[0], want = run(direct, in)[0];
  std::vector<Tensor> out;
  Status s = loop.Run({in[0], list}, &out);
  ASSERT_TRUE(s.ok()) << s;
  EXPECT_EQ(std::memcmp(out[0].raw(), want.raw(), want.bytes()), 0);
}

// Two products and a chain of sums.
TEST(LoopPlan, SumsOfSeveralProducts) {
  ArgTypes types = {{kF, {24, 20}}, {kF, {8, 24}}, {kF, {8, 20}}};
  Loop loop(
      5, types,
      [](OpScope& s, const Values& in) {
        AttrMap ta = {{"transpose_a", true}};
        Value one = s("MatMul", {in[2], in[3]}, ta);
        Value two = s("MatMul", {s("Neg", {in[2]}), s("Neg", {in[3]})}, ta);
        return Values{s("AddN", {one, in[1], two}), in[2], in[3]};
      },
      {1});
  Tensor x = Counting({8, 24}, 0.25f), y = Counting({8, 20}, 0.5f);
  std::vector<Tensor> out;
  Status s = loop.Run({Counting({24, 20}, 1), x, y}, &out);
  ASSERT_TRUE(s.ok()) << s;
  Tensor start = Counting({24, 20}, 1);
  for (int i = 0; i < 24; ++i) {
    for (int j = 0; j < 20; ++j) {
      float want = start.data<float>()[i * 20 + j];
      for (int r = 0; r < 8; ++r) {
        want += 10 * x.data<float>()[r * 24 + i] * y.data<float>()[r * 20 + j];
      }
      EXPECT_NEAR(out[0].data<float>()[i * 20 + j], want, 1e-3);
    }
  }
}

// Rows that a turn's product does not fit are an error, not a crash.
TEST(LoopPlan, ProductsThatDoNotFit) {
  auto body = [](OpScope& s, const Values& in) {
    Value product = s("MatMul", {in[2], in[3]}, {{"transpose_a", true}});
    return Values{s("AddV2", {in[1], product}), in[2], in[3]};
  };
  ArgTypes types = {{kF, Shape::UnknownRank()},
                    {kF, Shape::UnknownRank()},
                    {kF, Shape::UnknownRank()}};
  Loop loop(3, types, body, {1});
  std::vector<Tensor> out;
  Tensor acc = Counting({2, 2}, 1);
  for (const Shape& shape : {Shape{3, 2}, Shape{2}, Shape{}}) {
    Status s = loop.Run({acc, Counting({4, 2}, 1), Counting(shape, 1)}, &out);
    EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument) << s;
  }
}

}  // namespace
}  // namespace headrace
