// Ops and kernels of a user's library (library/ops.c), loaded while sessions are
// there, run in graphs and at once. The library is the program's argument.
#include <pthread.h>

#include "check.h"
#include "tensorflow/c/eager/c_api.h"
#include "tensorflow/c/tf_tstring.h"

static TF_Output Unary(TF_Graph* g, const char* op, const char* name,
                       TF_Output x, TF_Status* s) {
  TF_OperationDescription* d = TF_NewOperation(g, op, name);
  TF_AddInput(d, x);
  TF_Output out = First(TF_FinishOperation(d, s));
  CHECK_OK(s);
  return out;
}

static void OpsAreKnown(TF_Library* library) {
  TF_Buffer list = TF_GetOpList(library);
  CHECK(list.length > 0);
  const char* text = list.data;
  int found = 0;
  for (size_t i = 0; i + 9 <= list.length; ++i) {
    found += memcmp(text + i, "MyZeroOut", 9) == 0;
  }
  CHECK(found == 1);
}

static void GraphsRunThem(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_Output x = First(Placeholder(g, "x", TF_FLOAT, s));
  const int64_t sizes[] = {-1, 3};
  TF_GraphSetTensorShape(g, x, sizes, 2, s);
  CHECK_OK(s);
  TF_OperationDescription* d = TF_NewOperation(g, "MyScale", "scaled");
  TF_AddInput(d, x);
  TF_SetAttrInt(d, "factor", 5);
  TF_Output scaled = First(TF_FinishOperation(d, s));
  CHECK_OK(s);
  int64_t dims[2];
  CHECK(TF_GraphGetTensorNumDims(g, scaled, s) == 2);
  TF_GraphGetTensorShape(g, scaled, dims, 2, s);
  CHECK(dims[0] == -1 && dims[1] == 3);
  TF_Output same = Unary(g, "MyIdentity", "same", scaled, s);
  TF_Output late = Unary(g, "MyLater", "late", same, s);
  TF_Session* session = Session(g, s);
  const int64_t two[] = {2, 3};
  const float values[] = {1, 2, 3, 4, 5, 6};
  TF_Tensor* in = Floats(two, 2, values);
  TF_Tensor* out = RunOne(session, x, in, late, s);
  CHECK_OK(s);
  for (int i = 0; i < 6; ++i) {
    CHECK(((float*)TF_TensorData(out))[i] == 5 * values[i]);
  }
  TF_DeleteTensor(out);
  CHECK(RunOne(session, x, in, Unary(g, "MyFailure", "failed", x, s), s) ==
        NULL);
  CHECK_ERROR(s, TF_DATA_LOSS, "nothing is left of it");
  CHECK(RunOne(session, x, in, Unary(g, "MyNothing", "nothing", x, s), s) ==
        NULL);
  CHECK(TF_GetCode(s) != TF_OK);
  CHECK(strstr(TF_Message(s), "Missing 0-th output") != NULL);
  d = TF_NewOperation(g, "MyScale", "unlucky");
  TF_AddInput(d, x);
  TF_SetAttrInt(d, "factor", 13);
  TF_Output unlucky = First(TF_FinishOperation(d, s));
  CHECK_OK(s);
  CHECK(RunOne(session, x, in, unlucky, s) == NULL);
  CHECK_ERROR(s, TF_INVALID_ARGUMENT, "13 is no factor");
  TF_DeleteTensor(in);
  TF_DeleteSession(session, s);
  TF_DeleteGraph(g);
}

// The graph's bytes, and back.
static void GraphDefsHaveThem(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  const float one = 1, two = 2;
  TF_Output values[] = {First(Const(g, "a", Floats(NULL, 0, &one), s)),
                        First(Const(g, "b", Floats(NULL, 0, &two), s))};
  TF_OperationDescription* d = TF_NewOperation(g, "MySum", "sum");
  TF_AddInputList(d, values, 2);
  CHECK(TF_FinishOperation(d, s) != NULL);
  CHECK_OK(s);
  TF_Buffer* bytes = TF_NewBuffer();
  TF_GraphToGraphDef(g, bytes, s);
  CHECK_OK(s);
  TF_Graph* again = TF_NewGraph();
  TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
  TF_GraphImportGraphDef(again, bytes, options, s);
  CHECK_OK(s);
  TF_Session* session = Session(again, s);
  TF_Output none = {NULL, 0};
  TF_Tensor* out = RunOne(session, none, NULL,
                          First(TF_GraphOperationByName(again, "sum")), s);
  CHECK_OK(s);
  CHECK(*(float*)TF_TensorData(out) == 3);
  TF_DeleteTensor(out);
  TF_DeleteSession(session, s);
  TF_DeleteImportGraphDefOptions(options);
  TF_DeleteBuffer(bytes);
  TF_DeleteGraph(again);
  TF_DeleteGraph(g);
}

static TFE_TensorHandle* Execute(TFE_Context* ctx, const char* name,
                                 TFE_TensorHandle* in, TF_Status* s) {
  TFE_Op* op = TFE_NewOp(ctx, name, s);
  CHECK_OK(s);
  if (in) TFE_OpAddInput(op, in, s);
  CHECK_OK(s);
  TFE_TensorHandle* out = NULL;
  int count = 1;
  TFE_Execute(op, &out, &count, s);
  TFE_DeleteOp(op);
  return out;
}

static void TheyRunAtOnce(TFE_Context* ctx, TF_Status* s) {
  TF_Tensor* text = TF_AllocateTensor(TF_STRING, NULL, 0, sizeof(TF_TString));
  TF_StringCopy(TF_TensorData(text), "a text that is longer than 22", 29);
  TFE_TensorHandle* in = TFE_NewTensorHandle(text, s);
  TFE_TensorHandle* out = Execute(ctx, "MyShout", in, s);
  CHECK_OK(s);
  TF_Tensor* loud = TFE_TensorHandleResolve(out, s);
  CHECK_OK(s);
  const TF_TString* read = TF_TensorData(loud);
  CHECK(TF_StringGetSize(read) == 30);
  CHECK(memcmp(TF_StringGetDataPointer(read), "a text that is longer than 22!",
               30) == 0);
  TF_DeleteTensor(loud);
  TFE_DeleteTensorHandle(out);
  TFE_DeleteTensorHandle(in);
  TF_DeleteTensor(text);
  const float one = 1;
  TF_Tensor* value = Floats(NULL, 0, &one);
  in = TFE_NewTensorHandle(value, s);
  CHECK(Execute(ctx, "MyFailure", in, s) == NULL);
  CHECK_ERROR(s, TF_DATA_LOSS, "nothing is left of it");
  TFE_DeleteTensorHandle(in);
  TF_DeleteTensor(value);
}

static void* RunMany(void* context) {
  TF_Status* s = TF_NewStatus();
  for (int i = 0; i < 200; ++i) {
    TFE_TensorHandle* out = Execute(context, "MyCounter", NULL, s);
    CHECK_OK(s);
    TFE_DeleteTensorHandle(out);
  }
  TF_DeleteStatus(s);
  return NULL;
}

static void ThreadsRunThem(TFE_Context* ctx) {
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) {
    CHECK(pthread_create(&threads[i], NULL, RunMany, ctx) == 0);
  }
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
}

int main(int argc, char** argv) {
  CHECK(argc > 1);
  TF_Status* s = TF_NewStatus();
  TF_Graph* before = TF_NewGraph();
  TF_Session* session = Session(before, s);
  TF_Library* library = TF_LoadLibrary(argv[1], s);
  CHECK_OK(s);
  OpsAreKnown(library);
  GraphsRunThem(s);
  GraphDefsHaveThem(s);
  TFE_ContextOptions* options = TFE_NewContextOptions();
  TFE_Context* ctx = TFE_NewContext(options, s);
  CHECK_OK(s);
  TFE_DeleteContextOptions(options);
  TheyRunAtOnce(ctx, s);
  ThreadsRunThem(ctx);
  TFE_DeleteContext(ctx);
  TF_Library* again = TF_LoadLibrary(argv[1], s);
  CHECK_OK(s);
  OpsAreKnown(again);
  TF_Buffer* kernels = TF_GetRegisteredKernelsForOp("MyScale", s);
  CHECK_OK(s);
  CHECK(kernels->length > 0);
  TF_DeleteBuffer(kernels);
  TF_DeleteLibraryHandle(library);
  CHECK(TF_LoadLibrary("/no/such/library.so", s) == NULL);
  CHECK_ERROR(s, TF_NOT_FOUND, "/no/such/library.so");
  TF_SetStatus(s, TF_OK, "");
  TF_DeleteSession(session, s);
  TF_DeleteGraph(before);
  TF_DeleteStatus(s);
  return 0;
}
