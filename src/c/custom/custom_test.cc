// Mistakes of users' ops and kernels: TensorFlow's library crashes on many.
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow/c/eager/c_api.h"
#include "tensorflow/c/kernels.h"
#include "tensorflow/c/ops.h"

namespace {

class CustomOps : public testing::Test {
 protected:
  CustomOps() {
    TFE_ContextOptions* options = TFE_NewContextOptions();
    context_ = TFE_NewContext(options, status_);
    TFE_DeleteContextOptions(options);
  }
  ~CustomOps() override {
    TFE_DeleteContext(context_);
    TF_DeleteStatus(status_);
  }
  void ExpectOk() { ExpectError(TF_OK); }
  void ExpectError(TF_Code code, const char* part = "") {
    EXPECT_EQ(TF_GetCode(status_), code) << TF_Message(status_);
    EXPECT_NE(std::string(TF_Message(status_)).find(part), std::string::npos)
        << TF_Message(status_);
    TF_SetStatus(status_, TF_OK, "");
  }

  // An op "y = op(x)" of floats whose shape is the input's.
  void Define(const char* name, const char* output = "y: float",
              void (*shape)(TF_ShapeInferenceContext*, TF_Status*) = Like) {
    TF_OpDefinitionBuilder* b = TF_NewOpDefinitionBuilder(name);
    TF_OpDefinitionBuilderAddInput(b, "x: float");
    TF_OpDefinitionBuilderAddOutput(b, output);
    TF_OpDefinitionBuilderSetShapeInferenceFunction(b, shape);
    TF_RegisterOpDefinition(b, status_);
  }
  void AddKernel(const char* op, void (*compute)(void*, TF_OpKernelContext*),
                 void* (*create)(TF_OpKernelConstruction*) = nullptr) {
    TF_RegisterKernelBuilder(
        op, TF_NewKernelBuilder(op, "CPU", create, compute, nullptr), status_);
  }
  // Both, which succeed.
  void Make(const char* op, void (*compute)(void*, TF_OpKernelContext*)) {
    Define(op);
    ExpectOk();
    AddKernel(op, compute);
    ExpectOk();
  }

  // op(a vector of two), or null.
  TF_Tensor* Run(const char* name) {
    const int64_t two = 2;
    TF_Tensor* t = TF_AllocateTensor(TF_FLOAT, &two, 1, 8);
    static_cast<float*>(TF_TensorData(t))[0] = 3;
    static_cast<float*>(TF_TensorData(t))[1] = 4;
    TFE_TensorHandle* in = TFE_NewTensorHandle(t, status_);
    TFE_Op* op = TFE_NewOp(context_, name, status_);
    TFE_OpAddInput(op, in, status_);
    TFE_TensorHandle* out = nullptr;
    int count = 1;
    TFE_Execute(op, &out, &count, status_);
    TF_Tensor* result = nullptr;
    if (TF_GetCode(status_) == TF_OK) {
      result = TFE_TensorHandleResolve(out, status_);
      TFE_DeleteTensorHandle(out);
    }
    TFE_DeleteOp(op);
    TFE_DeleteTensorHandle(in);
    TF_DeleteTensor(t);
    return result;
  }

  static void Like(TF_ShapeInferenceContext* ctx, TF_Status* status) {
    TF_ShapeHandle* shape = TF_NewShapeHandle();
    TF_ShapeInferenceContextGetInput(ctx, 0, shape, status);
    TF_ShapeInferenceContextSetOutput(ctx, 0, shape, status);
    TF_DeleteShapeHandle(shape);
  }
  static void Copy(void*, TF_OpKernelContext* ctx) {
    TF_Status* s = TF_NewStatus();
    TF_Tensor* in = nullptr;
    TF_GetInput(ctx, 0, &in, s);
    TF_SetOutput(ctx, 0, in, s);
    TF_DeleteTensor(in);
    TF_DeleteStatus(s);
  }

  TF_Status* status_ = TF_NewStatus();
  TFE_Context* context_ = nullptr;
};

TEST_F(CustomOps, NamesAreTakenOnce) {
  Make("CustomOnce", Copy);
  Define("CustomOnce");
  ExpectError(TF_ALREADY_EXISTS, "CustomOnce");
  AddKernel("CustomOnce", Copy);
  ExpectError(TF_ALREADY_EXISTS, "CustomOnce");
  Define("MatMul");
  ExpectError(TF_ALREADY_EXISTS, "MatMul");
  AddKernel("MatMul", Copy);
  ExpectError(TF_ALREADY_EXISTS, "MatMul");
  TF_Tensor* t = Run("CustomOnce");
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(static_cast<float*>(TF_TensorData(t))[1], 4);
  TF_DeleteTensor(t);
}

TEST_F(CustomOps, MistakesInDefinitionsAreErrors) {
  Define("custom_small");
  ExpectError(TF_INVALID_ARGUMENT, "CamelCase");
  Define("CustomNoType", "y: T");
  ExpectError(TF_INVALID_ARGUMENT, "'T'");
  Define("CustomNoColon", "y");
  ExpectError(TF_INVALID_ARGUMENT, "no ':'");
  TF_RegisterOpDefinition(nullptr, status_);
  ExpectError(TF_INVALID_ARGUMENT, "null");
  TF_RegisterOpDefinition(TF_NewOpDefinitionBuilder(nullptr), status_);
  ExpectError(TF_INVALID_ARGUMENT, "null");
  TF_OpDefinitionBuilder* b = TF_NewOpDefinitionBuilder("CustomNull");
  TF_OpDefinitionBuilderAddAttr(b, nullptr);
  TF_RegisterOpDefinition(b, status_);
  ExpectError(TF_INVALID_ARGUMENT, "null");
  TF_DeleteOpDefinitionBuilder(TF_NewOpDefinitionBuilder("CustomNever"));
  AddKernel("CustomNoKernel", nullptr);
  ExpectError(TF_INVALID_ARGUMENT, "compute_func");
  TF_KernelBuilder* k = TF_NewKernelBuilder("X", "CPU", nullptr, Copy, nullptr);
  TF_KernelBuilder_TypeConstraint(k, "T", static_cast<TF_DataType>(999),
                                  status_);
  ExpectError(TF_INVALID_ARGUMENT);
  TF_RegisterKernelBuilderWithKernelDef("\xff\xff", "x", k, status_);
  ExpectError(TF_INVALID_ARGUMENT, "KernelDef");
  EXPECT_EQ(TFE_NewOp(context_, "CustomNoType", status_), nullptr);
  ExpectError(TF_NOT_FOUND, "CustomNoType");
}

TEST_F(CustomOps, AnOpWithoutAKernelSaysSo) {
  Define("CustomNoKernelYet");
  ExpectOk();
  EXPECT_EQ(Run("CustomNoKernelYet"), nullptr);
  ExpectError(TF_NOT_FOUND, "CustomNoKernelYet");
  AddKernel("CustomNoKernelYet", Copy);
  ExpectOk();
  TF_Tensor* t = Run("CustomNoKernelYet");
  EXPECT_NE(t, nullptr);
  TF_DeleteTensor(t);
}

TEST_F(CustomOps, OutputsAreChecked) {
  Make("CustomNothing", [](void*, TF_OpKernelContext*) {});
  EXPECT_EQ(Run("CustomNothing"), nullptr);
  ExpectError(TF_INVALID_ARGUMENT, "Missing 0-th output");
  Make("CustomOtherShape", [](void*, TF_OpKernelContext* ctx) {
    TF_Status* s = TF_NewStatus();
    const int64_t three = 3;
    TF_DeleteTensor(TF_AllocateOutput(ctx, 0, TF_FLOAT, &three, 1, 12, s));
    TF_DeleteStatus(s);
  });
  EXPECT_EQ(Run("CustomOtherShape"), nullptr);
  ExpectError(TF_INVALID_ARGUMENT, "made output 0 of shape [3]");
  Make("CustomOtherType", [](void*, TF_OpKernelContext* ctx) {
    TF_Status* s = TF_NewStatus();
    const int64_t two = 2;
    EXPECT_EQ(TF_AllocateOutput(ctx, 0, TF_INT32, &two, 1, 8, s), nullptr);
    TF_OpKernelContext_Failure(ctx, s);
    TF_Tensor* t = TF_AllocateTensor(TF_INT32, &two, 1, 8);
    TF_SetOutput(ctx, 0, t, s);
    EXPECT_EQ(TF_GetCode(s), TF_INVALID_ARGUMENT);
    TF_DeleteTensor(t);
    TF_DeleteStatus(s);
  });
  EXPECT_EQ(Run("CustomOtherType"), nullptr);
  ExpectError(TF_INVALID_ARGUMENT, "is of type float, not int32");
}

void Misuse(void*, TF_OpKernelContext* ctx) {
  TF_Status* s = TF_NewStatus();
  TF_Tensor* t = nullptr;
  TF_GetInput(ctx, 1, &t, s);
  EXPECT_EQ(TF_GetCode(s), TF_OUT_OF_RANGE);
  TF_GetInput(ctx, -1, &t, s);
  EXPECT_EQ(TF_GetCode(s), TF_OUT_OF_RANGE);
  TF_GetInput(ctx, 0, nullptr, s);
  EXPECT_EQ(TF_GetCode(s), TF_INVALID_ARGUMENT);
  TF_SetOutput(ctx, 5, nullptr, s);
  EXPECT_EQ(TF_GetCode(s), TF_OUT_OF_RANGE);
  TF_SetOutput(ctx, 0, nullptr, s);
  EXPECT_EQ(TF_GetCode(s), TF_INVALID_ARGUMENT);
  EXPECT_EQ(TF_GetMutableOutput(ctx, 0, s), nullptr);
  EXPECT_EQ(TF_GetCode(s), TF_FAILED_PRECONDITION);
  const int64_t negative = -1, huge = int64_t{1} << 62;
  EXPECT_EQ(TF_AllocateOutput(ctx, 0, TF_FLOAT, &negative, 1, 4, s), nullptr);
  EXPECT_EQ(TF_AllocateTemp(ctx, TF_FLOAT, &huge, 1, nullptr, s), nullptr);
  EXPECT_NE(TF_GetCode(s), TF_OK);
  EXPECT_EQ(TF_AllocateTemp(ctx, static_cast<TF_DataType>(77), nullptr, 0,
                            nullptr, s),
            nullptr);
  EXPECT_EQ(TF_GetCode(s), TF_INVALID_ARGUMENT);
  EXPECT_EQ(TF_GetStream(ctx, s), nullptr);
  EXPECT_EQ(TF_GetCode(s), TF_UNIMPLEMENTED);
  EXPECT_EQ(TF_InputDatatype(ctx, 9), static_cast<TF_DataType>(0));
  EXPECT_EQ(TF_ExpectedOutputDataType(ctx, 0), TF_FLOAT);
  EXPECT_EQ(TF_NumInputs(ctx), 1);
  const int bad = 4, good = 0;
  int forwarded = 7;
  const int64_t two = 2;
  EXPECT_EQ(
      TF_ForwardInputOrAllocateOutput(ctx, &bad, 1, 0, &two, 1, &forwarded, s),
      nullptr);
  t = TF_ForwardInputOrAllocateOutput(ctx, &good, 1, 0, &two, 1, &forwarded, s);
  EXPECT_NE(t, nullptr);
  static_cast<float*>(TF_TensorData(t))[0] = 1;
  static_cast<float*>(TF_TensorData(t))[1] = 2;
  TF_DeleteTensor(t);
  TF_DeleteStatus(s);
}

TEST_F(CustomOps, CallsAreChecked) {
  Make("CustomMisuse", Misuse);
  TF_Tensor* t = Run("CustomMisuse");
  ASSERT_NE(t, nullptr) << TF_Message(status_);
  EXPECT_EQ(static_cast<float*>(TF_TensorData(t))[1], 2);
  TF_DeleteTensor(t);
}

TEST_F(CustomOps, WhatIsThrownIsAnError) {
  Make("CustomThrows", [](void*, TF_OpKernelContext*) {
    throw std::runtime_error("a kernel's own");
  });
  EXPECT_EQ(Run("CustomThrows"), nullptr);
  ExpectError(TF_INTERNAL, "a kernel's own");
}

TEST_F(CustomOps, ShapeFunctionsAreChecked) {
  Define("CustomShapeFails", "y: float",
         [](TF_ShapeInferenceContext*, TF_Status* s) {
           TF_SetStatus(s, TF_INVALID_ARGUMENT, "no such shape");
         });
  ExpectOk();
  AddKernel("CustomShapeFails", Copy);
  EXPECT_EQ(Run("CustomShapeFails"), nullptr);
  ExpectError(TF_INVALID_ARGUMENT, "no such shape");
  Define("CustomShapes", "y: float",
         [](TF_ShapeInferenceContext* ctx, TF_Status* s) {
           TF_ShapeHandle* a = TF_NewShapeHandle();
           TF_ShapeHandle* b = TF_NewShapeHandle();
           EXPECT_EQ(TF_ShapeInferenceContextRankKnown(ctx, a), 0);
           TF_ShapeInferenceContextGetInput(ctx, 3, a, s);
           EXPECT_EQ(TF_GetCode(s), TF_INVALID_ARGUMENT);
           TF_ShapeInferenceContextGetInput(ctx, 0, a, s);
           TF_ShapeInferenceContextWithRank(ctx, a, 3, b, s);
           EXPECT_EQ(TF_GetCode(s), TF_INVALID_ARGUMENT);
           TF_ShapeInferenceContextWithRank(ctx, a, -5, b, s);
           EXPECT_EQ(TF_GetCode(s), TF_INVALID_ARGUMENT);
           TF_ShapeInferenceContextSubshape(ctx, a, 1, 0, b, s);
           EXPECT_EQ(TF_GetCode(s), TF_INVALID_ARGUMENT);
           TF_ShapeInferenceContextConcatenateShapes(ctx, a, a, b, s);
           EXPECT_EQ(TF_ShapeInferenceContextRank(ctx, b), 2);
           TF_ShapeInferenceContextSubshape(ctx, b, -1, INT64_MAX, b, s);
           TF_DimensionHandle* d = TF_NewDimensionHandle();
           EXPECT_EQ(TF_DimensionHandleValueKnown(d), 0);
           TF_ShapeInferenceContextDim(ctx, b, -1, d);
           EXPECT_EQ(TF_DimensionHandleValue(d), 2);
           TF_ShapeInferenceContextDim(ctx, b, 9, d);
           EXPECT_EQ(TF_DimensionHandleValueKnown(d), 0);
           TF_DataType type;
           TF_ShapeInferenceContext_GetAttrType(ctx, "none", &type, s);
           EXPECT_EQ(TF_GetCode(s), TF_NOT_FOUND);
           TF_ShapeInferenceContextSetOutput(ctx, 1, b, s);
           EXPECT_EQ(TF_GetCode(s), TF_INVALID_ARGUMENT);
           TF_ShapeInferenceContextSetOutput(ctx, 0, b, s);
           TF_DeleteDimensionHandle(d);
           TF_DeleteShapeHandle(a);
           TF_DeleteShapeHandle(b);
         });
  AddKernel("CustomShapes", Copy);
  ExpectOk();
  TF_Tensor* t = Run("CustomShapes");
  EXPECT_NE(t, nullptr) << TF_Message(status_);
  TF_DeleteTensor(t);
}

TEST_F(CustomOps, WorkMayGoOnElsewhere) {
  Define("CustomThreads");
  TF_RegisterKernelBuilder(
      "CustomThreads",
      TF_NewAsyncKernelBuilder(
          "CustomThreads", "CPU", nullptr,
          [](void*, TF_OpKernelContext* ctx,
             TF_AsyncOpKernelDoneCallback* done) {
            std::thread([=] {
              Copy(nullptr, ctx);
              TF_IncNumDeferredOps(ctx);
              std::thread([=] { TF_DecNumDeferredOps(ctx); }).detach();
              TF_RunAsyncOpKernelDoneCallback(done);
            }).detach();
          },
          nullptr),
      status_);
  ExpectOk();
  for (int i = 0; i < 50; ++i) {
    TF_Tensor* t = Run("CustomThreads");
    ASSERT_NE(t, nullptr) << TF_Message(status_);
    TF_DeleteTensor(t);
  }
}

TEST_F(CustomOps, OpsComeWhileOthersRun) {
  Make("CustomAtAnyTime", Copy);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([i] {
      TF_Status* s = TF_NewStatus();
      for (int k = 0; k < 50; ++k) {
        const std::string name =
            "CustomOf" + std::to_string(i) + "And" + std::to_string(k);
        TF_RegisterOpDefinition(TF_NewOpDefinitionBuilder(name.c_str()), s);
        EXPECT_EQ(TF_GetCode(s), TF_OK) << TF_Message(s);
      }
      TF_DeleteStatus(s);
    });
  }
  for (int k = 0; k < 200; ++k) TF_DeleteTensor(Run("CustomAtAnyTime"));
  for (std::thread& t : threads) t.join();
  ExpectOk();
}

}  // namespace
