// What the fusing pass makes must compute what the ops by themselves do.
#include "op/resource.h"
#include "runtime/test_plan.h"

namespace headrace {
namespace {

TEST(Fuse, ProductsTakeTheirTails) {
  for (int64_t m : {1, 5, 200}) {
    for (int64_t n : {10, 33, 300}) {
      std::string plan = Compare(
          [](OpScope& s, const Values& v) -> std::vector<Value> {
            Value h = s("BiasAdd", {s("MatMul", {v[0], v[1]}), v[2]});
            Value gate = s("Mul", {h, s("Sigmoid", {h})});
            return {s("Relu", {s("AddV2", {gate, v[3]})})};
          },
          {Numbers({m, 40}), Numbers({40, n}), Numbers({n}), Numbers({m, n})});
      EXPECT_EQ(Lines(plan), 1) << plan;
    }
  }
}

TEST(Fuse, ReshapesDoNotPartAProductFromItsTail) {
  std::string plan = Compare(
      [](OpScope& s, const Values& v) -> std::vector<Value> {
        Value h = s("AddV2", {s("MatMul", {v[0], v[1]}), v[2]});
        Value cube = s("Reshape", {h, s.Int32s({4, 50, 120})});
        Value sum = s("AddV2", {cube, v[3]});
        return {s("Tanh", {s("Reshape", {sum, s.Int32s({200, 120})})}), sum};
      },
      {Numbers({200, 64}), Numbers({64, 120}), Numbers({120}),
       Numbers({4, 50, 120})});
  EXPECT_EQ(Lines(plan), 1) << plan;
}

TEST(Fuse, AProductThatIsReadTwiceIsKept) {
  std::string plan = Compare(
      [](OpScope& s, const Values& v) -> std::vector<Value> {
        Value p = s("MatMul", {v[0], v[1]});
        return {s("Relu", {s("AddV2", {p, v[2]})}), p};
      },
      {Numbers({9, 40}), Numbers({40, 33}), Numbers({33})});
  EXPECT_EQ(Lines(plan), 2) << plan;
}

TEST(Fuse, TheTailMayHaveSeveralResults) {
  Compare(
      [](OpScope& s, const Values& v) -> std::vector<Value> {
        Value p = s("MatMul", {v[0], v[1]});
        Value a = s("Tanh", {p});
        return {a, s("Mul", {s("AddV2", {a, v[2]}), p})};
      },
      {Numbers({70, 40}), Numbers({40, 133}), Numbers({133})});
}

TEST(Fuse, ConvolutionsTakeNormalisationAndResidue) {
  const std::vector<int64_t> ones(4, 1);
  for (int64_t size : {3, 14}) {
    for (int64_t channels : {8, 128}) {
      std::string plan = Compare(
          [&](OpScope& s, const Values& v) -> std::vector<Value> {
            Value y = s("Conv2D", {v[0], v[1]},
                        {{"strides", ones}, {"padding", "SAME"}});
            y = s("AddV2", {s("Mul", {y, v[2]}), v[3]});
            return {s("Relu", {s("AddV2", {y, v[4]})})};
          },
          {Numbers({2, size, size, 16}), Numbers({3, 3, 16, channels}),
           Numbers({channels}), Numbers({channels}, 5),
           Numbers({2, size, size, channels}, 3)});
      EXPECT_EQ(Lines(plan), 1) << plan;
    }
  }
}

// The sum takes the residue's memory; the convolution's rows are handed to it.
TEST(Fuse, ResiduesAreAddedInPlace) {
  const std::vector<int64_t> ones(4, 1), threes{1, 3, 3, 1};
  for (int64_t channels : {8, 96, 512}) {  // 512: the filter is cut
    const Body body = [&](OpScope& s, const Values& v) {
      const AttrMap conv{{"strides", ones}, {"padding", "SAME"}};
      const AttrMap pool{
          {"ksize", threes}, {"strides", ones}, {"padding", "SAME"}};
      Value residue = s("MaxPool", {v[0]}, pool);
      Value y = s("Mul", {s("Conv2D", {v[1], v[2]}, conv), v[3]});
      y = s("Relu", {s("AddV2", {y, residue})});
      return std::vector<Value>{s("MaxPool", {y}, pool)};
    };
    const Shape shape{2, 9, 9, channels};
    std::vector<Tensor> in{Numbers(shape), Numbers({2, 9, 9, 96}, 3),
                           Numbers({3, 3, 96, channels}), Numbers({channels})};
    EXPECT_EQ(Lines(Compare(body, in)), 3);
    auto e = Executable::Make(*Traced("fused", TypesOf(in), body), nullptr);
    ASSERT_TRUE(e.ok()) << e.status();
    EXPECT_LT((*e)->arena_bytes(), 2 * shape.num_elements() * sizeof(float));
  }
}

TEST(Fuse, NormalisationWithGivenStatisticsJoinsTheConvolution) {
  const std::vector<int64_t> ones(4, 1);
  auto body = [&](OpScope& s, const Values& v) -> std::vector<Value> {
    Value y =
        s("Conv2D", {v[0], v[1]}, {{"strides", ones}, {"padding", "SAME"}});
    y = s("FusedBatchNormV3", {y, v[2], v[3], v[4], v[5]},
          {{"is_training", false}});
    return {s("Relu", {y})};
  };
  Tensor variance = Numbers({24});
  for (float& v : variance.span<float>()) v = v * v + 0.1f;
  std::vector<Tensor> in{Numbers({2, 7, 7, 16}), Numbers({1, 1, 16, 24}),
                         Numbers({24}),          Numbers({24}, 5),
                         Numbers({24}, 3),       variance};
  auto e = Executable::Make(*Traced("fused", TypesOf(in), body), nullptr);
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_EQ(Lines((*e)->DebugString()), 2) << (*e)->DebugString();
  Values values;
  for (const Tensor& t : in) values.push_back(Value(t));
  OpScope s;
  Tensor want = body(s, values)[0].tensor();
  std::vector<Tensor> out;
  ASSERT_TRUE((*e)->Run({}, absl::MakeSpan(in), &out).ok());
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    EXPECT_NEAR(out[0].data<float>()[i], want.data<float>()[i], 1e-4);
  }
}

// Weights that are read from a variable are prepared once, and again after
// every change.
TEST(Fuse, PreparedWeightsFollowTheirVariable) {
  OpScope s;
  Value handle((*RunOp("VarHandleOp", {},
                       {{"dtype", DType::kFloat},
                        {"shape", Shape({3, 3, 8, 64})},
                        {"shared_name", "fuse_test_weights"}}))[0]);
  Tensor x = Numbers({2, 9, 9, 8});
  const std::vector<int64_t> ones(4, 1);
  auto body = [&](OpScope& g, const Values& v) -> std::vector<Value> {
    Value w = g("ReadVariableOp", {v[1]}, {{"dtype", DType::kFloat}});
    return {g("Conv2D", {v[0], w}, {{"strides", ones}, {"padding", "SAME"}})};
  };
  ASSERT_TRUE(s.ok()) << s.status();
  FunctionPtr f = Traced("fused", TypesOf({x, handle.tensor()}), body);
  auto e = Executable::Make(*f, nullptr);
  ASSERT_TRUE(e.ok()) << e.status();
  RunServices services;
  services.resources = &DefaultResources();
  for (int round = 0; round < 12; ++round) {
    if (round % 4 == 0) {
      s.All("AssignVariableOp",
            {handle, Value(Numbers({3, 3, 8, 64}, round + 1))});
    } else if (round % 4 == 3) {
      s.All("AssignAddVariableOp",
            {handle, Value(Numbers({3, 3, 8, 64}, round))});
    }
    ASSERT_TRUE(s.ok()) << s.status();
    Tensor want = body(s, {Value(x), handle})[0].tensor();
    std::vector<Tensor> in{x, handle.tensor()}, out;
    Status status = (*e)->Run(services, absl::MakeSpan(in), &out);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(std::memcmp(out[0].raw(), want.raw(), want.bytes()), 0) << round;
  }
}

// Weights that a run makes are prepared once for all products that read them
// alike.
TEST(Fuse, ProductsShareWhatTheyPrepare) {
  auto body = [](OpScope& g, const Values& v) -> std::vector<Value> {
    Value w = g("Mul", {v[1], g.Scalar(DType::kFloat, 0.5)}), x = v[0];
    auto product = [&](const Value& a, const Value& b) {
      return g("MatMul", {a, b}, {{"transpose_b", true}});
    };
    for (int turn = 0; turn < 4; ++turn) {
      x = g("Relu", {g("AddV2", {product(x, w), v[2]})});
      x = g("Mul", {x, g.Scalar(DType::kFloat, 1.0 / 64)});
    }
    // Some of its columns, and rows that are too few to prepare anything for.
    Value part =
        g("Slice", {product(v[0], w), g.Int32s({0, 32}), g.Int32s({32, 64})});
    Value few = g("Slice", {v[0], g.Int32s({0, 0}), g.Int32s({3, 160})});
    return {x, part, product(few, w)};
  };
  Compare(body,
          {Numbers({32, 160}), Numbers({160, 160}, 3), Numbers({160}, 5)});
}

// A scale of constants is part of the filter; sums of these numbers are exact
// either way.
TEST(Fuse, ConvolutionsTakeASteadyScaleIn) {
  const std::vector<int64_t> ones(4, 1);
  for (const char* op : {"Conv2D", "DepthwiseConv2dNative"}) {
    for (int64_t channels : {8, 64}) {
      const bool depthwise = op[0] == 'D';
      const int64_t out = depthwise ? 16 * 2 : channels;
      const Shape filter{3, 3, 16, depthwise ? 2 : channels};
      std::string plan = Compare(
          [&](OpScope& s, const Values& v) -> std::vector<Value> {
            Value y = s(op, {v[0], s.Const(Numbers(filter))},
                        {{"strides", ones}, {"padding", "SAME"}});
            y = s("Mul", {y, s.Const(Numbers({out}))});
            y = s("AddV2", {y, s.Const(Numbers({out}, 5))});
            return {s("Relu", {s("AddV2", {y, v[1]})})};
          },
          {Numbers({2, 9, 9, 16}), Numbers({2, 9, 9, out}, 3)});
      EXPECT_EQ(Lines(plan), 1) << plan;
    }
  }
}

// The filter is scaled anew when the variable that holds the scale changes.
TEST(Fuse, ScalesInFiltersFollowTheirVariable) {
  OpScope s;
  Value handle((*RunOp("VarHandleOp", {},
                       {{"dtype", DType::kFloat},
                        {"shape", Shape({64})},
                        {"shared_name", "fuse_test_scale"}}))[0]);
  const std::vector<int64_t> ones(4, 1);
  for (int64_t in : {16, 32}) {  // 32: by Winograd's transforms
    Tensor x = Numbers({2, 16, 16, in});
    auto body = [&](OpScope& g, const Values& v) -> std::vector<Value> {
      Value scale = g("ReadVariableOp", {v[1]}, {{"dtype", DType::kFloat}});
      Value y = g("Conv2D", {v[0], g.Const(Numbers({3, 3, in, 64}))},
                  {{"strides", ones}, {"padding", "SAME"}});
      y = g("Mul", {y, g("Square", {scale})});
      return {g("Relu", {g("AddV2", {y, g.Const(Numbers({64}))})})};
    };
    FunctionPtr f = Traced("fused", TypesOf({x, handle.tensor()}), body);
    auto e = Executable::Make(*f, nullptr);
    ASSERT_TRUE(e.ok()) << e.status();
    RunServices services;
    services.resources = &DefaultResources();
    for (int round = 0; round < 9; ++round) {
      if (round % 3 == 0) {
        s.All("AssignVariableOp", {handle, Value(Numbers({64}, round + 1))});
      }
      ASSERT_TRUE(s.ok()) << s.status();
      Tensor want = body(s, {Value(x), handle})[0].tensor();
      std::vector<Tensor> feeds{x, handle.tensor()}, out;
      Status status = (*e)->Run(services, absl::MakeSpan(feeds), &out);
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_EQ(std::memcmp(out[0].raw(), want.raw(), want.bytes()), 0)
          << round;
    }
  }
}

// A block's own way and its shortcut: each does its scale and shift.
TEST(Fuse, TwoConvolutionsThatAreAddedKeepTheirSteps) {
  const std::vector<int64_t> ones(4, 1);
  std::string plan = Compare(
      [&](OpScope& s, const Values& v) -> std::vector<Value> {
        Values ways;
        for (int i : {1, 2}) {
          Value y = s("Conv2D", {v[0], v[i]},
                      {{"strides", ones}, {"padding", "SAME"}});
          ways.push_back(s("AddV2", {s("Mul", {y, v[3]}), v[4]}));
        }
        return {s("Relu", {s("AddV2", {ways[0], ways[1]})})};
      },
      {Numbers({2, 9, 9, 16}), Numbers({1, 1, 16, 64}),
       Numbers({3, 3, 16, 64}, 5), Numbers({64}), Numbers({64}, 3)});
  EXPECT_EQ(Lines(plan), 2) << plan;
}

// Sums of several, and what is broadcast first, fuse as well; same bits.
TEST(Fuse, SumsAndBroadcasts) {
  Tensor x = Numbers({6, 40}), y = Numbers({6, 40}, 3), z = Numbers({6, 40}, 5);
  Tensor column = Numbers({6, 1}, 7);
  auto body = [](OpScope& g, const Values& v) -> std::vector<Value> {
    Value wide = g("BroadcastTo", {v[3], g.Int32s({6, 40})});
    Value sum = g("AddN", {v[0], g("Mul", {wide, v[1]}), v[2], v[0]});
    return {g("Sub", {sum, wide})};
  };
  FunctionPtr f = Traced("fused", TypesOf({x, y, z, column}), body);
  auto e = Executable::Make(*f, nullptr);
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_EQ((*e)->num_steps(), 1) << (*e)->DebugString();
  OpScope s;
  Tensor want =
      body(s, {Value(x), Value(y), Value(z), Value(column)})[0].tensor();
  std::vector<Tensor> in{x, y, z, column}, out;
  Status status = (*e)->Run({}, absl::MakeSpan(in), &out);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(std::memcmp(out[0].raw(), want.raw(), want.bytes()), 0);
}

// Where both meet broadcast, one of them stays.
TEST(Fuse, BroadcastsOfBothSides) {
  Tensor row = Numbers({40}), column = Numbers({6, 1}, 7);
  auto body = [](OpScope& g, const Values& v) -> std::vector<Value> {
    Value shape = g.Int32s({3, 6, 40});
    return {g("Mul", {g("BroadcastTo", {v[0], shape}),
                      g("BroadcastTo", {v[1], shape})})};
  };
  FunctionPtr f = Traced("fused", TypesOf({row, column}), body);
  auto e = Executable::Make(*f, nullptr);
  ASSERT_TRUE(e.ok()) << e.status();
  OpScope s;
  Tensor want = body(s, {Value(row), Value(column)})[0].tensor();
  std::vector<Tensor> in{row, column}, out;
  Status status = (*e)->Run({}, absl::MakeSpan(in), &out);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(out[0].shape(), want.shape());
  EXPECT_EQ(std::memcmp(out[0].raw(), want.raw(), want.bytes()), 0);
}

Value RowSum(OpScope& g, const Value& x, const char* op = "Sum",
             bool keep = true) {
  return g(op, {x, g.Int32s({-1})}, {{"keep_dims", keep}});
}

Value LayerNorm(OpScope& g, const Value& x, const Value& scale) {
  Value mean = RowSum(g, x, "Mean");
  Value var = RowSum(g, g("SquaredDifference", {x, mean}), "Mean");
  Value eps = g.Scalar(DType::kFloat, 1e-5);
  Value rate = g("Rsqrt", {g("AddV2", {var, eps})});
  return g("Mul", {g("Mul", {g("Sub", {x, mean}), rate}), scale});
}

// Rows are reduced within the tile, and what is made of them is used there.
TEST(Fuse, RowsAreReduced) {
  for (int64_t n : {48, 64, 100, 513, 3000}) {
    const Tensor x = Numbers({4, 9, n}), y = Numbers({4, 9, n}, 3);
    const Tensor scale = Numbers({n}, 5);
    std::string plan = Compare(
        [](OpScope& g, const Values& v) -> std::vector<Value> {
          Value sum = RowSum(g, g("Mul", {v[0], v[1]}));
          return {g("Mul", {g("Sub", {v[0], sum}), v[1]})};
        },
        {x, y});
    EXPECT_EQ(Lines(plan), 1) << plan;
    plan = Compare(
        [](OpScope& g, const Values& v) -> std::vector<Value> {
          return {LayerNorm(g, g("AddV2", {v[0], v[1]}), v[2])};
        },
        {x, y, scale});
    EXPECT_EQ(Lines(plan), 1) << plan;
    // Columns that leave, with and without the dimension.
    plan = Compare(
        [](OpScope& g, const Values& v) -> std::vector<Value> {
          Value twice = g("AddV2", {v[0], v[0]});
          Value top = RowSum(g, twice, "Max"), low = RowSum(g, twice, "Min");
          Value flat = RowSum(g, g("Mul", {twice, v[1]}), "Sum", false);
          return {top, g("Sub", {twice, low}), g("Tanh", {flat}),
                  g("AddV2", {top, low})};
        },
        {x, y});
    EXPECT_LE(Lines(plan), 2) << plan;
  }
}

// A column whose length is that of a row is still one element a row.
// The gates of a recurrent cell: no part of the product is copied.
TEST(Fuse, SplitColumnsAreReadWhereTheyLie) {
  for (int64_t m : {1, 32, 200}) {
    for (int64_t n : {10, 96, 130}) {
      std::string plan = Compare(
          [](OpScope& s, const Values& v) -> std::vector<Value> {
            Value z = s("BiasAdd", {s("MatMul", {v[0], v[1]}), v[2]});
            ValueList g =
                s.All("Split", {s.Int32(1), z}, {{"num_split", int64_t{4}}});
            Value c = s("AddV2",
                        {s("Mul", {s("Sigmoid", {g[1]}), v[3]}),
                         s("Mul", {s("Sigmoid", {g[0]}), s("Tanh", {g[2]})})});
            return {s("Mul", {s("Sigmoid", {g[3]}), s("Tanh", {c})}), c};
          },
          {Numbers({m, 40}), Numbers({40, 4 * n}), Numbers({4 * n}),
           Numbers({m, n}, 3)});
      EXPECT_EQ(Lines(plan), 2) << plan;
    }
  }
}

TEST(Fuse, PartsMayBeUnequalShapedAnewAndReadByOthers) {
  for (int64_t n : {7, 100}) {
    std::string plan = Compare(
        [&](OpScope& s, const Values& v) -> std::vector<Value> {
          ValueList g =
              s.All("SplitV",
                    {v[0], s.Int32s({3, static_cast<int32_t>(n)}), s.Int32(-1)},
                    {{"num_split", int64_t{2}}});
          Value tail =
              s("Slice", {v[0], s.Int32s({0, 0, 3}),
                          s.Int32s({-1, -1, static_cast<int32_t>(n)})});
          Value flat =
              s("Reshape", {g[1], s.Int32s({10 * static_cast<int32_t>(n)})});
          Value y = s("AddV2", {s("Neg", {flat}), s("Exp", {flat})});
          return {y, s("Mul", {s("Tanh", {tail}), tail}), g[0], g[1]};
        },
        {Numbers({2, 5, 3 + n})});
    EXPECT_NE(plan.find("SplitV"), std::string::npos) << plan;
    EXPECT_EQ(plan.find("Slice"), std::string::npos) << plan;
  }
}

// What a concatenation joins is made where it is wanted, in one call.
TEST(Fuse, ResultsAreJoinedWhereTheyAreMade) {
  for (int64_t m : {1, 32, 200}) {
    for (int64_t n : {10, 96, 130}) {
      std::string plan = Compare(
          [](OpScope& s, const Values& v) -> std::vector<Value> {
            Value a = s("Mul", {v[0], v[1]}), b = s("Tanh", {v[2]});
            Value c =
                s("AddV2", {s("Relu", {v[0]}), s.Scalar(DType::kFloat, 2)});
            Value all =
                s("ConcatV2", {a, b, c, s.Int32(-1)}, {{"N", int64_t{3}}});
            return {all, b, s("MatMul", {all, v[3]})};
          },
          {Numbers({m, n}), Numbers({m, n}, 3), Numbers({m, n}, 5),
           Numbers({3 * n, 8})});
      EXPECT_EQ(Lines(plan), 2) << plan;
    }
  }
}

// The tails of several products, parts of unequal widths, the same part twice
// and joined rows stay as they are.
TEST(Fuse, OtherJoinsStay) {
  const auto join = [](OpScope& s, const Values& parts, int axis) {
    Values in = parts;
    in.push_back(s.Int32(axis));
    return s("ConcatV2", in, {{"N", static_cast<int64_t>(parts.size())}});
  };
  const std::vector<Tensor> in = {Numbers({32, 40}), Numbers({40, 128}),
                                  Numbers({40, 100}), Numbers({32, 128})};
  for (int which = 0; which < 4; ++which) {
    std::string plan = Compare(
        [&](OpScope& s, const Values& v) -> std::vector<Value> {
          Value a = s("Tanh", {s("Neg", {v[3]})});
          Value b = s("Relu", {s("MatMul", {v[0], v[1]})});
          Value c = s("Relu", {s("MatMul", {v[0], v[2]})});
          switch (which) {
            case 0:
              return {join(s,
                           {s("Relu", {s("MatMul", {v[0], v[1]})}),
                            s("Tanh", {s("MatMul", {v[0], v[1]})})},
                           1)};
            case 1:
              return {join(s, {b, c}, 1)};
            case 2:
              return {join(s, {a, a}, 1)};
            default:
              return {join(s, {a, s("Exp", {s("Neg", {v[3]})})}, 0)};
          }
        },
        in);
    EXPECT_NE(plan.find("ConcatV2"), std::string::npos) << plan;
  }
}

// What joined rows are read for comes behind the call that makes them.
TEST(Fuse, NothingJoinsAGroupBehindItsJoin) {
  Compare(
      [](OpScope& s, const Values& v) -> std::vector<Value> {
        Value a = s("Tanh", {v[0]}), b = s("Exp", {v[0]});
        Value all = s("ConcatV2", {a, b, s.Int32(1)}, {{"N", int64_t{2}}});
        ValueList back =
            s.All("Split", {s.Int32(1), all}, {{"num_split", int64_t{2}}});
        Value y = s("Mul", {s("Neg", {back[1]}), a});
        return {s("ConcatV2", {y, s("AddV2", {y, b}), s.Int32(1)},
                  {{"N", int64_t{2}}})};
      },
      {Numbers({40, 120})});
}

TEST(Fuse, ColumnsAreNotRows) {
  const Tensor x = Numbers({64, 64}), y = Numbers({64, 64}, 3);
  Compare(
      [](OpScope& g, const Values& v) -> std::vector<Value> {
        Value flat = RowSum(g, g("Mul", {v[0], v[1]}), "Sum", false);
        Value across = g("AddV2", {v[0], flat});
        Value kept = g("ExpandDims", {flat, g.Int32s({1})});
        return {across, g("Mul", {v[1], kept}), g("Exp", {flat})};
      },
      {x, y});
}

// Behind a product, and where a reduction reads what is one for all.
TEST(Fuse, RowsOfProductsAreReduced) {
  const Tensor a = Numbers({40, 30}), b = Numbers({30, 80}, 3);
  const Tensor scale = Numbers({80}, 5), one = Numbers({1, 1}, 2);
  std::string plan = Compare(
      [](OpScope& g, const Values& v) -> std::vector<Value> {
        Value h = g("MatMul", {v[0], v[1]});
        return {LayerNorm(g, g("AddV2", {h, v[2]}), v[2])};
      },
      {a, b, scale});
  EXPECT_EQ(Lines(plan), 1) << plan;
  Compare(
      [](OpScope& g, const Values& v) -> std::vector<Value> {
        Value h = g("MatMul", {v[0], v[1]});
        Value sum = RowSum(g, g("AddV2", {h, v[2]}));
        return {sum, g("Mul", {g("Neg", {sum}), v[2]}),
                g("Sub", {h, g("Square", {sum})})};
      },
      {a, b, one});
}

// What follows from one value by cheap calls is made again behind the next
// product, so the first fused call hands on that one value only.
TEST(Fuse, CheapValuesAreMadeAgain) {
  const Tensor a = Numbers({64, 40}), w = Numbers({40, 80}, 3);
  const Tensor back = Numbers({80, 40}, 5);
  auto body = [](OpScope& g, const Values& v) -> std::vector<Value> {
    Value z = g("AddV2", {g("MatMul", {v[0], v[1]}), v[3]});
    Value half = g("Mul", {z, g.Scalar(DType::kFloat, 0.5)});
    Value erf = g("Erf", {g("RealDiv", {z, g.Scalar(DType::kFloat, 1.4)})});
    Value phi = g("AddV2", {erf, g.Scalar(DType::kFloat, 1)});
    Value d = g("MatMul", {g("MatMul", {g("Mul", {half, phi}), v[2]}), v[1]});
    return {g("AddV2", {g("Mul", {d, phi}), g("Mul", {d, half})})};
  };
  std::string plan = Compare(body, {a, w, back, Numbers({80}, 2)});
  EXPECT_EQ(Lines(plan), 3) << plan;
  // The first call's results: what goes into the next product, and z.
  const std::string first = plan.substr(0, plan.find('\n'));
  const std::string results = first.substr(first.find("->"));
  EXPECT_EQ(std::count(results.begin(), results.end(), ','), 1) << plan;
}

// The gradient of a mean: what is broadcast, then divided by a number.
TEST(Fuse, BroadcastsMoveBehindNumbers) {
  std::string plan = Compare(
      [](OpScope& g, const Values& v) -> std::vector<Value> {
        Value wide = g("BroadcastTo", {v[1], g.Int32s({6, 40})});
        Value part = g("RealDiv", {wide, g.Scalar(DType::kFloat, 40)});
        return {g("AddV2", {v[0], g("Mul", {v[0], part})})};
      },
      {Numbers({6, 40}), Numbers({6, 1}, 3)});
  EXPECT_EQ(Lines(plan), 2) << plan;  // one of them divides the column
  Compare(
      [](OpScope& g, const Values& v) -> std::vector<Value> {
        Value wide = g("BroadcastTo", {v[1], g.Int32s({6, 40})});
        return {g("Sub", {g.Scalar(DType::kFloat, 2), wide}), wide};
      },
      {Numbers({6, 40}), Numbers({1}, 3)});
}

}  // namespace
}  // namespace headrace
