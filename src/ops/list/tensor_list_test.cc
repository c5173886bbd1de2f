#include "ops/list/tensor_list.h"

#include "eager/eager_emitter.h"
#include "gtest/gtest.h"
#include "op/registry.h"

namespace headrace {
namespace {

const AttrMap kFloats = {{"element_dtype", DType::kFloat}};

Tensor Reserve(int n) {
  return (*RunOp("TensorListReserve",
                 {Tensor::Vector<int32_t>({2}), Tensor::Scalar<int32_t>(n)},
                 kFloats))[0];
}

Tensor Set(const Tensor& list, int i, float v) {
  auto r = RunOp("TensorListSetItem", {list, Tensor::Scalar<int32_t>(i),
                                       Tensor::Vector<float>({v, v})});
  EXPECT_TRUE(r.ok()) << r.status();
  return (*r)[0];
}

TEST(TensorList, OldListsKeepTheirElements) {
  Tensor a = Reserve(2);
  Tensor b = Set(a, 0, 1);
  Tensor c = Set(b, 0, 2);
  auto item = [&](const Tensor& l) {
    return (*RunOp(
        "TensorListGetItem",
        {l, Tensor::Scalar<int32_t>(0), Tensor::Vector<int32_t>({2})},
        kFloats))[0]
        .data<float>()[0];
  };
  EXPECT_EQ(item(a), 0);
  EXPECT_EQ(item(b), 1);
  EXPECT_EQ(item(c), 2);
}

// What a graph's run does: it hands the list over with its last use.
TEST(TensorList, AListThatNobodyElseHoldsIsChangedInPlace) {
  Tensor list = Set(Reserve(3), 0, 1);
  const void* before = list.scalar<Variant>().value().get();
  auto op = *ResolveOp(**LookUpOp("TensorListSetItem"),
                       {DType::kVariant, DType::kInt32, DType::kFloat}, {});
  Kernel* kernel = *op->EagerKernel();
  Tensor index = Tensor::Scalar<int32_t>(1);
  Tensor item = Tensor::Vector<float>({5, 5}), out;
  Tensor* inputs[] = {&list, &index, &item};
  Tensor* outputs[] = {&out};
  RunServices services;
  KernelContext c(*op, inputs, outputs, services);
  ASSERT_TRUE(kernel->Run(c).ok());
  EXPECT_EQ(out.scalar<Variant>().value().get(), before);
}

}  // namespace
}  // namespace headrace
