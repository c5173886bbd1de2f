// SavedModels of TensorFlow 1 in sessions. Its argument: where they lie
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
  OldModel(argv[1], s);
  TF_DeleteStatus(s);
  printf("models: ok\n");
  return 0;
}
