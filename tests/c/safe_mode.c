// Safe mode: what a stranger's graph may do is asked wherever it runs.
#include "headrace/c/safe_mode.h"

#include "check.h"

// A graph, as a GraphDef, with "peek", which reads a file, and "zeros", which
// has as many bytes as "count" says.
static TF_Buffer* StrangersGraph(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  const char path[] = "/etc/passwd";
  TF_TString text;
  TF_StringInit(&text);
  TF_StringCopy(&text, path, sizeof path - 1);
  TF_Tensor* name = TF_AllocateTensor(TF_STRING, NULL, 0, sizeof text);
  memcpy(TF_TensorData(name), &text, sizeof text);
  TF_Operation* file = Const(g, "file", name, s);
  CHECK_OK(s);
  TF_OperationDescription* d = TF_NewOperation(g, "ReadFile", "peek");
  TF_AddInput(d, First(file));
  TF_FinishOperation(d, s);
  CHECK_OK(s);
  TF_Operation* count = Placeholder(g, "count", TF_INT32, s);
  CHECK_OK(s);
  TF_Tensor* zero = Int32(0);
  TF_Operation* value = Const(g, "zero", zero, s);
  CHECK_OK(s);
  d = TF_NewOperation(g, "Reshape", "shape");
  TF_AddInput(d, First(count));
  const int64_t dims[] = {1};
  TF_Tensor* one = TF_AllocateTensor(TF_INT32, dims, 1, sizeof(int32_t));
  *(int32_t*)TF_TensorData(one) = 1;
  TF_Operation* vector = Const(g, "vector", one, s);
  CHECK_OK(s);
  TF_AddInput(d, First(vector));
  TF_Operation* shape = TF_FinishOperation(d, s);
  CHECK_OK(s);
  d = TF_NewOperation(g, "Fill", "zeros");
  TF_AddInput(d, First(shape));
  TF_AddInput(d, First(value));
  TF_FinishOperation(d, s);
  CHECK_OK(s);
  TF_Buffer* bytes = TF_NewBuffer();
  TF_GraphToGraphDef(g, bytes, s);
  CHECK_OK(s);
  TF_DeleteGraph(g);
  return bytes;
}

static TF_Tensor* RunWith(TF_Session* session, TF_Output feed, int32_t n,
                          TF_Output out, TF_Status* s) {
  TF_Tensor* value = Int32(n);
  TF_Tensor* result = RunOne(session, feed, value, out, s);
  TF_DeleteTensor(value);
  return result;
}

static void Confined(const TF_Buffer* bytes, TF_Status* s) {
  const char policy[] = "output: 1 MiB\nmemory: 8 MiB\n";
  HR_SafeMode* mode = HR_NewSafeMode(policy, sizeof policy - 1, s);
  CHECK_OK(s);
  TF_Graph* g = TF_NewGraph();
  TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
  HR_EnterSafeMode(mode, s);
  CHECK_OK(s);
  TF_GraphImportGraphDef(g, bytes, options, s);
  CHECK_OK(s);
  HR_LeaveSafeMode(mode, s);
  CHECK_OK(s);
  TF_DeleteImportGraphDefOptions(options);
  // Out of the mode, the graph stays in it.
  TF_Session* session = Session(g, s);
  TF_Output feed = First(TF_GraphOperationByName(g, "count"));
  TF_Output zeros = First(TF_GraphOperationByName(g, "zeros"));
  TF_Output peek = First(TF_GraphOperationByName(g, "peek"));
  TF_Tensor* out = RunWith(session, feed, 1000, zeros, s);
  CHECK_OK(s);
  CHECK(HR_SafeModeMemoryInUse(mode) >= 4000);
  TF_DeleteTensor(out);
  out = RunWith(session, feed, 1000000, zeros, s);
  CHECK_ERROR(s, TF_RESOURCE_EXHAUSTED, "`output`");
  out = RunWith(session, feed, 1, peek, s);
  CHECK_ERROR(s, TF_PERMISSION_DENIED, "op ReadFile reads files");
  CHECK_ERROR(s, TF_PERMISSION_DENIED, "peek");
  TF_CloseSession(session, s);
  CHECK_OK(s);
  TF_DeleteSession(session, s);
  CHECK_OK(s);
  TF_DeleteGraph(g);
  HR_DeleteSafeMode(mode);
}

static void Misuse(TF_Status* s) {
  const char wrong[] = "memory: 1 MiB\ncolour: red";
  CHECK(HR_NewSafeMode(wrong, sizeof wrong - 1, s) == NULL);
  CHECK_ERROR(s, TF_INVALID_ARGUMENT, "line 2");
  HR_EnterSafeMode(NULL, s);
  CHECK(TF_GetCode(s) == TF_INVALID_ARGUMENT);
  HR_SafeMode* a = HR_NewSafeMode(NULL, 0, s);
  CHECK_OK(s);
  HR_SafeMode* b = HR_NewSafeMode(NULL, 0, s);
  CHECK_OK(s);
  HR_LeaveSafeMode(a, s);
  CHECK(TF_GetCode(s) == TF_FAILED_PRECONDITION);
  HR_EnterSafeMode(a, s);
  HR_EnterSafeMode(b, s);
  HR_LeaveSafeMode(a, s);
  CHECK(TF_GetCode(s) == TF_FAILED_PRECONDITION);
  HR_LeaveSafeMode(b, s);
  CHECK_OK(s);
  HR_LeaveSafeMode(a, s);
  CHECK_OK(s);
  HR_DeleteSafeMode(a);
  HR_DeleteSafeMode(b);
}

int main(void) {
  TF_Status* s = TF_NewStatus();
  TF_Buffer* bytes = StrangersGraph(s);
  Confined(bytes, s);
  Misuse(s);
  TF_DeleteBuffer(bytes);
  TF_DeleteStatus(s);
  return 0;
}
