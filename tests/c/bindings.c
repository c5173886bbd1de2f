// The functions in the order in which the bindings of Go, Rust and Java call
// them: what they set, read back and free, and in which places they free it.
#include "check.h"
#include "tensorflow/c/eager/c_api.h"
#include "tensorflow/c/tf_tstring.h"

static void Nothing(void* data, size_t len, void* arg) { ++*(int*)arg; }

// ---- Go: tensors are copied in, every kind of attribute is set, consumers and
// shapes are asked for, sessions run many fetches and targets.

static TF_Tensor* GoStrings(void) {
  const int64_t dims[] = {2};
  TF_Tensor* t = TF_AllocateTensor(TF_STRING, dims, 1, 2 * sizeof(TF_TString));
  TF_TString* texts = TF_TensorData(t);
  for (int i = 0; i < 2; ++i) {
    TF_StringInit(&texts[i]);
    TF_StringCopy(&texts[i], i ? "two" : "one", 3);
  }
  return t;
}

static void GoGraph(TF_Graph* g, TF_Status* s) {
  TF_OperationDescription* d = TF_NewOperation(g, "Placeholder", "in");
  TF_SetAttrType(d, "dtype", TF_FLOAT);
  const int64_t shape[] = {-1, 2};
  TF_SetAttrShape(d, "shape", shape, 2);
  TF_SetDevice(d, "/device:CPU:0");
  TF_Operation* in = TF_FinishOperation(d, s);
  CHECK_OK(s);
  d = TF_NewOperation(g, "Sum", "sum");
  TF_AddInput(d, First(in));
  TF_AddInput(d, First(Const(g, "axis", Int32(1), s)));
  TF_SetAttrBool(d, "keep_dims", 1);
  TF_AddControlInput(d, in);
  TF_Operation* sum = TF_FinishOperation(d, s);
  CHECK_OK(s);
  CHECK(strcmp(TF_OperationDevice(in), "/device:CPU:0") == 0);
  const int dims = TF_GraphGetTensorNumDims(g, First(sum), s);
  CHECK(dims == 2);
  int64_t sizes[2];
  TF_GraphGetTensorShape(g, First(sum), sizes, dims, s);
  CHECK_OK(s);
  CHECK(sizes[0] == -1 && sizes[1] == 1);
  TF_Input consumers[4];
  CHECK(TF_OperationOutputNumConsumers(First(in)) == 1);
  CHECK(TF_OperationOutputConsumers(First(in), consumers, 4) == 1);
  CHECK(consumers[0].oper == sum && consumers[0].index == 0);
  const TF_AttrMetadata m = TF_OperationGetAttrMetadata(in, "shape", s);
  CHECK_OK(s);
  CHECK(m.type == TF_ATTR_SHAPE && m.total_size == 2 && !m.is_list);
  TF_OperationGetAttrShape(in, "shape", sizes, 2, s);
  CHECK(sizes[0] == -1 && sizes[1] == 2);
}

static void Go(TF_Status* s) {
  CHECK(strlen(TF_Version()) > 0);
  TF_Graph* g = TF_NewGraph();
  GoGraph(g, s);
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_SetTarget(options, "");
  TF_SetConfig(options, "", 0, s);
  CHECK_OK(s);
  TF_Session* session = TF_NewSession(g, options, s);
  CHECK_OK(s);
  TF_DeleteSessionOptions(options);
  TF_DeviceList* devices = TF_SessionListDevices(session, s);
  CHECK_OK(s);
  CHECK(TF_DeviceListCount(devices) >= 1);
  CHECK(strstr(TF_DeviceListName(devices, 0, s), "CPU:0") != NULL);
  CHECK(TF_DeviceListMemoryBytes(devices, 0, s) > 0);
  TF_DeleteDeviceList(devices);
  TF_Output in = First(TF_GraphOperationByName(g, "in"));
  TF_Operation* sum = TF_GraphOperationByName(g, "sum");
  const TF_Output fetches[] = {First(sum),
                               First(TF_GraphOperationByName(g, "axis"))};
  const TF_Operation* targets[] = {sum};
  const int64_t dims[] = {2, 2};
  const float values[] = {1, 2, 3, 4};
  TF_Tensor* fed = Floats(dims, 2, values);
  TF_Tensor* fetched[2] = {NULL, NULL};
  TF_SessionRun(session, NULL, &in, &fed, 1, fetches, fetched, 2, targets, 1,
                NULL, s);
  CHECK_OK(s);
  CHECK(((float*)TF_TensorData(fetched[0]))[1] == 7);
  CHECK(*(int32_t*)TF_TensorData(fetched[1]) == 1);
  TF_DeleteTensor(fetched[0]);
  TF_DeleteTensor(fetched[1]);
  TF_DeleteTensor(fed);
  // The graph's finalizer runs before the session is closed.
  TF_DeleteGraph(g);
  TF_CloseSession(session, s);
  CHECK_OK(s);
  TF_DeleteSession(session, s);
  CHECK_OK(s);
  TF_DeleteTensor(GoStrings());
}

// ---- Rust: memory of the caller's, buffers with its deallocator, prefixes, the
// lists of what there is, names read back from operations.

static void FreeBytes(void* data, size_t length) { free(data); }

static void Rust(TF_Status* s) {
  float values[4] __attribute__((aligned(64))) = {1, 2, 3, 4};
  const int64_t dims[] = {4};
  int freed = 0;
  TF_Tensor* t = TF_NewTensor(TF_FLOAT, dims, 1, values, sizeof values, Nothing,
                              &freed);
  TF_Graph* g = TF_NewGraph();
  TF_Output x = First(Placeholder(g, "x", TF_FLOAT, s));
  TF_OperationDescription* d = TF_NewOperation(g, "Split", "split");
  TF_AddInput(d, First(Const(g, "zero", Int32(0), s)));
  TF_AddInput(d, x);
  TF_SetAttrInt(d, "num_split", 2);
  TF_Operation* split = TF_FinishOperation(d, s);
  CHECK_OK(s);
  CHECK(TF_OperationOutputListLength(split, "output", s) == 2);
  CHECK(TF_OperationInputListLength(split, "value", s) == 1);
  TF_Output both[] = {{split, 1}, {split, 0}};
  d = TF_NewOperation(g, "Pack", "pack");
  TF_AddInputList(d, both, 2);
  TF_Output packed = First(TF_FinishOperation(d, s));
  CHECK_OK(s);
  TF_Session* session = Session(g, s);
  TF_Tensor* out = RunOne(session, x, t, packed, s);
  CHECK_OK(s);
  CHECK(TF_Dim(out, 0) == 2 && ((float*)TF_TensorData(out))[0] == 3);
  TF_DeleteTensor(out);
  TF_DeleteTensor(t);
  // A buffer whose bytes are the caller's, imported under a prefix.
  TF_Buffer* bytes = TF_NewBuffer();
  TF_GraphToGraphDef(g, bytes, s);
  TF_Buffer* own = TF_NewBuffer();
  own->data = memcpy(malloc(bytes->length), bytes->data, bytes->length);
  own->length = bytes->length;
  own->data_deallocator = FreeBytes;
  TF_Graph* second = TF_NewGraph();
  TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
  TF_ImportGraphDefOptionsSetPrefix(options, "imported");
  TF_GraphImportGraphDef(second, own, options, s);
  CHECK_OK(s);
  TF_DeleteImportGraphDefOptions(options);
  TF_DeleteBuffer(own);
  TF_DeleteBuffer(bytes);
  size_t position = 0;
  int count = 0;
  for (TF_Operation* op; (op = TF_GraphNextOperation(second, &position));) {
    CHECK(strncmp(TF_OperationName(op), "imported/", 9) == 0);
    ++count;
  }
  CHECK(count == 4);
  TF_DeleteGraph(second);
  TF_Buffer* ops = TF_GetAllOpList();
  CHECK(ops != NULL && ops->length > 10000);
  TF_DeleteBuffer(ops);
  TF_Buffer* kernels = TF_GetAllRegisteredKernels(s);
  CHECK_OK(s);
  CHECK(kernels->length > 10000);
  TF_DeleteBuffer(kernels);
  TF_CloseSession(session, s);
  TF_DeleteSession(session, s);
  TF_DeleteGraph(g);
  CHECK(freed == 1);
}

// ---- Java: eager operations, functions of graphs that both eager code and
// other graphs call, run options and metadata.

static TF_Function* JavaFunction(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_Output x = First(Placeholder(g, "x", TF_FLOAT, s));
  TF_Output y = First(Binary(g, "Mul", "y", x, x, s));
  TF_Function* f = TF_GraphToFunction(g, "java_square", 0, -1, NULL, 1, &x, 1,
                                      &y, NULL, NULL, "", s);
  CHECK_OK(s);
  TF_DeleteGraph(g);
  return f;
}

static void JavaEager(TF_Function* f, TF_Status* s) {
  TFE_ContextOptions* options = TFE_NewContextOptions();
  TFE_ContextOptionsSetConfig(options, "", 0, s);
  TFE_ContextOptionsSetAsync(options, 0);
  TFE_ContextOptionsSetDevicePlacementPolicy(options,
                                             TFE_DEVICE_PLACEMENT_SILENT);
  TFE_Context* ctx = TFE_NewContext(options, s);
  CHECK_OK(s);
  TFE_DeleteContextOptions(options);
  TFE_ContextAddFunction(ctx, f, s);
  CHECK_OK(s);
  const float three = 3;
  TF_Tensor* t = Floats(NULL, 0, &three);
  TFE_TensorHandle* in = TFE_NewTensorHandle(t, s);
  TF_DeleteTensor(t);
  TFE_Op* op = TFE_NewOp(ctx, "java_square", s);
  CHECK_OK(s);
  TFE_OpSetDevice(op, "/job:localhost/replica:0/task:0/device:CPU:0", s);
  TFE_OpAddInput(op, in, s);
  CHECK_OK(s);
  TFE_TensorHandle* outs[8];
  int count = 1;
  TFE_Execute(op, outs, &count, s);
  CHECK_OK(s);
  CHECK(count == 1 && TFE_TensorHandleDataType(outs[0]) == TF_FLOAT);
  CHECK(TFE_TensorHandleNumDims(outs[0], s) == 0);
  TFE_DeleteOp(op);
  TF_Tensor* out = TFE_TensorHandleResolve(outs[0], s);
  CHECK_OK(s);
  CHECK(*(float*)TF_TensorData(out) == 9);
  TF_DeleteTensor(out);
  TFE_DeleteTensorHandle(outs[0]);
  TFE_DeleteTensorHandle(in);
  TFE_DeleteContext(ctx);
}

static void Java(TF_Status* s) {
  TF_Function* f = JavaFunction(s);
  TF_Graph* g = TF_NewGraph();
  TF_GraphCopyFunction(g, f, NULL, s);
  CHECK_OK(s);
  TF_Output x = First(Placeholder(g, "x", TF_FLOAT, s));
  TF_OperationDescription* d = TF_NewOperation(g, "java_square", "call");
  TF_AddInput(d, x);
  TF_Output y = First(TF_FinishOperation(d, s));
  CHECK_OK(s);
  TF_Session* session = Session(g, s);
  const float five = 5;
  TF_Tensor* in = Floats(NULL, 0, &five);
  TF_Tensor* out = NULL;
  // trace_level: FULL_TRACE.
  TF_Buffer* run = TF_NewBufferFromString("\x08\x03", 2);
  TF_Buffer* metadata = TF_NewBuffer();
  TF_SessionRun(session, run, &x, &in, 1, &y, &out, 1, NULL, 0, metadata, s);
  CHECK_OK(s);
  CHECK(*(float*)TF_TensorData(out) == 25);
  CHECK(metadata->length > 0);
  TF_DeleteTensor(out);
  TF_DeleteTensor(in);
  TF_DeleteBuffer(metadata);
  TF_DeleteBuffer(run);
  TF_DeleteSession(session, s);
  TF_DeleteGraph(g);
  JavaEager(f, s);
  TF_DeleteFunction(f);
}

int main(void) {
  TF_Status* s = TF_NewStatus();
  Go(s);
  Rust(s);
  Java(s);
  TF_DeleteStatus(s);
  return 0;
}
