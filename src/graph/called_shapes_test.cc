#include "graph/called_shapes.h"

#include "graph/builder.h"
#include "graph/test_function.h"

namespace headrace {
namespace {

// A call of `f` in the graph that is being made.
Value CallHere(OpScope& s, const FunctionPtr& f, const Values& args) {
  std::vector<DType> takes;
  for (const Value& a : args) takes.push_back(a.dtype());
  return s.All("PartitionedCall", args,
               {{"Tin", takes},
                {"Tout", f->result_types()},
                {"f", FuncRef{f->name, nullptr}}})[0];
}

// The shape of what `body` gives, traced for arguments of `types`.
std::string ShapeOf(const ArgTypes& types, const Body& body) {
  const FunctionPtr f = Traced("shape_of", types, body);
  const Edge& e = f->results[0];
  return e.node->output_shape(e.index).ToString();
}

const Shape kAny = Shape::UnknownRank();

TEST(CalledShapes, FollowTheShapesOfACall) {
  const FunctionPtr twice =
      Traced("twice", {{DType::kFloat, kAny}}, [](OpScope& s, const Values& x) {
        return Values{s("AddV2", {x[0], x[0]})};
      });
  const FunctionPtr outer = Traced("outer", {{DType::kFloat, kAny}},
                                   [&](OpScope& s, const Values& x) {
                                     return Values{CallHere(s, twice, x)};
                                   });
  const Body calls = [&](OpScope& s, const Values& x) {
    return Values{CallHere(s, outer, x)};
  };
  EXPECT_EQ(ShapeOf({{DType::kFloat, Shape{2, -1}}}, calls),
            Shape({2, -1}).ToString());
  EXPECT_EQ(ShapeOf({{DType::kFloat, kAny}}, calls), kAny.ToString());
}

TEST(CalledShapes, FollowTheValuesOfACall) {
  const ArgTypes takes = {{DType::kInt32, Shape{2}}};
  const FunctionPtr zeros =
      Traced("zeros", takes, [](OpScope& s, const Values& x) {
        return Values{s("Fill", {x[0], s.Const(Tensor::Scalar<float>(0))})};
      });
  EXPECT_EQ(
      ShapeOf({},
              [&](OpScope& s, const Values&) {
                const Value size = s.Const(Tensor::Vector<int32_t>({3, 5}));
                return Values{CallHere(s, zeros, {size})};
              }),
      Shape({3, 5}).ToString());
}

// As many calls as there are leaves of a tree 40 levels deep.
TEST(CalledShapes, ManyCallsAreGivenUp) {
  FunctionPtr f = Traced(
      "leaf", {{DType::kFloat, kAny}},
      [](OpScope& s, const Values& x) { return Values{s("Neg", {x[0]})}; });
  for (int level = 0; level < 40; ++level) {
    const FunctionPtr inner = f;
    f = Traced(
        "level", {{DType::kFloat, kAny}}, [&](OpScope& s, const Values& x) {
          return Values{
              s("AddV2", {CallHere(s, inner, x), CallHere(s, inner, {x[0]})})};
        });
  }
  EXPECT_EQ(ShapeOf({{DType::kFloat, Shape{2}}},
                    [&](OpScope& s, const Values& x) {
                      return Values{CallHere(s, f, x)};
                    }),
            kAny.ToString());
}

}  // namespace
}  // namespace headrace
