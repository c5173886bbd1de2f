#include "eager/eager_emitter.h"
#include "gtest/gtest.h"
#include "op/resource.h"
#include "tensor/variant.h"

namespace headrace {
namespace {

constexpr char kAnonymous[] = "cd2c89b7-88b7-44c8-ad83-06c2a9158347";

Tensor MakeVariable(Tensor value, const char* name = kAnonymous) {
  Tensor handle = (*RunOp("VarHandleOp", {},
                          {{"dtype", value.dtype()},
                           {"shape", value.shape()},
                           {"shared_name", name}}))[0];
  EXPECT_TRUE(RunOp("AssignVariableOp", {handle, value}).ok());
  return handle;
}

Tensor Read(const Tensor& handle, DType dtype = DType::kFloat) {
  auto r = RunOp("ReadVariableOp", {handle}, {{"dtype", dtype}});
  EXPECT_TRUE(r.ok()) << r.status();
  return (*r)[0];
}

TEST(Variable, AValueOnceReadNeverChanges) {
  Tensor v = MakeVariable(Tensor::Vector<float>({1, 2, 3}));
  Tensor before = Read(v);
  ASSERT_TRUE(
      RunOp("AssignAddVariableOp", {v, Tensor::Vector<float>({1, 1, 1})}).ok());
  EXPECT_EQ(before.data<float>()[0], 1);
  EXPECT_EQ(Read(v).data<float>()[0], 2);
}

// What ends may be Python's, and wait for a thread that waits for the lock.
TEST(Variable, AReplacedValueEndsBehindTheLock) {
  static int ended = 0;
  static float memory[2] = {1, 2};
  Variable v(DType::kFloat, Shape{2});
  v.Assign(Tensor::Wrap(DType::kFloat, Shape{2}, memory, sizeof(memory), &v,
                        [](void* variable) {
                          auto* v = static_cast<Variable*>(variable);
                          ended += v->initialized();
                        }));
  v.Assign(Tensor::Vector<float>({3, 4}));
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(v.Read("v")->data<float>()[0], 3);
}

TEST(Variable, UpdatesInPlaceWhenNobodyReads) {
  Tensor v = MakeVariable(*Tensor::Vector<float>({1, 2, 3}).Clone());
  void* place = Read(v).raw();
  ASSERT_TRUE(
      RunOp("AssignAddVariableOp", {v, Tensor::Vector<float>({1, 1, 1})}).ok());
  EXPECT_EQ(Read(v).raw(), place);
}

TEST(Variable, AnonymousOnesAreDistinctAndNamedOnesShared) {
  Tensor a = MakeVariable(Tensor::Scalar(1.f));
  Tensor b = MakeVariable(Tensor::Scalar(2.f));
  EXPECT_EQ(Read(a).scalar<float>(), 1);
  Tensor c = MakeVariable(Tensor::Scalar(3.f), "variable_test");
  Tensor d = MakeVariable(Tensor::Scalar(4.f), "variable_test");
  EXPECT_EQ(Read(c).scalar<float>(), 4);
  ASSERT_TRUE(RunOp("DestroyResourceOp", {c}).ok());
  EXPECT_EQ(
      RunOp("ReadVariableOp", {d}, {{"dtype", DType::kFloat}}).status().code(),
      absl::StatusCode::kFailedPrecondition);
}

TEST(Variable, ScattersAreAllOrNothing) {
  Tensor v = MakeVariable(Tensor::Vector<float>({1, 2, 3}));
  auto bad = RunOp("ResourceScatterAdd",
                   {v, Tensor::Vector<int32_t>({0, 3}), Tensor::Scalar(5.f)});
  EXPECT_EQ(bad.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Read(v).data<float>()[0], 1);
}

}  // namespace
}  // namespace headrace
