#include "eager/eager_emitter.h"
#include "gtest/gtest.h"

namespace headrace {
namespace {

Tensor Numbers(Shape shape) {
  Tensor t = *Tensor::Allocate(DType::kFloat, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    t.data<float>()[i] = static_cast<float>(i * 7 % 11) - 5;
  }
  return t;
}

Tensor One(StringView op, std::vector<Tensor> in, AttrMap attrs = {}) {
  auto r = RunOp(op, in, attrs);
  EXPECT_TRUE(r.ok()) << r.status();
  return r.ok() ? (*r)[0] : Tensor();
}

// A fused op gives the same bits as its parts.
TEST(FusedProducts, EqualTheirParts) {
  const std::vector<std::string> fused{"BiasAdd", "Relu"};
  for (int64_t m : {1, 5, 200}) {
    Tensor a = Numbers({m, 40}), b = Numbers({40, 33}), bias = Numbers({33});
    Tensor whole = One("_FusedMatMul", {a, b, bias},
                       {{"num_args", 1}, {"fused_ops", fused}});
    Tensor parts = One("Relu", {One("BiasAdd", {One("MatMul", {a, b}), bias})});
    EXPECT_EQ(std::memcmp(whole.raw(), parts.raw(), parts.bytes()), 0);
  }
  const std::vector<int64_t> ones(4, 1);
  Tensor x = Numbers({2, 9, 9, 4}), f = Numbers({3, 3, 4, 8}),
         bias = Numbers({8});
  AttrMap conv{{"strides", ones}, {"padding", "SAME"}};
  Tensor parts =
      One("Relu", {One("BiasAdd", {One("Conv2D", {x, f}, conv), bias})});
  conv.Set("num_args", 1);
  conv.Set("num_host_args", 0);
  conv.Set("TArgs", std::vector<DType>{DType::kFloat});
  conv.Set("fused_ops", fused);
  Tensor whole = One("_FusedConv2D", {x, f, bias}, conv);
  EXPECT_EQ(std::memcmp(whole.raw(), parts.raw(), parts.bytes()), 0);
}

TEST(FusedProducts, RefuseWhatTheyDoNotKnow) {
  Tensor a = Numbers({2, 2});
  const std::vector<std::string> fused{"BiasAdd", "Sort"};
  EXPECT_EQ(RunOp("_FusedMatMul", {a, a, Numbers({2})},
                  {{"num_args", 1}, {"fused_ops", fused}})
                .status()
                .code(),
            absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace headrace
