// Contexts on clusters: ops, functions and variables of other tasks, and
// clusters that change. With addresses of two tasks that are up, of another
// program, it uses these.
#define _POSIX_C_SOURCE 200809L
#include <time.h>

#include "check.h"
#include "cluster.h"
#include "tensorflow/c/c_api_experimental.h"
#include "tensorflow/c/eager/c_api.h"
#include "tensorflow/c/eager/c_api_experimental.h"

#define TASK(i) "/job:local/replica:0/task:" #i "/device:CPU:0"

static TFE_Context* Context(TF_Status* s) {
  TFE_ContextOptions* options = TFE_NewContextOptions();
  TFE_Context* c = TFE_NewContext(options, s);
  TFE_DeleteContextOptions(options);
  CHECK_OK(s);
  return c;
}

// [[1, 2], [3, 4]].
static TFE_TensorHandle* Matrix(TF_Status* s) {
  const int64_t dims[] = {2, 2};
  const float values[] = {1, 2, 3, 4};
  TF_Tensor* t = Floats(dims, 2, values);
  TFE_TensorHandle* h = TFE_NewTensorHandle(t, s);
  CHECK_OK(s);
  TF_DeleteTensor(t);
  return h;
}

static TFE_Op* Op(TFE_Context* c, const char* name, const char* device,
                  TF_Status* s) {
  TFE_Op* op = TFE_NewOp(c, name, s);
  CHECK_OK(s);
  if (device) TFE_OpSetDevice(op, device, s);
  CHECK_OK(s);
  return op;
}

static void Add(TFE_Op* op, TFE_TensorHandle* input, TF_Status* s) {
  TFE_OpAddInput(op, input, s);
  CHECK_OK(s);
}

// The one output, or null; the op ends.
static TFE_TensorHandle* Run1(TFE_Op* op, TF_Status* s) {
  TFE_TensorHandle* out[1] = {NULL};
  int count = 1;
  TFE_Execute(op, out, &count, s);
  TFE_DeleteOp(op);
  return TF_GetCode(s) == TF_OK ? out[0] : NULL;
}

static TFE_TensorHandle* MatMul(TFE_Context* c, TFE_TensorHandle* a,
                                TFE_TensorHandle* b, const char* device,
                                TF_Status* s) {
  TFE_Op* op = Op(c, "MatMul", device, s);
  Add(op, a, s);
  Add(op, b, s);
  return Run1(op, s);
}

// Where the handle is, and its first element, of as many.
static void Expect(TFE_TensorHandle* h, const char* device, int elements,
                   float first, TF_Status* s) {
  CHECK_OK(s);
  CHECK(strcmp(TFE_TensorHandleDeviceName(h, s), device) == 0);
  CHECK_OK(s);
  CHECK(TFE_TensorHandleNumElements(h, s) == elements);
  TF_Tensor* t = TFE_TensorHandleResolve(h, s);
  CHECK_OK(s);
  CHECK(TF_TensorByteSize(t) == elements * sizeof(float));
  CHECK(((float*)TF_TensorData(t))[0] == first);
  TF_DeleteTensor(t);
}

static void ExpectAndDelete(TFE_TensorHandle* h, const char* device,
                            int elements, float first, TF_Status* s) {
  Expect(h, device, elements, first, s);
  TFE_DeleteTensorHandle(h);
}

static void ExpectDevices(TFE_Context* c, const char* const* names, int count,
                          TF_Status* s) {
  TF_DeviceList* list = TFE_ContextListDevices(c, s);
  CHECK_OK(s);
  CHECK(TF_DeviceListCount(list) == count);
  for (int i = 0; i < count; ++i) {
    CHECK(strcmp(TF_DeviceListName(list, i, s), names[i]) == 0);
    CHECK(strcmp(TF_DeviceListType(list, i, s), "CPU") == 0);
    CHECK(TF_DeviceListIncarnation(list, i, s) != 0);
  }
  TF_DeleteDeviceList(list);
}

// --- What is no cluster.

static void BytesThatAreNone(TFE_Context* c, TF_Status* s) {
  TFE_ContextSetServerDef(c, 0, "\xff\xff", 2, s);
  CHECK_ERROR(s, TF_INVALID_ARGUMENT,
              "Invalid tensorflow.ServerDef protocol buffer");
  TFE_ContextSetServerDef(c, 0, "", 0, s);
  CHECK_ERROR(s, TF_NOT_FOUND, "No server factory registered");
  const Proto whole = ServerDef(&kAnyPort, 1, 0, "local", "grpc");
  for (size_t cut = 0; cut < whole.length; ++cut) {
    TFE_ContextSetServerDef(c, 0, whole.bytes, cut, s);
    CHECK(TF_GetCode(s) == TF_INVALID_ARGUMENT ||
          TF_GetCode(s) == TF_NOT_FOUND);
  }
  Proto def = ServerDef(&kAnyPort, 1, 0, "no", "grpc");
  TFE_ContextSetServerDef(c, 0, def.bytes, def.length, s);
  CHECK_ERROR(s, TF_INTERNAL, "Job \"no\" was not defined in cluster");
  def = ServerDef(&kAnyPort, 1, 5, "local", "grpc");
  TFE_ContextSetServerDef(c, 0, def.bytes, def.length, s);
  CHECK_ERROR(s, TF_INTERNAL, "Task 5 was not defined in job \"local\"");
  TF_Buffer* text = TFE_GetServerDef("job_name: 'x' task_index: 3", s);
  CHECK_OK(s);
  CHECK(text->length == 5 && memcmp(text->data, "\x12\x01x\x18\x03", 5) == 0);
  TF_DeleteBuffer(text);
  CHECK(TFE_GetServerDef("bogus: 3", s) == NULL);
  CHECK_ERROR(s, TF_INTERNAL, "Invalid text proto for ServerDef: bogus: 3");
}

// --- Ops of a task.

static void Ops(TFE_Context* c, TF_Status* s) {
  TFE_TensorHandle* m = Matrix(s);
  TFE_TensorHandle* there = MatMul(c, m, m, TASK(1), s);
  Expect(there, TASK(1), 4, 7, s);
  CHECK(TFE_TensorHandleNumDims(there, s) == 2);
  CHECK(TFE_TensorHandleDim(there, 1, s) == 2);
  CHECK(strcmp(TFE_TensorHandleBackingDeviceName(there, s), TASK(1)) == 0);
  ExpectAndDelete(MatMul(c, there, there, TASK(1), s), TASK(1), 4, 199, s);
  ExpectAndDelete(MatMul(c, there, m, TASK(2), s), TASK(2), 4, 37, s);
  // Without a device ops are here, and so is what they give.
  TFE_TensorHandle* here = MatMul(c, there, m, NULL, s);
  Expect(here, TASK(0), 4, 37, s);
  CHECK(strcmp(TFE_TensorHandleBackingDeviceName(here, s),
               "/job:localhost/replica:0/task:0/device:CPU:0") == 0);
  TFE_DeleteTensorHandle(here);
  ExpectAndDelete(MatMul(c, there, there, "/cpu:0", s), TASK(0), 4, 199, s);
  TFE_TensorHandle* copy = TFE_TensorHandleCopySharingTensor(there, s);
  TFE_DeleteTensorHandle(there);
  ExpectAndDelete(copy, TASK(1), 4, 7, s);
  // Copies.
  copy = TFE_TensorHandleCopyToDevice(m, c, TASK(1), s);
  Expect(copy, TASK(1), 4, 1, s);
  ExpectAndDelete(MatMul(c, copy, copy, TASK(1), s), TASK(1), 4, 7, s);
  ExpectAndDelete(TFE_TensorHandleCopyToDevice(copy, c, TASK(2), s), TASK(2), 4,
                  1, s);
  ExpectAndDelete(TFE_TensorHandleCopyToDevice(copy, c, TASK(0), s), TASK(0), 4,
                  1, s);
  TFE_DeleteTensorHandle(copy);
  CHECK(TFE_TensorHandleCopyToDevice(m, c, TASK(7), s) == NULL);
  CHECK_ERROR(s, TF_INVALID_ARGUMENT, TASK(7) " unknown device.");
  TF_SetStatus(s, TF_OK, "");
  // What was made before has no task.
  Expect(m, "/job:localhost/replica:0/task:0/device:CPU:0", 4, 1, s);
  // Text, and a tensor of no element.
  TF_Tensor* t = TF_AllocateTensor(TF_STRING, NULL, 0, 24);
  TF_StringInit(TF_TensorData(t));
  TF_StringCopy(TF_TensorData(t), "Some Letters, and more than fit in", 34);
  TFE_TensorHandle* text = TFE_NewTensorHandle(t, s);
  TFE_Op* op = Op(c, "StringLower", TASK(1), s);
  Add(op, text, s);
  TFE_TensorHandle* lower = Run1(op, s);
  CHECK_OK(s);
  TF_Tensor* out = TFE_TensorHandleResolve(lower, s);
  CHECK(strncmp(TF_StringGetDataPointer(TF_TensorData(out)), "some letters",
                12) == 0);
  TF_DeleteTensor(out);
  TFE_DeleteTensorHandle(lower);
  TFE_DeleteTensorHandle(text);
  TF_StringDealloc(TF_TensorData(t));
  TF_DeleteTensor(t);
  const int64_t none[] = {0, 3};
  t = Floats(none, 2, NULL);
  TFE_TensorHandle* empty = TFE_NewTensorHandle(t, s);
  TF_DeleteTensor(t);
  op = Op(c, "Neg", TASK(1), s);
  Add(op, empty, s);
  copy = Run1(op, s);
  CHECK_OK(s);
  CHECK(strcmp(TFE_TensorHandleDeviceName(copy, s), TASK(1)) == 0);
  CHECK(TFE_TensorHandleDim(copy, 1, s) == 3);
  TFE_DeleteTensorHandle(copy);
  TFE_DeleteTensorHandle(empty);
  TFE_DeleteTensorHandle(m);
}

static void Mistakes(TFE_Context* c, TF_Status* s) {
  TFE_TensorHandle* m = Matrix(s);
  CHECK(MatMul(c, m, m, TASK(7), s) == NULL);
  CHECK_ERROR(s, TF_INVALID_ARGUMENT, TASK(7) " unknown device.");
  CHECK(MatMul(c, m, m, "/job:local/replica:0/task:1/device:CPU:9", s) == NULL);
  CHECK_ERROR(s, TF_INVALID_ARGUMENT, "CPU:9 unknown device.");
  CHECK(MatMul(c, m, m, "/job:local/replica:0/task:0/device:CPU:9", s) == NULL);
  CHECK_ERROR(s, TF_INVALID_ARGUMENT, "Could not satisfy device specification");
  TFE_Op* op = Op(c, "MatMul", NULL, s);
  TFE_OpSetDevice(op, "foo!!", s);
  CHECK_ERROR(s, TF_INVALID_ARGUMENT, "Malformed device specification 'foo!!'");
  TFE_DeleteOp(op);
  const float one = 1;
  TF_Tensor* t = Floats(NULL, 0, &one);
  TFE_TensorHandle* scalar = TFE_NewTensorHandle(t, s);
  TF_DeleteTensor(t);
  CHECK(MatMul(c, m, scalar, TASK(1), s) == NULL);
  // (The shape rule says so, or a kernel of another version.)
  CHECK_ERROR(s, TF_INVALID_ARGUMENT, "");
  TFE_ContextAsyncWait(c, s);
  CHECK_OK(s);
  // The task goes on.
  ExpectAndDelete(MatMul(c, m, m, TASK(1), s), TASK(1), 4, 7, s);
  TFE_DeleteTensorHandle(scalar);
  TFE_DeleteTensorHandle(m);
}

// --- Variables.

static TFE_TensorHandle* NewVariable(TFE_Context* c, const char* device,
                                     TF_Status* s) {
  TFE_Op* op = Op(c, "VarHandleOp", device, s);
  TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
  const int64_t dims[] = {2, 2};
  TFE_OpSetAttrShape(op, "shape", dims, 2, s);
  TFE_OpSetAttrString(op, "container", "", 0);
  TFE_OpSetAttrString(op, "shared_name", "v", 1);
  TFE_TensorHandle* handle = Run1(op, s);
  CHECK_OK(s);
  return handle;
}

// What uses it runs where it lies.
static void Change(TFE_Context* c, const char* name, TFE_TensorHandle* variable,
                   TFE_TensorHandle* value, TF_Status* s) {
  TFE_Op* op = Op(c, name, NULL, s);
  TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
  Add(op, variable, s);
  Add(op, value, s);
  int none = 0;
  TFE_Execute(op, NULL, &none, s);
  TFE_DeleteOp(op);
  CHECK_OK(s);
}

static TFE_TensorHandle* Read(TFE_Context* c, TFE_TensorHandle* variable,
                              TF_Status* s) {
  TFE_Op* op = Op(c, "ReadVariableOp", NULL, s);
  TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
  Add(op, variable, s);
  return Run1(op, s);
}

static void Variables(TFE_Context* c, TF_Status* s) {
  TFE_TensorHandle* m = Matrix(s);
  TFE_TensorHandle* v = NewVariable(c, TASK(1), s);
  CHECK(TFE_TensorHandleDataType(v) == TF_RESOURCE);
  CHECK(strcmp(TFE_TensorHandleDeviceName(v, s), TASK(1)) == 0);
  Change(c, "AssignVariableOp", v, m, s);
  Change(c, "AssignAddVariableOp", v, m, s);
  ExpectAndDelete(Read(c, v, s), TASK(1), 4, 2, s);
  // One of the same name is another one here, and on another task.
  TFE_TensorHandle* own = NewVariable(c, NULL, s);
  Change(c, "AssignVariableOp", own, m, s);
  ExpectAndDelete(Read(c, own, s), TASK(0), 4, 1, s);
  TFE_TensorHandle* other = NewVariable(c, TASK(2), s);
  TFE_TensorHandle* read = Read(c, other, s);
  // (Upstream may say so only when the value is wanted.)
  if (read != NULL) {
    TF_Tensor* t = TFE_TensorHandleResolve(read, s);
    CHECK(t == NULL);
    TFE_DeleteTensorHandle(read);
  }
  CHECK(TF_GetCode(s) == TF_FAILED_PRECONDITION ||
        TF_GetCode(s) == TF_NOT_FOUND);
  TFE_DeleteTensorHandle(other);
  TFE_DeleteTensorHandle(own);
  TFE_DeleteTensorHandle(v);
  TFE_DeleteTensorHandle(m);
}

// --- Functions.

// x * x, or x * x + x.
static TF_Function* Polynomial(const char* name, int more, TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_Output x = First(Placeholder(g, "x", TF_FLOAT, s));
  TF_Output y = First(Binary(g, "Mul", "y", x, x, s));
  if (more) y = First(Binary(g, "AddV2", "z", y, x, s));
  CHECK_OK(s);
  TF_Function* f = TF_GraphToFunction(g, name, 0, -1, NULL, 1, &x, 1, &y, NULL,
                                      NULL, NULL, s);
  CHECK_OK(s);
  TF_DeleteGraph(g);
  return f;
}

static TFE_TensorHandle* Call(TFE_Context* c, const char* function,
                              TFE_TensorHandle* x, const char* device,
                              TF_Status* s) {
  TFE_Op* op = Op(c, function, device, s);
  Add(op, x, s);
  return Run1(op, s);
}

static void Functions(TFE_Context* c, TF_Status* s) {
  TFE_TensorHandle* m = Matrix(s);
  TFE_TensorHandle* twice = MatMul(c, m, m, TASK(1), s);  // 7, ...
  TF_Function* f = Polynomial("Polynomial", 0, s);
  TFE_ContextAddFunction(c, f, s);
  CHECK_OK(s);
  TF_DeleteFunction(f);
  for (int i = 0; i < 2; ++i) {
    ExpectAndDelete(Call(c, "Polynomial", twice, TASK(1), s), TASK(1), 4, 49,
                    s);
  }
  ExpectAndDelete(Call(c, "Polynomial", twice, TASK(2), s), TASK(2), 4, 49, s);
  ExpectAndDelete(Call(c, "Polynomial", twice, NULL, s), TASK(0), 4, 49, s);
  // Named by an attribute.
  TFE_Op* op = Op(c, "PartitionedCall", TASK(1), s);
  TFE_OpAddInputList(op, &m, 1, s);
  TFE_OpSetAttrFunctionName(op, "f", "Polynomial", 10);
  const TF_DataType types[] = {TF_FLOAT};
  TFE_OpSetAttrTypeList(op, "Tin", types, 1);
  TFE_OpSetAttrTypeList(op, "Tout", types, 1);
  TFE_TensorHandle* out = Run1(op, s);
  CHECK_OK(s);
  CHECK(TFE_TensorHandleNumElements(out, s) == 4);
  TFE_DeleteTensorHandle(out);
  // Another one of the name.
  TFE_ContextRemoveFunction(c, "Polynomial", s);
  CHECK_OK(s);
  f = Polynomial("Polynomial", 1, s);
  TFE_ContextAddFunction(c, f, s);
  CHECK_OK(s);
  TF_DeleteFunction(f);
  ExpectAndDelete(Call(c, "Polynomial", twice, TASK(1), s), TASK(1), 4, 56, s);
  TFE_DeleteTensorHandle(twice);
  TFE_DeleteTensorHandle(m);
}

// A function of which some nodes are on other tasks.
static void Parts(TFE_Context* c, TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_Output x = First(Placeholder(g, "x", TF_FLOAT, s));
  const char* const devices[] = {TASK(1), TASK(2), NULL};
  TF_Output y = x;
  for (int i = 0; i < 3; ++i) {
    char name[8];
    snprintf(name, sizeof name, "part%d", i);
    TF_OperationDescription* d = TF_NewOperation(g, "AddV2", name);
    TF_AddInput(d, y);
    TF_AddInput(d, x);
    if (devices[i]) TF_SetDevice(d, devices[i]);
    y = First(TF_FinishOperation(d, s));
    CHECK_OK(s);
  }
  TF_Function* f = TF_GraphToFunction(g, "Parts", 0, -1, NULL, 1, &x, 1, &y,
                                      NULL, NULL, NULL, s);
  CHECK_OK(s);
  TF_DeleteGraph(g);
  TFE_ContextAddFunction(c, f, s);
  CHECK_OK(s);
  TF_DeleteFunction(f);
  TFE_TensorHandle* m = Matrix(s);
  for (int i = 0; i < 2; ++i) {
    TFE_TensorHandle* sum = Call(c, "Parts", m, NULL, s);
    if (getenv("HEADRACE_OTHER_SERVERS") != NULL) {
      CHECK_ERROR(s, TF_UNIMPLEMENTED, "which runs TensorFlow");
    } else {
      ExpectAndDelete(sum, TASK(0), 4, 4, s);
    }
  }
  TFE_DeleteTensorHandle(m);
}

// --- Clusters that change.

static void Changes(TFE_Context* c, const char* const* addresses,
                    TF_Status* s) {
  TFE_TensorHandle* m = Matrix(s);
  TFE_TensorHandle* there = MatMul(c, m, m, TASK(1), s);
  CHECK(TFE_ContextCheckAlive(c, "/job:local/replica:0/task:1", s));
  CHECK_OK(s);
  CHECK(TFE_ContextCheckAlive(c, "/job:local/replica:0/task:0", s));
  CHECK_OK(s);
  CHECK(!TFE_ContextCheckAlive(c, "/job:local/replica:0/task:7", s));
  CHECK_ERROR(s, TF_INVALID_ARGUMENT,
              "Unable to find worker interface corresponding to task "
              "/job:local/replica:0/task:7");
  TFE_ContextUpdateServerDef(c, 0, "\xff", 1, s);
  CHECK_ERROR(s, TF_INVALID_ARGUMENT,
              "Invalid tensorflow.ServerDef protocol buffer");
  // Without task 1, of which what is here stays.
  const char* fewer[] = {addresses[0], NULL, addresses[2]};
  Proto def = ServerDef(fewer, 3, 0, "local", "grpc");
  TFE_ContextUpdateServerDef(c, 0, def.bytes, def.length, s);
  CHECK_OK(s);
  const char* left[] = {TASK(0), TASK(2)};
  ExpectDevices(c, left, 2, s);
  CHECK(MatMul(c, m, m, TASK(1), s) == NULL);
  CHECK_ERROR(s, TF_INVALID_ARGUMENT, TASK(1) " unknown device.");
  CHECK(!TFE_ContextCheckAlive(c, "/job:local/replica:0/task:1", s));
  CHECK_ERROR(s, TF_INVALID_ARGUMENT, "Unable to find worker interface");
  CHECK(strcmp(TFE_TensorHandleDeviceName(there, s), TASK(1)) == 0);
  TFE_DeleteTensorHandle(there);
  ExpectAndDelete(MatMul(c, m, m, TASK(2), s), TASK(2), 4, 7, s);
  // With task 1 where task 2 was.
  const char* moved[] = {addresses[0], addresses[2]};
  def = ServerDef(moved, 2, 0, "local", "grpc");
  TFE_ContextUpdateServerDefWithTimeout(c, 0, def.bytes, def.length, 20000, s);
  CHECK_OK(s);
  ExpectAndDelete(MatMul(c, m, m, TASK(1), s), TASK(1), 4, 7, s);
  CHECK(MatMul(c, m, m, TASK(2), s) == NULL);
  CHECK_ERROR(s, TF_INVALID_ARGUMENT, TASK(2) " unknown device.");
  TFE_DeleteTensorHandle(m);
}

static void TwoOtherTasks(const char* const* addresses, TF_Status* s) {
  TFE_Context* c = Context(s);
  const Proto def = ServerDef(addresses, 3, 0, "local", "grpc");
  TFE_ContextSetServerDef(c, 600, def.bytes, def.length, s);
  CHECK_OK(s);
  const char* all[] = {TASK(0), TASK(1), TASK(2)};
  ExpectDevices(c, all, 3, s);
  Ops(c, s);
  Mistakes(c, s);
  Variables(c, s);
  Functions(c, s);
  Parts(c, s);
  Changes(c, addresses, s);
  TFE_TensorHandle* m = Matrix(s);
  TFE_TensorHandle* there = MatMul(c, m, m, TASK(1), s);
  CHECK_OK(s);
  TFE_DeleteContext(c);
  TFE_DeleteTensorHandle(there);
  TFE_DeleteTensorHandle(m);
}

// --- What upstream's servers cannot do: they never stop.

static void Restarts(const char* const* addresses, TF_Server** servers,
                     TF_Status* s) {
  TFE_Context* c = Context(s);
  const Proto def = ServerDef(addresses, 3, 0, "local", "grpc");
  TFE_ContextSetServerDef(c, 1, def.bytes, def.length, s);
  CHECK_OK(s);
  TFE_TensorHandle* m = Matrix(s);
  TFE_TensorHandle* v = NewVariable(c, TASK(1), s);
  Change(c, "AssignVariableOp", v, m, s);
  TFE_TensorHandle* kept = NewVariable(c, TASK(2), s);
  Change(c, "AssignVariableOp", kept, m, s);
  // The context is kept alive.
  const struct timespec longer = {2, 200000000};
  nanosleep(&longer, NULL);
  ExpectAndDelete(Read(c, v, s), TASK(1), 4, 1, s);
  TF_ServerStop(servers[1], s);
  CHECK_OK(s);
  CHECK(MatMul(c, m, m, TASK(1), s) == NULL);
  CHECK_ERROR(s, TF_UNAVAILABLE, "");
  CHECK(!TFE_ContextCheckAlive(c, "/job:local/replica:0/task:1", s));
  CHECK_ERROR(s, TF_UNAVAILABLE, "");
  CHECK(TFE_ContextCheckAlive(c, "/job:local/replica:0/task:2", s));
  // The same cluster once more: nobody is there for a while.
  TFE_ContextUpdateServerDefWithTimeout(c, 1, def.bytes, def.length, 300, s);
  CHECK_ERROR(s, TF_DEADLINE_EXCEEDED, "");
  ExpectAndDelete(MatMul(c, m, m, TASK(2), s), TASK(2), 4, 7, s);
  TF_DeleteServer(servers[1]);
  servers[1] = Started(ServerDef(addresses, 3, 1, "local", "grpc"), s);
  // It has no context, which is told until the cluster is met again.
  CHECK(MatMul(c, m, m, TASK(1), s) == NULL);
  CHECK(!TFE_ContextCheckAlive(c, "/job:local/replica:0/task:1", s));
  TFE_ContextUpdateServerDef(c, 1, def.bytes, def.length, s);
  CHECK_OK(s);
  CHECK(TFE_ContextCheckAlive(c, "/job:local/replica:0/task:1", s));
  ExpectAndDelete(MatMul(c, m, m, TASK(1), s), TASK(1), 4, 7, s);
  // What was there is gone, and all on the other task is there.
  CHECK(Read(c, v, s) == NULL);
  CHECK_ERROR(s, TF_INVALID_ARGUMENT, TASK(1) " unknown device.");
  ExpectAndDelete(Read(c, kept, s), TASK(2), 4, 1, s);
  // Another task cannot become of it, and clusters replace each other.
  const Proto other = ServerDef(addresses, 3, 1, "local", "grpc");
  TFE_ContextUpdateServerDef(c, 1, other.bytes, other.length, s);
  CHECK_ERROR(s, TF_INVALID_ARGUMENT, "/job:local/replica:0/task:1");
  TFE_ContextSetServerDef(c, 1, def.bytes, def.length, s);
  CHECK_OK(s);
  CHECK(Read(c, kept, s) == NULL);
  CHECK_ERROR(s, TF_FAILED_PRECONDITION, "has been closed");
  ExpectAndDelete(MatMul(c, m, m, TASK(1), s), TASK(1), 4, 7, s);
  // Nobody at all.
  char nowhere[32];
  snprintf(nowhere, sizeof nowhere, "127.0.0.1:%d", FreePort());
  const char* const lost[] = {addresses[0], nowhere};
  const Proto none = ServerDef(lost, 2, 0, "local", "grpc");
  TFE_ContextSetServerDefWithTimeoutAndRetries(c, 1, none.bytes, none.length,
                                               200, 1, s, false);
  CHECK_ERROR(s, TF_DEADLINE_EXCEEDED, nowhere);
  TFE_DeleteTensorHandle(kept);
  TFE_DeleteTensorHandle(v);
  TFE_DeleteTensorHandle(m);
  TFE_DeleteContext(c);
}

int main(int argc, char** argv) {
  TF_Status* s = TF_NewStatus();
  char texts[3][32];
  const char* addresses[3];
  for (int i = 0; i < 3; ++i) {
    snprintf(texts[i], sizeof texts[i], "127.0.0.1:%d", FreePort());
    addresses[i] = i > 0 && argc > i ? argv[i] : texts[i];
  }
  TFE_Context* c = Context(s);
  BytesThatAreNone(c, s);
  TFE_DeleteContext(c);
  TF_Server* servers[3] = {NULL, NULL, NULL};
  for (int i = 1; i < 3 && argc < 3; ++i) {
    servers[i] = Started(ServerDef(addresses, 3, i, "local", "grpc"), s);
  }
  TwoOtherTasks(addresses, s);
  if (argc < 3 && getenv("HEADRACE_KEEP_SERVERS") == NULL) {
    Restarts(addresses, servers, s);
  }
  TF_DeleteStatus(s);
  printf("eager_clusters: ok\n");
  // (Upstream cannot stop servers.)
  if (getenv("HEADRACE_KEEP_SERVERS") != NULL) fflush(stdout), _exit(0);
  for (int i = 1; i < 3; ++i) TF_DeleteServer(servers[i]);
  return 0;
}
