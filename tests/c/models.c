// SavedModels of TensorFlow 2 and 1 in sessions. Its argument: where they lie
// (tests/golden/saved_models).
#include "check.h"

static TF_Session* Load(const char* folder, const char* model,
                        const char* const* tags, int count, TF_Graph* g,
                        TF_Buffer* meta, TF_Status* s) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, model);
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Session* session = TF_LoadSessionFromSavedModel(options, NULL, path, tags,
                                                     count, g, meta, s);
  TF_DeleteSessionOptions(options);
  return session;
}

static TF_Output Named(TF_Graph* g, const char* name, int index) {
  const TF_Output out = {TF_GraphOperationByName(g, name), index};
  CHECK(out.oper != NULL);
  return out;
}

static TF_Tensor* Text(const char* text) {
  const int64_t dims[] = {1};
  TF_Tensor* t = TF_AllocateTensor(TF_STRING, dims, 1, sizeof(TF_TString));
  TF_StringInit(TF_TensorData(t));
  TF_StringCopy(TF_TensorData(t), text, strlen(text));
  return t;
}

static void Variables(const char* folder, TF_Status* s) {
  const char* const tags[] = {"serve"};
  TF_Graph* g = TF_NewGraph();
  TF_Buffer* meta = TF_NewBuffer();
  TF_Session* session = Load(folder, "plain", tags, 1, g, meta, s);
  CHECK_OK(s);
  CHECK(meta->length > 100);
  TF_DeleteBuffer(meta);
  const int64_t dims[] = {2};
  const float values[] = {1, 2};
  TF_Tensor* in = Floats(dims, 1, values);
  TF_Tensor* out = RunOne(session, Named(g, "serving_default_x", 0), in,
                          Named(g, "StatefulPartitionedCall_1", 1), s);
  CHECK_OK(s);
  CHECK(TF_TensorElementCount(out) == 2);
  CHECK(((float*)TF_TensorData(out))[0] == 4 &&
        ((float*)TF_TensorData(out))[1] == 7);
  TF_DeleteTensor(out);
  TF_DeleteTensor(in);
  TF_Tensor* four = Int32(4);
  out = RunOne(session, Named(g, "looped_n", 0), four,
               Named(g, "StatefulPartitionedCall", 0), s);
  CHECK_OK(s);
  CHECK(*(float*)TF_TensorData(out) == 12);
  TF_DeleteTensor(out);
  TF_DeleteTensor(four);
  TF_DeleteSession(session, s);
  // Into a graph that has nodes.
  CHECK(Load(folder, "plain", tags, 1, g, NULL, s) == NULL);
  CHECK_ERROR(s, TF_INVALID_ARGUMENT, "Graph is non-empty.");
  TF_DeleteGraph(g);
}

static void Tables(const char* folder, TF_Status* s) {
  const char* const tags[] = {"serve"};
  TF_Graph* g = TF_NewGraph();
  TF_Session* session = Load(folder, "tables", tags, 1, g, NULL, s);
  CHECK_OK(s);
  TF_Tensor* in = Text("no such word");
  TF_Tensor* out = RunOne(session, Named(g, "serving_default_text", 0), in,
                          Named(g, "StatefulPartitionedCall", 0), s);
  CHECK_OK(s);
  CHECK(*(int64_t*)TF_TensorData(out) == -1);
  TF_DeleteTensor(out);
  TF_DeleteTensor(in);
  TF_DeleteSession(session, s);
  TF_DeleteGraph(g);
}

static void OldModel(const char* folder, TF_Status* s) {
  const char* const tags[] = {"gpu", "train"};
  TF_Graph* g = TF_NewGraph();
  TF_Session* session = Load(folder, "session", tags, 2, g, NULL, s);
  CHECK_OK(s);
  CHECK(TF_GraphOperationByName(g, "add") != NULL);
  TF_DeleteSession(session, s);
  TF_DeleteGraph(g);
  const char* const serve[] = {"serve"};
  g = TF_NewGraph();
  session = Load(folder, "session", serve, 1, g, NULL, s);
  CHECK_OK(s);
  TF_Tensor* in = Text("blue");
  TF_Tensor* out =
      RunOne(session, Named(g, "text", 0), in, Named(g, "score", 0), s);
  CHECK_OK(s);
  CHECK(*(float*)TF_TensorData(out) == 30);
  TF_DeleteTensor(out);
  TF_DeleteTensor(in);
  TF_DeleteSession(session, s);
  TF_DeleteGraph(g);
  g = TF_NewGraph();
  CHECK(Load(folder, "session", tags, 1, g, NULL, s) == NULL);
  CHECK_ERROR(s, TF_NOT_FOUND, "");
  CHECK(Load(folder, "none", serve, 1, g, NULL, s) == NULL);
  CHECK_ERROR(s, TF_NOT_FOUND, "SavedModel");
  TF_DeleteGraph(g);
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  TF_Status* s = TF_NewStatus();
  Variables(argv[1], s);
  Tables(argv[1], s);
  OldModel(argv[1], s);
  TF_DeleteStatus(s);
  printf("models: ok\n");
  return 0;
}
