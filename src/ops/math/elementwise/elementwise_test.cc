#include "ops/math/elementwise/elementwise.h"

#include <chrono>
#include <cmath>

#include "eager/eager_emitter.h"
#include "gtest/gtest.h"

namespace headrace {
namespace {

Tensor Call(StringView op, std::vector<Tensor> inputs, AttrMap attrs = {}) {
  auto r = RunOp(op, inputs, attrs);
  EXPECT_TRUE(r.ok()) << op << ": " << r.status();
  return r.ok() ? (*r)[0] : Tensor();
}
std::string Error(StringView op, std::vector<Tensor> inputs,
                  AttrMap attrs = {}) {
  auto r = RunOp(op, inputs, attrs);
  return r.ok() ? "ok" : std::string(r.status().message());
}
template <typename T>
Tensor Make(const Shape& shape, T first = 0) {
  Tensor t = *Tensor::Allocate(DTypeOf<T>, shape);
  for (T& v : t.span<T>()) v = first++;
  return t;
}
template <typename T>
std::vector<T> Values(const Tensor& t) {
  auto s = t.span<T>();
  return std::vector<T>(s.begin(), s.end());
}

// Against the definition: every element found by its index.
void CheckBroadcast(const Shape& a, const Shape& b) {
  Tensor x = Make<float>(a), y = Make<float>(b, 1000);
  Tensor z = Call("Sub", {x, y});
  const Shape& out = z.shape();
  ASSERT_EQ(out, *BroadcastShapes(a, b));
  for (int64_t i = 0; i < out.num_elements(); ++i) {
    auto at = [&](const Shape& s) {
      int64_t rest = i, offset = 0, step = 1;
      for (int d = out.rank() - 1, k = s.rank() - 1; d >= 0; --d, --k) {
        const int64_t index = rest % out[d];
        rest /= out[d];
        if (k < 0) continue;
        offset += s[k] == 1 ? 0 : index * step;
        step *= s[k];
      }
      return offset;
    };
    ASSERT_EQ(z.data<float>()[i],
              x.data<float>()[at(a)] - y.data<float>()[at(b)])
        << a.ToString() << b.ToString() << " at " << i;
  }
}

TEST(Elementwise, Broadcasts) {
  CheckBroadcast({2, 3}, {2, 3});
  CheckBroadcast({2, 3}, {});
  CheckBroadcast({}, {4});
  CheckBroadcast({2, 3}, {3});
  CheckBroadcast({2, 1}, {1, 3});
  CheckBroadcast({5, 1, 7}, {4, 1});
  CheckBroadcast({3000, 3}, {3});
  CheckBroadcast({3000, 3}, {3000, 1});
  CheckBroadcast({1, 3}, {3000, 1});
  CheckBroadcast({200, 100}, {100});
  CheckBroadcast({200, 100}, {200, 1});
  CheckBroadcast({7, 1, 5, 1, 300}, {1, 6, 1, 2, 1});
  CheckBroadcast({0, 3}, {3});
  CheckBroadcast({1, 1}, {1});
  CheckBroadcast({70000, 2}, {2});
  CheckBroadcast({300, 1, 4}, {1, 5, 4});
}

TEST(Elementwise, RefusesShapes) {
  EXPECT_EQ(Error("AddV2", {Make<float>({2, 3}), Make<float>({4})}),
            "Incompatible shapes: [2,3] vs. [4] [Op:AddV2]");
  EXPECT_EQ(Error("TanhGrad", {Make<float>({2, 3}), Make<float>({3})}),
            "The two arguments to a cwise op must have same number of "
            "elements, got 6 and 3 [Op:TanhGrad]");
  Tensor z = Call("Equal", {Make<float>({2, 3}), Make<float>({4})},
                  {{"incompatible_shape_error", false}});
  EXPECT_EQ(z.shape(), Shape());
  EXPECT_FALSE(z.scalar<bool>());
}

TEST(Elementwise, IntegerErrors) {
  Tensor a = Tensor::Vector<int32_t>({1, 2}),
         b = Tensor::Vector<int32_t>({0, 1});
  EXPECT_EQ(Error("FloorDiv", {a, b}),
            "Integer division by zero [Op:FloorDiv]");
  EXPECT_EQ(Error("Pow", {a, Tensor::Vector<int32_t>({-1, 1})}),
            "Integers to negative integer powers are not allowed [Op:Pow]");
}

TEST(Elementwise, Strings) {
  Tensor a = Tensor::Vector<std::string>({"a", "b"});
  Tensor b = Tensor::Scalar<std::string>("c");
  EXPECT_EQ(Values<std::string>(Call("Add", {a, b})),
            (std::vector<std::string>{"ac", "bc"}));
  EXPECT_EQ(Values<bool>(Call("Equal", {a, Tensor::Scalar<std::string>("b")})),
            (std::vector<bool>{false, true}));
}

TEST(Elementwise, Selects) {
  Tensor c = *Tensor::Allocate(DType::kBool, {2, 1});
  c.data<bool>()[0] = true;
  c.data<bool>()[1] = false;
  Tensor z =
      Call("SelectV2", {c, Tensor::Scalar<float>(1), Make<float>({3}, 5)});
  EXPECT_EQ(Values<float>(z), (std::vector<float>{1, 1, 1, 5, 6, 7}));
  Tensor rows = Call("Select", {c.WithShape({2}), Make<float>({2, 2}),
                                Make<float>({2, 2}, 10)});
  EXPECT_EQ(Values<float>(rows), (std::vector<float>{0, 1, 12, 13}));
}

TEST(Elementwise, Casts) {
  Tensor x = Tensor::Vector<float>({1.5, -5.5, 300, 2e9});
  EXPECT_EQ(Values<int32_t>(Call("Cast", {x}, {{"DstT", DType::kInt32}})),
            (std::vector<int32_t>{1, -5, 300, 2000000000}));
  EXPECT_EQ(Error("Cast", {x}, {{"DstT", DType::kString}}),
            "Cast float to string is not supported [Op:Cast]");
  Tensor b = Call("Bitcast", {x}, {{"type", DType::kUint8}});
  EXPECT_EQ(b.shape(), (Shape{4, 4}));
  EXPECT_EQ(Call("Bitcast", {b}, {{"type", DType::kFloat}}).shape(), Shape{4});
}

TEST(Elementwise, BroadcastGradientArgs) {
  auto axes = [](std::vector<int32_t> a, std::vector<int32_t> b) {
    auto r = *RunOp("BroadcastGradientArgs",
                    {Tensor::Vector<int32_t>(a), Tensor::Vector<int32_t>(b)});
    return std::pair(Values<int32_t>(r[0]), Values<int32_t>(r[1]));
  };
  using V = std::vector<int32_t>;
  EXPECT_EQ(axes({2, 3}, {2, 3}), std::pair(V{}, V{}));
  EXPECT_EQ(axes({2, 1, 3}, {1, 3}), std::pair(V{1}, V({0, 1})));
  EXPECT_EQ(axes({}, {2}), std::pair(V{0}, V{}));
}

TEST(Elementwise, CheckNumerics) {
  Tensor x = Tensor::Vector<float>({1, NAN, INFINITY});
  EXPECT_EQ(Error("CheckNumerics", {x}, {{"message", "m"}}),
            "m : Tensor had Inf and NaN values [Op:CheckNumerics]");
  EXPECT_EQ(Error("CheckNumericsV2", {x}, {{"message", "m"}}),
            "m : Tensor had +Inf and NaN values [Op:CheckNumericsV2]");
  Tensor fine = Make<float>({100});
  EXPECT_TRUE(
      Call("CheckNumerics", {fine}, {{"message", ""}}).SharesBufferWith(fine));
}

}  // namespace
}  // namespace headrace
