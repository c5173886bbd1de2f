// c_api_experimental.h. Its argument: where SavedModels lie
// (tests/golden/saved_models).
#include "check.h"
#include "tensorflow/c/c_api_experimental.h"
#include "tensorflow/c/eager/c_api.h"

static void Settings(TF_Status* s) {
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_EnableXLACompilation(options, 0);
  TF_Buffer* config = TF_CreateConfig(0, 1, 2);
  CHECK(config != NULL && config->length > 0);
  // Field 5, inter_op_parallelism_threads: 1.
  int found = 0;
  for (size_t i = 0; i + 2 <= config->length; ++i) {
    found += memcmp((const char*)config->data + i, "\x28\x01", 2) == 0;
  }
  CHECK(found == 1);
  TF_SetConfig(options, config->data, config->length, s);
  CHECK_OK(s);
  TF_DeleteBuffer(config);
  TF_DeleteSessionOptions(options);
  TF_Buffer* run = TF_CreateRunOptions(1);
  CHECK(run->length == 2 && memcmp(run->data, "\x08\x03", 2) == 0);
  TF_DeleteBuffer(run);
  const unsigned char was = TF_GetXlaConstantFoldingDisabled();
  TF_SetXlaConstantFoldingDisabled(1);
  CHECK(TF_GetXlaConstantFoldingDisabled() == 1);
  TF_SetXlaConstantFoldingDisabled(was);
  TF_MakeInternalErrorStatus(s, "made up");
  CHECK_ERROR(s, TF_INTERNAL, "made up");
  TF_SetStatus(s, TF_OK, "");
}

static void Texts(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_Output x = First(Placeholder(g, "a_place", TF_FLOAT, s));
  size_t length = 0;
  char* text = (char*)TF_GraphDebugString(g, &length);
  CHECK(text != NULL && length == strlen(text));
  CHECK(strstr(text, "a_place") != NULL);
  free(text);
  TF_Output y = First(Binary(g, "Mul", "y", x, x, s));
  TF_Function* f = TF_GraphToFunction(g, "a_function", 0, -1, NULL, 1, &x, 1,
                                      &y, NULL, NULL, "", s);
  CHECK_OK(s);
  text = TF_FunctionDebugString(f, &length);
  CHECK(text != NULL && strstr(text, "a_function") != NULL);
  free(text);
  TF_GraphCopyFunction(g, f, NULL, s);
  CHECK_OK(s);
  CHECK(TF_GraphNumFunctions(g) == 1);
  TF_GraphRemoveFunction(g, "a_function", s);
  CHECK_OK(s);
  CHECK(TF_GraphNumFunctions(g) == 0);
  TF_GraphRemoveFunction(g, "a_function", s);
  CHECK(TF_GetCode(s) != TF_OK);
  TF_SetStatus(s, TF_OK, "");
  TF_DeleteFunction(f);
  TF_DeleteGraph(g);
}

static void Checkpoints(const char* folder, TF_Status* s) {
  char path[4096];
  snprintf(path, sizeof path, "%s/plain/variables/variables", folder);
  TF_CheckpointReader* r = TF_NewCheckpointReader(path, s);
  CHECK_OK(s);
  const int count = TF_CheckpointReaderSize(r);
  CHECK(count > 0);
  int floats = 0;
  for (int i = 0; i < count; ++i) {
    const char* name = TF_CheckpointReaderGetVariable(r, i);
    CHECK(TF_CheckpointReaderHasTensor(r, name));
    if (TF_CheckpointReaderGetVariableDataType(r, name) != TF_FLOAT) continue;
    ++floats;
    int64_t dims[8];
    const int rank = TF_CheckpointReaderGetVariableNumDims(r, name);
    CHECK(rank >= 0 && rank <= 8);
    TF_CheckpointReaderGetVariableShape(r, name, dims, rank, s);
    CHECK_OK(s);
    TF_Tensor* t = TF_CheckpointReaderGetTensor(r, name, s);
    CHECK_OK(s);
    CHECK(TF_TensorType(t) == TF_FLOAT && TF_NumDims(t) == rank);
    for (int d = 0; d < rank; ++d) CHECK(TF_Dim(t, d) == dims[d]);
    TF_DeleteTensor(t);
  }
  CHECK(floats > 0);
  CHECK(!TF_CheckpointReaderHasTensor(r, "no such tensor"));
  CHECK(TF_CheckpointReaderGetTensor(r, "no such tensor", s) == NULL);
  CHECK(TF_GetCode(s) == TF_NOT_FOUND);
  TF_DeleteCheckpointReader(r);
  CHECK(TF_NewCheckpointReader("/no/such/checkpoint", s) == NULL);
  CHECK(TF_GetCode(s) == TF_NOT_FOUND);
  TF_SetStatus(s, TF_OK, "");
}

static void Facts(TF_Status* s) {
  CHECK(TF_OpIsStateful("MatMul", s) == 0);
  CHECK_OK(s);
  CHECK(TF_OpIsStateful("VarHandleOp", s) == 1);
  TF_OpIsStateful("NoSuchOp", s);
  CHECK(TF_GetCode(s) == TF_NOT_FOUND);
  CHECK(strcmp(TF_GetNumberAttrForOpListInput("AddN", 0, s), "N") == 0);
  CHECK_OK(s);
  CHECK(TF_GetNumberAttrForOpListInput("Neg", 0, s) == NULL);
  CHECK_ERROR(s, TF_NOT_FOUND, "Neg does not have number_attr() defined.");
  CHECK(TF_GetNumberAttrForOpListInput("AddN", 4, s) == NULL);
  CHECK_ERROR(s, TF_INVALID_ARGUMENT, "4 out of range for AddN");
  TF_AttrBuilder* b = TF_NewAttrBuilder("MatMul");
  TF_AttrBuilderSetType(b, "T", TF_FLOAT);
  TF_AttrBuilderCheckCanRunOnDevice(b, "CPU", s);
  CHECK_OK(s);
  TF_AttrBuilderCheckCanRunOnDevice(b, "NONE", s);
  CHECK(TF_GetCode(s) != TF_OK);
  TF_DeleteAttrBuilder(b);
  TF_SetStatus(s, TF_OK, "");
}

static void Shapes(TF_Status* s) {
  TFE_ContextOptions* options = TFE_NewContextOptions();
  TFE_Context* ctx = TFE_NewContext(options, s);
  CHECK_OK(s);
  TFE_DeleteContextOptions(options);
  TFE_Op* op = TFE_NewOp(ctx, "MatMul", s);
  CHECK_OK(s);
  TFE_OpSetAttrType(op, "T", TF_FLOAT);
  TF_ShapeAndTypeList* in = TF_NewShapeAndTypeList(2);
  const int64_t a[] = {3, 2}, b[] = {2, 5}, bad[] = {4, 5};
  TF_ShapeAndTypeListSetShape(in, 0, a, 2);
  TF_ShapeAndTypeListSetShape(in, 1, b, 2);
  TF_ShapeAndTypeListSetDtype(in, 0, TF_FLOAT);
  TF_ShapeAndTypeListSetDtype(in, 1, TF_FLOAT);
  TF_ShapeAndTypeList* out = NULL;
  TFE_InferShapes(op, in, NULL, NULL, NULL, &out, NULL, s);
  CHECK_OK(s);
  CHECK(out->num_items == 1 && out->items[0].num_dims == 2);
  CHECK(out->items[0].dims[0] == 3 && out->items[0].dims[1] == 5);
  TF_DeleteShapeAndTypeList(out);
  TF_ShapeAndTypeListSetUnknownShape(in, 0);
  TFE_InferShapes(op, in, NULL, NULL, NULL, &out, NULL, s);
  CHECK_OK(s);
  CHECK(out->items[0].num_dims == 2 && out->items[0].dims[0] == -1);
  TF_DeleteShapeAndTypeList(out);
  TF_ShapeAndTypeListSetShape(in, 0, a, 2);
  TF_ShapeAndTypeListSetShape(in, 1, bad, 2);
  out = NULL;
  TFE_InferShapes(op, in, NULL, NULL, NULL, &out, NULL, s);
  CHECK(TF_GetCode(s) == TF_INVALID_ARGUMENT && out == NULL);
  TF_SetStatus(s, TF_OK, "");
  TF_DeleteShapeAndTypeList(in);
  TFE_DeleteOp(op);
  TFE_DeleteContext(ctx);
}

int main(int argc, char** argv) {
  CHECK(argc > 1);
  TF_Status* s = TF_NewStatus();
  Settings(s);
  Texts(s);
  Checkpoints(argv[1], s);
  Facts(s);
  Shapes(s);
  float three = 3;
  TFE_TensorHandle* h =
      TFE_NewTensorHandleFromScalar(TF_FLOAT, &three, sizeof three, s);
  CHECK_OK(s);
  TF_Tensor* t = TFE_TensorHandleResolve(h, s);
  CHECK(*(float*)TF_TensorData(t) == 3);
  TF_DeleteTensor(t);
  TFE_DeleteTensorHandle(h);
  TF_DeleteStatus(s);
  return 0;
}
