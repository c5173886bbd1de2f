// A user's library of ops, as tests load it: nothing is linked to it, so that the
// program that loads it has the functions.
#include <string.h>

#include "tensorflow/c/kernels.h"
#include "tensorflow/c/ops.h"
#include "tensorflow/c/tf_tstring.h"

#define MOST_DIMS 8

// ---- Registering.

typedef struct Op {
  const char* name;
  const char* attrs[3];
  const char* inputs[3];
  const char* outputs[3];
  int stateful;
  void (*shape)(TF_ShapeInferenceContext*, TF_Status*);
} Op;

static void Define(const Op* op, TF_Status* s) {
  TF_OpDefinitionBuilder* b = TF_NewOpDefinitionBuilder(op->name);
  for (int i = 0; i < 3 && op->attrs[i]; ++i) {
    TF_OpDefinitionBuilderAddAttr(b, op->attrs[i]);
  }
  for (int i = 0; i < 3 && op->inputs[i]; ++i) {
    TF_OpDefinitionBuilderAddInput(b, op->inputs[i]);
  }
  for (int i = 0; i < 3 && op->outputs[i]; ++i) {
    TF_OpDefinitionBuilderAddOutput(b, op->outputs[i]);
  }
  TF_OpDefinitionBuilderSetIsStateful(b, op->stateful != 0);
  TF_OpDefinitionBuilderSetShapeInferenceFunction(b, op->shape);
  TF_RegisterOpDefinition(b, s);
}

static void AddKernel(const char* op, const char* attr, TF_DataType type,
                      void* (*create)(TF_OpKernelConstruction*),
                      void (*compute)(void*, TF_OpKernelContext*),
                      void (*destroy)(void*), TF_Status* s) {
  TF_KernelBuilder* b = TF_NewKernelBuilder(op, "CPU", create, compute, destroy);
  if (attr) TF_KernelBuilder_TypeConstraint(b, attr, type, s);
  TF_RegisterKernelBuilder(op, b, s);
}

static void LikeInput(TF_ShapeInferenceContext* ctx, TF_Status* s) {
  TF_ShapeHandle* shape = TF_NewShapeHandle();
  TF_ShapeInferenceContextGetInput(ctx, 0, shape, s);
  if (TF_GetCode(s) == TF_OK) {
    TF_ShapeInferenceContextSetOutput(ctx, 0, shape, s);
  }
  TF_DeleteShapeHandle(shape);
}

static void Scalar(TF_ShapeInferenceContext* ctx, TF_Status* s) {
  TF_ShapeHandle* shape = TF_ShapeInferenceContextScalar(ctx);
  TF_ShapeInferenceContextSetOutput(ctx, 0, shape, s);
  TF_DeleteShapeHandle(shape);
}

// ---- Helpers of kernels.

static TF_Tensor* Input(TF_OpKernelContext* ctx, int i, TF_Status* s) {
  TF_Tensor* t = NULL;
  TF_GetInput(ctx, i, &t, s);
  return t;
}

static TF_Tensor* OutputLike(TF_OpKernelContext* ctx, int i, const TF_Tensor* t,
                             TF_Status* s) {
  int64_t dims[MOST_DIMS];
  for (int d = 0; d < TF_NumDims(t) && d < MOST_DIMS; ++d) dims[d] = TF_Dim(t, d);
  return TF_AllocateOutput(ctx, i, TF_ExpectedOutputDataType(ctx, i), dims,
                           TF_NumDims(t), TF_TensorByteSize(t), s);
}

// Reports what went wrong, and frees.
static void Done(TF_OpKernelContext* ctx, TF_Tensor* a, TF_Tensor* b,
                 TF_Status* s) {
  if (TF_GetCode(s) != TF_OK) TF_OpKernelContext_Failure(ctx, s);
  if (a) TF_DeleteTensor(a);
  if (b) TF_DeleteTensor(b);
  TF_DeleteStatus(s);
}

// ---- MyZeroOut: all but the first element become zero.

static void ZeroOut(void* state, TF_OpKernelContext* ctx) {
  TF_Status* s = TF_NewStatus();
  TF_Tensor* in = Input(ctx, 0, s);
  TF_Tensor* out = in ? OutputLike(ctx, 0, in, s) : NULL;
  if (out && TF_TensorElementCount(in) > 0) {
    memset(TF_TensorData(out), 0, TF_TensorByteSize(out));
    memcpy(TF_TensorData(out), TF_TensorData(in), sizeof(int32_t));
  }
  Done(ctx, in, out, s);
}

// ---- MyScale: x times an attribute, for two types.

typedef struct Scale {
  int64_t factor;
} Scale;

static void* NewScale(TF_OpKernelConstruction* ctx) {
  TF_Status* s = TF_NewStatus();
  Scale* state = malloc(sizeof(Scale));
  TF_OpKernelConstruction_GetAttrInt64(ctx, "factor", &state->factor, s);
  if (TF_GetCode(s) == TF_OK && state->factor == 13) {
    TF_SetStatus(s, TF_INVALID_ARGUMENT, "13 is no factor");
  }
  if (TF_GetCode(s) != TF_OK) TF_OpKernelConstruction_Failure(ctx, s);
  TF_DeleteStatus(s);
  return state;
}

static void ScaleFloats(void* state, TF_OpKernelContext* ctx) {
  TF_Status* s = TF_NewStatus();
  TF_Tensor* in = Input(ctx, 0, s);
  TF_Tensor* out = in ? OutputLike(ctx, 0, in, s) : NULL;
  if (out) {
    const float* x = TF_TensorData(in);
    float* y = TF_TensorData(out);
    const int64_t n = TF_TensorElementCount(in);
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] * (float)((Scale*)state)->factor;
  }
  Done(ctx, in, out, s);
}

static void ScaleInts(void* state, TF_OpKernelContext* ctx) {
  TF_Status* s = TF_NewStatus();
  TF_Tensor* in = Input(ctx, 0, s);
  TF_Tensor* out = in ? OutputLike(ctx, 0, in, s) : NULL;
  if (out) {
    const int32_t* x = TF_TensorData(in);
    int32_t* y = TF_TensorData(out);
    const int64_t n = TF_TensorElementCount(in);
    for (int64_t i = 0; i < n; ++i) {
      y[i] = (int32_t)(x[i] * ((Scale*)state)->factor);
    }
  }
  Done(ctx, in, out, s);
}

// ---- MyShout: strings with a mark behind them.

static void Shout(void* state, TF_OpKernelContext* ctx) {
  TF_Status* s = TF_NewStatus();
  TF_Tensor* in = Input(ctx, 0, s);
  TF_Tensor* out = in ? OutputLike(ctx, 0, in, s) : NULL;
  if (out) {
    const TF_TString* x = TF_TensorData(in);
    TF_TString* y = TF_TensorData(out);
    for (int64_t i = 0; i < TF_TensorElementCount(in); ++i) {
      const size_t length = TF_StringGetSize(&x[i]);
      char* text = malloc(length + 1);
      memcpy(text, TF_StringGetDataPointer(&x[i]), length);
      text[length] = '!';
      TF_StringCopy(&y[i], text, length + 1);
      free(text);
    }
  }
  Done(ctx, in, out, s);
}

// ---- MySum: of N numbers.

static void Sum(void* state, TF_OpKernelContext* ctx) {
  TF_Status* s = TF_NewStatus();
  float sum = 0;
  TF_InputRange_Args range;
  memset(&range, 0, sizeof range);
  range.struct_size = TF_InputRange_Args_STRUCT_SIZE;
  range.status = s;
  TF_InputRange(ctx, "values", &range);
  for (int i = range.start; i < range.stop && TF_GetCode(s) == TF_OK; ++i) {
    TF_Tensor* in = Input(ctx, i, s);
    if (in && TF_TensorElementCount(in) == 1) sum += *(float*)TF_TensorData(in);
    if (in) TF_DeleteTensor(in);
  }
  TF_Tensor* out =
      TF_AllocateOutput(ctx, 0, TF_FLOAT, NULL, 0, sizeof(float), s);
  if (out) *(float*)TF_TensorData(out) = sum;
  Done(ctx, out, NULL, s);
}

// ---- MyIdentity: hands its input on.

static void Identity(void* state, TF_OpKernelContext* ctx) {
  TF_Status* s = TF_NewStatus();
  TF_Tensor* in = Input(ctx, 0, s);
  if (in) TF_SetOutput(ctx, 0, in, s);
  Done(ctx, in, NULL, s);
}

// ---- MyCounter: how often its kernel ran; a state of its own.

static void* NewCounter(TF_OpKernelConstruction* ctx) {
  return calloc(1, sizeof(int64_t));
}

static void Count(void* state, TF_OpKernelContext* ctx) {
  TF_Status* s = TF_NewStatus();
  TF_Tensor* out =
      TF_AllocateOutput(ctx, 0, TF_INT64, NULL, 0, sizeof(int64_t), s);
  if (out) {
    *(int64_t*)TF_TensorData(out) =
        __atomic_add_fetch((int64_t*)state, 1, __ATOMIC_SEQ_CST);
  }
  Done(ctx, out, NULL, s);
}

// ---- MyFailure and MyNothing: what goes wrong.

static void Fail(void* state, TF_OpKernelContext* ctx) {
  TF_Status* s = TF_NewStatus();
  TF_SetStatus(s, TF_DATA_LOSS, "nothing is left of it");
  TF_OpKernelContext_Failure(ctx, s);
  TF_DeleteStatus(s);
}

static void Nothing(void* state, TF_OpKernelContext* ctx) {}

// ---- MyLater: done on another call's behalf, as far as the caller can tell.

static void Later(void* state, TF_OpKernelContext* ctx,
                  TF_AsyncOpKernelDoneCallback* done) {
  Identity(state, ctx);
  TF_RunAsyncOpKernelDoneCallback(done);
}

static const Op kOps[] = {
    {"MyZeroOut", {0}, {"to_zero: int32"}, {"zeroed: int32"}, 0, LikeInput},
    {"MyScale",
     {"T: {float, int32}", "factor: int = 2"},
     {"x: T"},
     {"y: T"},
     0,
     LikeInput},
    {"MyShout", {0}, {"x: string"}, {"y: string"}, 0, LikeInput},
    {"MySum", {"N: int >= 1"}, {"values: N * float"}, {"sum: float"}, 0, Scalar},
    {"MyIdentity", {"T: type"}, {"x: T"}, {"y: T"}, 0, LikeInput},
    {"MyCounter", {0}, {0}, {"count: int64"}, 1, Scalar},
    {"MyFailure", {0}, {"x: float"}, {"y: float"}, 0, LikeInput},
    {"MyNothing", {0}, {"x: float"}, {"y: float"}, 0, LikeInput},
    {"MyLater", {0}, {"x: float"}, {"y: float"}, 0, LikeInput},
};

__attribute__((constructor)) static void RegisterAll(void) {
  TF_Status* s = TF_NewStatus();
  for (size_t i = 0; i < sizeof kOps / sizeof kOps[0]; ++i) Define(&kOps[i], s);
  AddKernel("MyZeroOut", 0, 0, 0, ZeroOut, 0, s);
  AddKernel("MyScale", "T", TF_FLOAT, NewScale, ScaleFloats, free, s);
  AddKernel("MyScale", "T", TF_INT32, NewScale, ScaleInts, free, s);
  AddKernel("MyShout", 0, 0, 0, Shout, 0, s);
  AddKernel("MySum", 0, 0, 0, Sum, 0, s);
  AddKernel("MyIdentity", 0, 0, 0, Identity, 0, s);
  AddKernel("MyCounter", 0, 0, NewCounter, Count, free, s);
  AddKernel("MyFailure", 0, 0, 0, Fail, 0, s);
  AddKernel("MyNothing", 0, 0, 0, Nothing, 0, s);
  TF_KernelBuilder* later =
      TF_NewAsyncKernelBuilder("MyLater", "CPU", 0, Later, 0);
  TF_RegisterKernelBuilder("MyLater", later, s);
  TF_DeleteStatus(s);
}
