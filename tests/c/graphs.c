// Building a graph, asking it, writing and reading it, running it: the calls
// that the Go and Rust bindings make, in their order.
#include "check.h"

static TF_Output Feed(TF_Graph* g, TF_Status* s) {
  TF_Operation* feed = Placeholder(g, "feed", TF_INT32, s);
  CHECK_OK(s);
  return First(feed);
}

static void Metadata(TF_Operation* add, TF_Operation* two, TF_Status* s) {
  TF_AttrMetadata m = TF_OperationGetAttrMetadata(add, "T", s);
  CHECK_OK(s);
  CHECK(!m.is_list && m.type == TF_ATTR_TYPE && m.list_size == -1);
  TF_DataType type;
  TF_OperationGetAttrType(add, "T", &type, s);
  CHECK_OK(s);
  CHECK(type == TF_INT32);
  int64_t wrong;
  TF_OperationGetAttrInt(add, "T", &wrong, s);
  CHECK(TF_GetCode(s) == TF_INVALID_ARGUMENT);
  TF_OperationGetAttrMetadata(add, "no_such_attr", s);
  CHECK_ERROR(s, TF_INVALID_ARGUMENT, "has no attr named 'no_such_attr'");
  TF_Tensor* value = NULL;
  TF_OperationGetAttrTensor(two, "value", &value, s);
  CHECK_OK(s);
  CHECK(*(int32_t*)TF_TensorData(value) == 2);
  TF_DeleteTensor(value);
  CHECK(TF_OperationGetNumAttrs(add) >= 1);
  char name[16] = {0};
  CHECK(TF_OperationGetAttrNameLength(add, 0) == 1);
  TF_OperationGetAttrName(add, 0, name, s);
  CHECK_OK(s);
  CHECK(strcmp(name, "T") == 0);
}

static void Neighbours(TF_Operation* add, TF_Output feed, TF_Output two) {
  CHECK(strcmp(TF_OperationName(add), "add") == 0);
  CHECK(strcmp(TF_OperationOpType(add), "AddV2") == 0);
  CHECK(strcmp(TF_OperationDevice(add), "") == 0);
  CHECK(TF_OperationNumInputs(add) == 2 && TF_OperationNumOutputs(add) == 1);
  CHECK(TF_OperationOutputType(First(add)) == TF_INT32);
  const TF_Input second = {add, 1};
  CHECK(TF_OperationInputType(second) == TF_INT32);
  CHECK(TF_OperationInput(second).oper == two.oper);
  CHECK(TF_OperationOutputNumConsumers(feed) == 1);
  TF_Input consumer;
  CHECK(TF_OperationOutputConsumers(feed, &consumer, 1) == 1);
  CHECK(consumer.oper == add && consumer.index == 0);
  CHECK(TF_OperationNumControlInputs(add) == 0);
}

// What is waited for goes again; a placeholder that nobody feeds would fail runs.
static void Controls(TF_Graph* g, TF_Operation* add, TF_Operation* two,
                     TF_Status* s) {
  TF_Operation* unfed = Placeholder(g, "unfed", TF_FLOAT, s);
  CHECK_OK(s);
  TF_AddOperationControlInput(g, add, unfed);
  TF_AddOperationControlInput(g, add, two);
  CHECK(TF_OperationNumControlInputs(add) == 2);
  TF_Operation* before[2] = {NULL, NULL};
  CHECK(TF_OperationGetControlInputs(add, before, 2) == 2);
  CHECK(before[0] != before[1]);
  CHECK(before[0] == unfed || before[1] == unfed);
  CHECK(TF_OperationNumControlOutputs(unfed) == 1);
  TF_RemoveAllControlInputs(g, add);
  CHECK(TF_OperationNumControlInputs(add) == 0);
  CHECK(TF_OperationNumControlOutputs(unfed) == 0);
  CHECK(TF_OperationNumInputs(add) == 2);
  TF_RemoveAllControlInputs(g, add);
}

static void Runs(TF_Graph* g, TF_Output feed, TF_Output add, TF_Status* s) {
  TF_Session* session = Session(g, s);
  for (int i = 0; i < 3; ++i) {
    TF_Tensor* in = Int32(i);
    TF_Tensor* out = RunOne(session, feed, in, add, s);
    CHECK_OK(s);
    CHECK(*(int32_t*)TF_TensorData(out) == i + 2);
    TF_DeleteTensor(out);
    TF_DeleteTensor(in);
  }
  // The graph goes on growing.
  TF_Operation* more = Binary(g, "Mul", "more", add, add, s);
  CHECK_OK(s);
  TF_Tensor* in = Int32(3);
  TF_Tensor* out = RunOne(session, feed, in, First(more), s);
  CHECK_OK(s);
  CHECK(*(int32_t*)TF_TensorData(out) == 25);
  TF_DeleteTensor(out);
  // Without its feed.
  const TF_Output nothing = {NULL, 0};
  out = RunOne(session, nothing, NULL, add, s);
  CHECK_ERROR(s, TF_INVALID_ARGUMENT, "feed");
  CHECK(out == NULL);
  TF_DeviceList* devices = TF_SessionListDevices(session, s);
  CHECK_OK(s);
  CHECK(TF_DeviceListCount(devices) >= 1);
  CHECK(strstr(TF_DeviceListName(devices, 0, s), "device:CPU:0") != NULL);
  CHECK(strcmp(TF_DeviceListType(devices, 0, s), "CPU") == 0);
  TF_DeviceListName(devices, 99, s);
  CHECK(TF_GetCode(s) == TF_INVALID_ARGUMENT);
  TF_DeleteDeviceList(devices);
  TF_CloseSession(session, s);
  CHECK_OK(s);
  out = RunOne(session, feed, in, add, s);
  CHECK_ERROR(s, TF_CANCELLED, "Session has been closed.");
  TF_DeleteTensor(in);
  TF_DeleteSession(session, s);
  CHECK_OK(s);
}

static void Imports(TF_Graph* g, TF_Status* s) {
  TF_Buffer* def = TF_NewBuffer();
  TF_GraphToGraphDef(g, def, s);
  CHECK_OK(s);
  CHECK(def->length > 0);
  TF_Graph* other = TF_NewGraph();
  TF_Output five = First(Const(other, "five", Int32(5), s));
  CHECK_OK(s);
  TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
  TF_ImportGraphDefOptionsSetPrefix(options, "imported");
  TF_ImportGraphDefOptionsAddInputMapping(options, "feed", 0, five);
  TF_ImportGraphDefOptionsAddInputMapping(options, "missing", 3, five);
  TF_ImportGraphDefOptionsAddReturnOutput(options, "add", 0);
  TF_ImportGraphDefOptionsAddReturnOperation(options, "two");
  TF_ImportGraphDefOptionsAddControlDependency(options, five.oper);
  CHECK(TF_ImportGraphDefOptionsNumReturnOutputs(options) == 1);
  TF_ImportGraphDefResults* results =
      TF_GraphImportGraphDefWithResults(other, def, options, s);
  CHECK_OK(s);
  int count;
  TF_Output* outputs;
  TF_ImportGraphDefResultsReturnOutputs(results, &count, &outputs);
  CHECK(count == 1);
  CHECK(strcmp(TF_OperationName(outputs[0].oper), "imported/add") == 0);
  TF_Operation** operations;
  TF_ImportGraphDefResultsReturnOperations(results, &count, &operations);
  CHECK(count == 1);
  CHECK(strcmp(TF_OperationName(operations[0]), "imported/two") == 0);
  CHECK(TF_OperationNumControlInputs(operations[0]) == 1);
  const char** names;
  int* indexes;
  TF_ImportGraphDefResultsMissingUnusedInputMappings(results, &count, &names,
                                                     &indexes);
  CHECK(count == 1 && strcmp(names[0], "missing") == 0 && indexes[0] == 3);
  const TF_Output nothing = {NULL, 0};
  TF_Session* session = Session(other, s);
  TF_Tensor* sum = RunOne(session, nothing, NULL, outputs[0], s);
  CHECK_OK(s);
  CHECK(*(int32_t*)TF_TensorData(sum) == 7);
  TF_DeleteTensor(sum);
  TF_ImportGraphDefOptionsSetUniquifyPrefix(options, 1);
  TF_GraphImportGraphDef(other, def, options, s);
  CHECK_OK(s);
  CHECK(TF_GraphOperationByName(other, "imported_1/add") != NULL);
  // The same names again.
  TF_ImportGraphDefOptions* plain = TF_NewImportGraphDefOptions();
  TF_GraphImportGraphDef(g, def, plain, s);
  CHECK_ERROR(s, TF_INVALID_ARGUMENT, "already exists in the");
  TF_DeleteImportGraphDefOptions(plain);
  // A graph lives until its last session is gone.
  TF_DeleteGraph(other);
  sum = RunOne(session, nothing, NULL, outputs[0], s);
  CHECK_OK(s);
  TF_DeleteTensor(sum);
  TF_DeleteSession(session, s);
  TF_DeleteImportGraphDefResults(results);
  TF_DeleteImportGraphDefOptions(options);
  TF_DeleteBuffer(def);
}

static void Shapes(TF_Graph* g, TF_Output feed, TF_Status* s) {
  CHECK(TF_GraphGetTensorNumDims(g, feed, s) == -1);
  CHECK_OK(s);
  const int64_t part[] = {2, -1};
  TF_GraphSetTensorShape(g, feed, part, 2, s);
  CHECK_OK(s);
  CHECK(TF_GraphGetTensorNumDims(g, feed, s) == 2);
  const int64_t rest[] = {-1, 3};
  TF_GraphSetTensorShape(g, feed, rest, 2, s);
  CHECK_OK(s);
  int64_t dims[2];
  TF_GraphGetTensorShape(g, feed, dims, 2, s);
  CHECK_OK(s);
  CHECK(dims[0] == 2 && dims[1] == 3);
  const int64_t other[] = {5, 3};
  TF_GraphSetTensorShape(g, feed, other, 2, s);
  CHECK(TF_GetCode(s) == TF_INVALID_ARGUMENT);
  TF_GraphGetTensorShape(g, feed, dims, 1, s);
  CHECK(TF_GetCode(s) == TF_INVALID_ARGUMENT);
}

static void Mistakes(TF_Graph* g, TF_Output feed, TF_Status* s) {
  TF_OperationDescription* d = TF_NewOperation(g, "NoSuchOp", "x");
  CHECK(TF_FinishOperation(d, s) == NULL);
  CHECK_ERROR(s, TF_INVALID_ARGUMENT, "Op type not registered 'NoSuchOp'");
  d = TF_NewOperation(g, "AddV2", "half");
  TF_AddInput(d, feed);
  CHECK(TF_FinishOperation(d, s) == NULL);
  CHECK_ERROR(s, TF_INVALID_ARGUMENT, "1 inputs specified of 2 inputs in Op");
  CHECK(Placeholder(g, "feed", TF_INT32, s) == NULL);
  CHECK_ERROR(s, TF_INVALID_ARGUMENT, "Duplicate node name in graph: 'feed'");
  d = TF_NewOperation(g, "Placeholder", "untyped");
  CHECK(TF_FinishOperation(d, s) == NULL);
  CHECK(TF_GetCode(s) == TF_INVALID_ARGUMENT);
  CHECK(TF_GraphOperationByName(g, "untyped") == NULL);
}

static void Walk(TF_Graph* g) {
  size_t pos = 0;
  int count = 0;
  while (TF_GraphNextOperation(g, &pos) != NULL) ++count;
  CHECK(count >= 3);
}

static void Registry(TF_Graph* g, TF_Status* s) {
  TF_Buffer* ops = TF_GetAllOpList();
  CHECK(ops->length > 10000);
  TF_ApiDefMap* map = TF_NewApiDefMap(ops, s);
  CHECK_OK(s);
  const char* text =
      "op: <\n  graph_op_name: \"AddV2\"\n  summary: <<END\nTwo\nlines\nEND\n>";
  TF_ApiDefMapPut(map, text, strlen(text), s);
  CHECK_OK(s);
  TF_Buffer* def = TF_ApiDefMapGet(map, "AddV2", 5, s);
  CHECK_OK(s);
  CHECK(def != NULL && def->length > 0);
  TF_DeleteBuffer(def);
  TF_ApiDefMapPut(map, "op: {", 5, s);
  CHECK(TF_GetCode(s) != TF_OK);
  TF_DeleteApiDefMap(map);
  TF_DeleteBuffer(ops);
  TF_Buffer* kernels = TF_GetRegisteredKernelsForOp("AddV2", s);
  CHECK_OK(s);
  CHECK(kernels->length > 0);
  TF_DeleteBuffer(kernels);
  TF_Buffer* op = TF_NewBuffer();
  TF_GraphGetOpDef(g, "AddV2", op, s);
  CHECK_OK(s);
  CHECK(op->length > 0);
  TF_DeleteBuffer(op);
}

int main(void) {
  TF_Status* s = TF_NewStatus();
  TF_Graph* g = TF_NewGraph();
  TF_Output feed = Feed(g, s);
  TF_Output two = First(Const(g, "two", Int32(2), s));
  CHECK_OK(s);
  TF_Operation* add = Binary(g, "AddV2", "add", feed, two, s);
  CHECK_OK(s);
  CHECK(TF_GraphOperationByName(g, "add") == add);
  CHECK(TF_GraphOperationByName(g, "none") == NULL);
  Metadata(add, two.oper, s);
  Neighbours(add, feed, two);
  Imports(g, s);
  Controls(g, add, two.oper, s);
  Runs(g, feed, First(add), s);
  Mistakes(g, feed, s);
  Walk(g);
  Registry(g, s);
  TF_Output other = First(Placeholder(g, "other", TF_FLOAT, s));
  Shapes(g, other, s);
  TF_Tensor* known = NULL;
  CHECK(TF_TryEvaluateConstant(g, two, &known, s) == 1);
  CHECK(*(int32_t*)TF_TensorData(known) == 2);
  TF_DeleteTensor(known);
  CHECK(TF_TryEvaluateConstant(g, feed, &known, s) == 0 && known == NULL);
  TF_DeleteGraph(g);
  TF_DeleteStatus(s);
  printf("graphs: ok\n");
  return 0;
}
