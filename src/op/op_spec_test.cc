#include "op/op_spec.h"

#include "gtest/gtest.h"

namespace headrace {
namespace {

AttrDef Attr(StringView spec) {
  StatusOr<AttrDef> attr = ParseAttrSpec(spec);
  EXPECT_TRUE(attr.ok()) << spec << ": " << attr.status();
  return attr.ok() ? *attr : AttrDef();
}

TEST(OpSpec, KindsAndLimits) {
  EXPECT_EQ(Attr("n: int >= 2").minimum, 2);
  EXPECT_EQ(Attr("n : list( float )>= 1 = [1, 2.5]").kind,
            AttrKind::kFloatList);
  EXPECT_EQ(Attr("T: {int32, realnumbertype}").allowed_types.size(), 13u);
  const AttrDef mode = Attr("mode: {'a, b', \"c\"} = 'c'");
  EXPECT_EQ(mode.allowed_strings, (std::vector<std::string>{"a, b", "c"}));
  EXPECT_TRUE(AttrEquals(mode.default_value, AttrValue("c")));
}

TEST(OpSpec, Defaults) {
  const auto value = [](StringView spec) { return Attr(spec).default_value; };
  EXPECT_TRUE(AttrEquals(value("T: type = DT_HALF"), AttrValue(DType::kHalf)));
  EXPECT_TRUE(AttrEquals(value("s: string = 'a\\nb'"), AttrValue("a\nb")));
  EXPECT_TRUE(AttrEquals(value("s: string = ' \t'"), AttrValue(" \t")));
  EXPECT_TRUE(AttrEquals(value("s: shape = {}"), AttrValue(Shape())));
  EXPECT_TRUE(
      AttrEquals(value("s: shape = { dim { size: 2 } dim { size: -1 } }"),
                 AttrValue(Shape{2, -1})));
  EXPECT_TRUE(AttrEquals(value("s: shape = { unknown_rank: true }"),
                         AttrValue(Shape::UnknownRank())));
  EXPECT_TRUE(AttrEquals(value("t: tensor = { dtype: DT_INT32 int_val: 7 "
                               "tensor_shape { } }"),
                         AttrValue(Tensor::Scalar<int32_t>(7))));
  EXPECT_TRUE(AttrEquals(value("l: list(string) = ['a, b', 'c']"),
                         AttrValue(std::vector<std::string>{"a, b", "c"})));
  EXPECT_TRUE(AttrEquals(value("l: list(shape) = [[1], []]"),
                         AttrValue(std::vector<Shape>{Shape{1}, Shape{}})));
}

TEST(OpSpec, TextOfAnotherFormIsRefused) {
  for (const char* spec :
       {"", "n", "n: nothing", "n: int = x", "n: int >= x", "b: bool = 1",
        "T: type = DT_NONE", "T: {float, 'a'}", "T: {float, what}",
        "s: shape = {", "s: shape = [-2]", "l: list(int) = 3",
        "t: tensor = { dtype: 99 }", "l: list(list(int))", "s: string = 'a\\q'",
        "n: int >= 99999999999999999999"}) {
    EXPECT_FALSE(ParseAttrSpec(spec).ok()) << spec;
  }
  for (const char* spec : {"", "x", "x:", "x: * float", "x: 3 *"}) {
    EXPECT_FALSE(ParseArgSpec(spec).ok()) << spec;
  }
}

StatusOr<OpDef> Made(const char* name, std::vector<const char*> attrs,
                     std::vector<const char*> inputs) {
  OpDef def;
  def.name = name;
  for (const char* a : attrs) {
    HR_ASSIGN_OR_RETURN(AttrDef attr, ParseAttrSpec(a));
    def.attrs.push_back(std::move(attr));
  }
  for (const char* i : inputs) {
    HR_ASSIGN_OR_RETURN(ArgDef arg, ParseArgSpec(i));
    def.inputs.push_back(std::move(arg));
  }
  HR_RETURN_IF_ERROR(ResolveArgSpecs(&def));
  HR_RETURN_IF_ERROR(CheckUsersOp(&def));
  return def;
}

TEST(OpSpec, UsersOpsAreChecked) {
  const auto op = Made("Op", {"N: int", "T: type", "L: list(type)"},
                       {"x: N * T", "y: L", "z: Ref(float)"});
  ASSERT_TRUE(op.ok()) << op.status();
  EXPECT_EQ(op->inputs[0].number_attr, "N");
  EXPECT_EQ(op->inputs[1].type_list_attr, "L");
  EXPECT_TRUE(op->inputs[2].is_ref);
  EXPECT_EQ(op->attrs[0].minimum, 1);
  EXPECT_FALSE(Made("op", {}, {}).ok());
  EXPECT_FALSE(Made("", {}, {}).ok());
  EXPECT_FALSE(Made("An op", {}, {}).ok());
  EXPECT_FALSE(Made("Op", {}, {"x: T"}).ok());
  EXPECT_FALSE(Made("Op", {"T: int"}, {"x: T"}).ok());
  EXPECT_FALSE(Made("Op", {"N: float"}, {"x: N * int32"}).ok());
  EXPECT_FALSE(Made("Op", {"L: list(type)"}, {"x: L * int32"}).ok());
  EXPECT_FALSE(Made("Op", {"a: int", "a: int"}, {}).ok());
  EXPECT_FALSE(Made("Op", {}, {"x: float", "x: float"}).ok());
  EXPECT_FALSE(Made("Op", {}, {"1x: float"}).ok());
}

}  // namespace
}  // namespace headrace
