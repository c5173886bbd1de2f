// Ops that run at once.
#include "check.h"
#include "tensorflow/c/eager/c_api.h"

static TFE_Context* Context(TF_Status* s) {
  TFE_ContextOptions* options = TFE_NewContextOptions();
  TFE_Context* c = TFE_NewContext(options, s);
  TFE_DeleteContextOptions(options);
  CHECK_OK(s);
  return c;
}

static TFE_TensorHandle* Matrix(TF_Status* s) {
  const int64_t dims[] = {2, 2};
  const float values[] = {1, 2, 3, 4};
  TF_Tensor* t = Floats(dims, 2, values);
  TFE_TensorHandle* h = TFE_NewTensorHandle(t, s);
  CHECK_OK(s);
  TF_DeleteTensor(t);
  return h;
}

static TFE_TensorHandle* Run1(TFE_Op* op, TF_Status* s) {
  TFE_TensorHandle* out[2] = {NULL, NULL};
  int count = 2;
  TFE_Execute(op, out, &count, s);
  TFE_DeleteOp(op);
  if (TF_GetCode(s) != TF_OK) return NULL;
  CHECK(count == 1);
  return out[0];
}

static void Handles(TFE_Context* c, TF_Status* s) {
  TFE_TensorHandle* h = Matrix(s);
  CHECK(TFE_TensorHandleDataType(h) == TF_FLOAT);
  CHECK(TFE_TensorHandleNumDims(h, s) == 2);
  CHECK(TFE_TensorHandleDim(h, 1, s) == 2);
  CHECK(TFE_TensorHandleNumElements(h, s) == 4);
  CHECK(strstr(TFE_TensorHandleDeviceName(h, s), "device:CPU:0") != NULL);
  TFE_TensorHandle* copy = TFE_TensorHandleCopyToDevice(
      h, c, "/job:localhost/replica:0/task:0/device:CPU:0", s);
  CHECK_OK(s);
  TFE_DeleteTensorHandle(copy);
  copy = TFE_TensorHandleCopySharingTensor(h, s);
  CHECK_OK(s);
  TFE_DeleteTensorHandle(h);
  TF_Tensor* t = TFE_TensorHandleResolve(copy, s);
  CHECK_OK(s);
  CHECK(((float*)TF_TensorData(t))[3] == 4.0f);
  TF_DeleteTensor(t);
  TFE_TensorDebugInfo* info = TFE_TensorHandleTensorDebugInfo(copy, s);
  CHECK_OK(s);
  CHECK(TFE_TensorDebugInfoOnDeviceNumDims(info) == 2);
  CHECK(TFE_TensorDebugInfoOnDeviceDim(info, 0) == 2);
  TFE_DeleteTensorDebugInfo(info);
  TFE_DeleteTensorHandle(copy);
  CHECK(TFE_TensorHandleNumDims(NULL, s) == -1);
  CHECK_ERROR(s, TF_INVALID_ARGUMENT, "Invalid handle");
}

static void Ops(TFE_Context* c, TF_Status* s) {
  TFE_TensorHandle* m = Matrix(s);
  TFE_Op* op = TFE_NewOp(c, "MatMul", s);
  CHECK_OK(s);
  TFE_OpAddInput(op, m, s);
  TFE_OpAddInput(op, m, s);
  CHECK_OK(s);
  TFE_OpSetAttrType(op, "T", TF_FLOAT);
  TFE_OpSetAttrBool(op, "transpose_b", 1);
  unsigned char is_list = 9;
  CHECK(TFE_OpGetAttrType(op, "transpose_b", &is_list, s) == TF_ATTR_BOOL);
  CHECK(is_list == 0);
  TFE_OpGetAttrType(op, "none", &is_list, s);
  CHECK_ERROR(s, TF_INVALID_ARGUMENT, "does not exist for this operation");
  TFE_TensorHandle* product = Run1(op, s);
  CHECK_OK(s);
  TF_Tensor* t = TFE_TensorHandleResolve(product, s);
  const float* values = TF_TensorData(t);
  CHECK(values[0] == 5 && values[1] == 11 && values[3] == 25);
  TF_DeleteTensor(t);
  TFE_DeleteTensorHandle(product);
  // A list.
  op = TFE_NewOp(c, "AddN", s);
  TFE_TensorHandle* list[] = {m, m, m};
  TFE_OpAddInputList(op, list, 3, s);
  CHECK_OK(s);
  CHECK(TFE_OpGetInputLength(op, "inputs", s) == 3);
  CHECK(TFE_OpGetOutputLength(op, "sum", s) == 1);
  TFE_TensorHandle* sum = Run1(op, s);
  CHECK_OK(s);
  t = TFE_TensorHandleResolve(sum, s);
  CHECK(((float*)TF_TensorData(t))[3] == 12.0f);
  TF_DeleteTensor(t);
  TFE_DeleteTensorHandle(sum);
  // Mistakes.
  CHECK(TFE_NewOp(c, "NoSuchOp", s) == NULL);
  CHECK_ERROR(s, TF_NOT_FOUND, "is neither a type of a primitive operation");
  op = TFE_NewOp(c, "AddV2", s);
  TFE_OpAddInput(op, m, s);
  CHECK(Run1(op, s) == NULL);
  CHECK_ERROR(s, TF_INVALID_ARGUMENT,
              "NodeDef expected inputs 'float, float' do not match 1 inputs");
  TFE_DeleteTensorHandle(m);
}

// A variable that is made, assigned and read, which is of the context alone.
static void Variable(TFE_Context* c, TF_Status* s) {
  TFE_Op* op = TFE_NewOp(c, "VarHandleOp", s);
  TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
  const int64_t dims[] = {2, 2};
  TFE_OpSetAttrShape(op, "shape", dims, 2, s);
  CHECK_OK(s);
  TFE_OpSetAttrString(op, "container", "", 0);
  TFE_OpSetAttrString(op, "shared_name", "v", 1);
  TFE_TensorHandle* handle = Run1(op, s);
  CHECK_OK(s);
  CHECK(TFE_TensorHandleDataType(handle) == TF_RESOURCE);
  TFE_TensorHandle* m = Matrix(s);
  op = TFE_NewOp(c, "AssignVariableOp", s);
  TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
  TFE_OpAddInput(op, handle, s);
  TFE_OpAddInput(op, m, s);
  int none = 0;
  TFE_Execute(op, NULL, &none, s);
  CHECK_OK(s);
  TFE_DeleteOp(op);
  op = TFE_NewOp(c, "ReadVariableOp", s);
  TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
  TFE_OpAddInput(op, handle, s);
  TFE_TensorHandle* value = Run1(op, s);
  CHECK_OK(s);
  CHECK(TFE_TensorHandleNumElements(value, s) == 4);
  TFE_DeleteTensorHandle(value);
  op = TFE_NewOp(c, "DestroyResourceOp", s);
  TFE_OpAddInput(op, handle, s);
  TFE_Execute(op, NULL, &none, s);
  CHECK_OK(s);
  TFE_DeleteOp(op);
  TFE_DeleteTensorHandle(m);
  TFE_DeleteTensorHandle(handle);
}

static void Functions(TFE_Context* c, TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_Output x = First(Placeholder(g, "x", TF_FLOAT, s));
  TF_Output y = First(Binary(g, "Mul", "y", x, x, s));
  CHECK_OK(s);
  TF_Function* f = TF_GraphToFunction(g, "MySquare", 0, -1, NULL, 1, &x, 1, &y,
                                      NULL, NULL, NULL, s);
  CHECK_OK(s);
  CHECK(!TFE_ContextHasFunction(c, "MySquare"));
  TFE_ContextAddFunction(c, f, s);
  CHECK_OK(s);
  CHECK(TFE_ContextHasFunction(c, "MySquare"));
  TFE_TensorHandle* m = Matrix(s);
  for (int i = 0; i < 3; ++i) {
    TFE_Op* op = TFE_NewOp(c, "MySquare", s);
    TFE_OpAddInput(op, m, s);
    TFE_TensorHandle* out = Run1(op, s);
    CHECK_OK(s);
    TF_Tensor* t = TFE_TensorHandleResolve(out, s);
    CHECK(((float*)TF_TensorData(t))[3] == 16.0f);
    TF_DeleteTensor(t);
    TFE_DeleteTensorHandle(out);
  }
  TFE_Op* op = TFE_NewOp(c, "PartitionedCall", s);
  TFE_OpAddInputList(op, &m, 1, s);
  TFE_OpSetAttrFunctionName(op, "f", "MySquare", 8);
  const TF_DataType types[] = {TF_FLOAT};
  TFE_OpSetAttrTypeList(op, "Tin", types, 1);
  TFE_OpSetAttrTypeList(op, "Tout", types, 1);
  TFE_TensorHandle* out = Run1(op, s);
  CHECK_OK(s);
  TF_Tensor* t = TFE_TensorHandleResolve(out, s);
  CHECK(((float*)TF_TensorData(t))[2] == 9.0f);
  TF_DeleteTensor(t);
  TFE_DeleteTensorHandle(out);
  TFE_DeleteTensorHandle(m);
  TFE_ContextRemoveFunction(c, "MySquare", s);
  CHECK_OK(s);
  CHECK(!TFE_ContextHasFunction(c, "MySquare"));
  TFE_ContextRemoveFunction(c, "MySquare", s);
  CHECK_ERROR(s, TF_INVALID_ARGUMENT, "Tried to remove non-existent function");
  TF_DeleteFunction(f);
  TF_DeleteGraph(g);
}

static void Strings(TFE_Context* c, TF_Status* s) {
  TF_Tensor* t = TF_AllocateTensor(TF_STRING, NULL, 0, 24);
  TF_TString* text = TF_TensorData(t);
  TF_StringInit(text);
  TF_StringCopy(text, "Some Letters, and more than fit in", 34);
  TFE_TensorHandle* h = TFE_NewTensorHandle(t, s);
  CHECK_OK(s);
  TFE_Op* op = TFE_NewOp(c, "StringLower", s);
  TFE_OpAddInput(op, h, s);
  TFE_TensorHandle* lower = Run1(op, s);
  CHECK_OK(s);
  TF_Tensor* out = TFE_TensorHandleResolve(lower, s);
  CHECK(TF_StringGetSize(TF_TensorData(out)) == 34);
  CHECK(strncmp(TF_StringGetDataPointer(TF_TensorData(out)), "some letters",
                12) == 0);
  TF_DeleteTensor(out);
  TFE_DeleteTensorHandle(lower);
  TFE_DeleteTensorHandle(h);
  TF_StringDealloc(text);
  TF_DeleteTensor(t);
}

// (What clusters do is in eager_clusters.c.)
static void OtherProcesses(TFE_Context* c, TF_Status* s) {
  const char def[] = "\x12\x05local";
  TFE_ContextSetServerDef(c, 0, def, sizeof def - 1, s);
  CHECK_ERROR(s, TF_NOT_FOUND, "No server factory registered");
}

int main(void) {
  TF_Status* s = TF_NewStatus();
  TFE_Context* c = Context(s);
  TF_DeviceList* devices = TFE_ContextListDevices(c, s);
  CHECK_OK(s);
  CHECK(TF_DeviceListCount(devices) >= 1);
  TF_DeleteDeviceList(devices);
  Handles(c, s);
  Ops(c, s);
  Variable(c, s);
  Functions(c, s);
  Strings(c, s);
  OtherProcesses(c, s);
  TFE_DeleteContext(c);
  TF_DeleteStatus(s);
  printf("eager: ok\n");
  return 0;
}
