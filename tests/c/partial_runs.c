// A run in several steps, and sessions whose operations go by their names.
#include "check.h"

static void Steps(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_Output a = First(Placeholder(g, "A", TF_INT32, s));
  TF_Output b = First(Placeholder(g, "B", TF_INT32, s));
  TF_Output two = First(Const(g, "two", Int32(2), s));
  TF_Output plus2 = First(Binary(g, "AddV2", "plus2", a, two, s));
  TF_Output plus_b = First(Binary(g, "AddV2", "plusB", plus2, b, s));
  CHECK_OK(s);
  TF_Session* session = Session(g, s);
  TF_Output feeds[] = {a, b};
  TF_Output fetches[] = {plus2, plus_b};
  const char* handle = NULL;
  TF_SessionPRunSetup(session, feeds, 2, fetches, 2, NULL, 0, &handle, s);
  CHECK_OK(s);
  TF_Tensor* one = Int32(1);
  TF_Tensor* out = NULL;
  TF_SessionPRun(session, handle, feeds, &one, 1, fetches, &out, 1, NULL, 0, s);
  CHECK_OK(s);
  CHECK(*(int32_t*)TF_TensorData(out) == 3);
  TF_DeleteTensor(out);
  TF_Tensor* four = Int32(4);
  TF_SessionPRun(session, handle, &feeds[1], &four, 1, &fetches[1], &out, 1,
                 NULL, 0, s);
  CHECK_OK(s);
  CHECK(*(int32_t*)TF_TensorData(out) == 7);
  TF_DeleteTensor(out);
  // What is asked again.
  TF_SessionPRun(session, handle, &feeds[1], &four, 1, &fetches[1], &out, 1,
                 NULL, 0, s);
  CHECK(TF_GetCode(s) == TF_INVALID_ARGUMENT && out == NULL);
  TF_DeletePRunHandle(handle);
  TF_SessionPRunSetup(session, NULL, 0, NULL, 0, NULL, 0, &handle, s);
  CHECK(TF_GetCode(s) == TF_INVALID_ARGUMENT);
  TF_DeleteTensor(one);
  TF_DeleteTensor(four);
  TF_DeleteSession(session, s);
  TF_DeleteGraph(g);
}

static void Names(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_Output x = First(Placeholder(g, "x", TF_INT32, s));
  Binary(g, "AddV2", "y", x, x, s);
  CHECK_OK(s);
  TF_Buffer* def = TF_NewBuffer();
  TF_GraphToGraphDef(g, def, s);
  CHECK_OK(s);
  TF_DeleteGraph(g);
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_DeprecatedSession* session = TF_NewDeprecatedSession(options, s);
  TF_DeleteSessionOptions(options);
  CHECK_OK(s);
  TF_ExtendGraph(session, def->data, def->length, s);
  CHECK_OK(s);
  TF_DeleteBuffer(def);
  TF_Tensor* in = Int32(21);
  TF_Tensor* out = NULL;
  const char* feed = "x:0";
  const char* fetch = "y:0";
  TF_Run(session, NULL, &feed, &in, 1, &fetch, &out, 1, NULL, 0, NULL, s);
  CHECK_OK(s);
  CHECK(*(int32_t*)TF_TensorData(out) == 42);
  TF_DeleteTensor(out);
  TF_DeleteTensor(in);
  TF_CloseDeprecatedSession(session, s);
  TF_DeleteDeprecatedSession(session, s);
}

int main(void) {
  TF_Status* s = TF_NewStatus();
  Steps(s);
  Names(s);
  TF_DeleteStatus(s);
  printf("partial_runs: ok\n");
  return 0;
}
